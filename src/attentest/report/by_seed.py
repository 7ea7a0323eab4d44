"""The main numbers of single seeds: what another training of the same model would have said."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from attentest.findings.removal import Flips
from attentest.report.rows import PointRows

PerText = Callable[[pd.DataFrame, float], pd.Series]


def _right(rows: pd.DataFrame, tolerance: float) -> pd.Series:
    return rows["label"] == rows["predicted"]


def _column(name: str) -> PerText:
    return lambda rows, tolerance: rows[name.format(tolerance=f"{tolerance:g}")]


def _removed(rows: pd.DataFrame, tolerance: float) -> pd.Series:
    return Flips(rows, published=False).removed("fraction", "attention")


# Measures that are a mean over texts, and what the mean is of. A seed's number is the mean of its texts, and
# the finding's estimate the mean of its seeds' numbers.
MEANS: Mapping[str, PerText] = {
    "performance/accuracy": _right,
    "importance/tau-gradient": _column("tau_gradient"),
    "importance/tau-loo": _column("tau_loo"),
    "permutation/median-output-change": _column("median_change"),
    "adversary/emax-jsd-exact": _column("exact@{tolerance}"),
    "removal/fraction-attention": _removed,
}


def by_seed(rows: PointRows) -> dict[str, dict[str, float]]:
    """Each measure's number by seed, as far as the rows are there."""
    found = {}
    for name, values in MEANS.items():
        own = rows.own(name.split("/")[0])
        if len(own):
            texts = values(own, rows.point.tolerance).astype(np.float64)
            means = texts.groupby(own["seed"]).mean()
            found[name] = {str(seed): float(mean) for seed, mean in means.items()}
    return found
