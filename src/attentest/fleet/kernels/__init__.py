"""Triton kernels of a fleet."""
