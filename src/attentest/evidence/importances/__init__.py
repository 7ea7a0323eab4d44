"""Importance of words: gradients, explainers, influence, and their nulls."""
