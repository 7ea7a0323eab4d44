"""Published numbers beside those of a store: which may be compared, and whether they agree. Never torch."""
