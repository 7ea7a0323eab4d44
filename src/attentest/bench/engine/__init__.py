"""Engines do cells somewhere: here, in processes of this machine, or on a cluster. They know nothing else."""
