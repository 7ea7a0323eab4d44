"""Counting concordant pairs where the model is: a GPU looks at all pairs of a text while a CPU sorts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

PAIRS = 2**28  # comparisons at a time: a quarter of a gigabyte


def count_on(device: torch.device) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None:
    """What `rank_agreement.kendalls` may count with; None on a CPU, where its own way is faster."""
    if device.type == "cpu":
        return None
    return lambda x, y, real: concordant(x, y, real, device)


def concordant(x: np.ndarray, y: np.ndarray, real: np.ndarray, device: torch.device) -> np.ndarray:
    """How many pairs (i, j) of each text and variant have both x_i > x_j and y_i > y_j."""
    first, second = (torch.from_numpy(ranks.astype(np.int32)).to(device) for ranks in (x, y))
    there = torch.from_numpy(real).to(device)
    counts = torch.zeros(second.shape[:2], dtype=torch.float64, device=device)
    texts, variants, tokens = second.shape
    some = max(1, PAIRS // max(1, variants * tokens**2))
    for begun in range(0, texts, some):
        rows = slice(begun, begun + some)
        pairs = there[rows, :, None] & there[rows, None]
        above = _above(first[rows]) & pairs[:, None]
        counts[rows] = (above & _above(second[rows])).sum((2, 3)).double()
    return counts.cpu().numpy()


def _above(ranks: torch.Tensor) -> torch.Tensor:
    return ranks[..., :, None] > ranks[..., None, :]
