"""Files become raw tables: CSV, gzip, Parquet, and tables that octweb stored itself."""
