"""How well an importance agrees with itself between trainings that differ in their seed alone.

All pairs of seeds are compared, on the texts whose importances were stored whole. A row's value is the
mean over the other seeds, so the mean over rows is the mean over pairs.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from attentest.statistics.rank_agreement import kendalls


def ceilings(trained: pd.DataFrame, importance: str) -> pd.Series:
    """For every row with a stored importance and a row of another seed, the mean tau-b with the others'."""
    stored = trained[trained[importance].notna()] if importance in trained else trained[:0]
    if stored["seed"].nunique() < 2:
        return pd.Series(dtype=np.float64)
    found: dict[int, list[float]] = {}
    for _, same in stored.groupby("id"):
        vectors = np.stack(same[importance].to_list()).astype(np.float64)
        for place, row in enumerate(same.index):
            found[row] = _with_others(vectors, place)
    return pd.Series({row: np.mean(taus) for row, taus in found.items() if taus}, dtype=np.float64)


def _with_others(vectors: np.ndarray, place: int) -> list[float]:
    others = np.delete(vectors, place, axis=0)
    if not len(others):
        return []
    return kendalls(vectors[place][None], others[None], np.array([vectors.shape[1]]))[0][0].tolist()
