"""One reader for each published corpus: a publisher's files in, Documents out."""
