"""The correction of p-values for their number."""

from __future__ import annotations

import numpy as np

LEVEL = 0.05  # of every test after correction


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's correction of the p-values there are; NaN stays NaN and is not counted as a test."""
    corrected = np.full(len(p_values), np.nan)
    there = np.flatnonzero(~np.isnan(p_values))
    order = there[np.argsort(p_values[there], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * factors))
    return corrected
