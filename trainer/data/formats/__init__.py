"""Read CSV, gzip, .xlsx, Parquet, Arrow and stored files as raw tables."""
