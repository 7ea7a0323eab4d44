"""The server: the pages of a store and a live page, on one machine, without torch."""
