"""Texts with labels: where they come from, how they are prepared, how they become batches."""
