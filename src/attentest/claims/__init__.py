"""Claims of papers and criteria of audits as data, and the tests that judge them. Never torch."""
