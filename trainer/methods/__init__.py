"""What a method declares, how it reports progress, and which trees its claim covers."""
