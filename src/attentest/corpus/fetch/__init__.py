"""Downloads and archives: how a publisher's files come here and are read."""
