"""Leave-one-out importance: a fast algorithm for each kind of encoder, and brute force."""
