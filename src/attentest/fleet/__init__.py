"""Many models of one shape trained together on one GPU."""
