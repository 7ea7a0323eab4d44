"""One model of a store asked about one text that somebody typed."""
