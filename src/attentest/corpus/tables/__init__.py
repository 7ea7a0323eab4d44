"""The user's own tables: CSV, TSV, JSON Lines and Parquet."""
