"""Rows of the information experiment, made by hand: symbols that tell as much as the test wants."""

import math

import numpy as np
import pandas as pd

from attentest.findings.information import LISTS
from tests.observed import texts

WEIGHTS = (0.4, 0.2, 0.1)


def information_texts(n, seed=0, subject="trained", faithful=(1.0, 0.5, 0.0), outputs=4, **columns):
    """At each rank the symbol is the output, for a share `faithful` of the texts; else it is anything."""
    rng = np.random.default_rng([seed, len(subject), n])
    output = rng.integers(outputs, size=n)
    ranks = len(faithful)
    luck = rng.integers(outputs, size=(n, ranks))
    symbols = np.where(rng.uniform(size=(n, ranks)) < faithful, output[:, None], luck)
    attention = np.array([WEIGHTS[0] * 0.5**rank for rank in range(ranks)])
    lists = {
        "attention": np.tile(attention, (n, 1)).astype(np.float32),
        "symbols": symbols.astype(np.int16),
        "joint": symbols.astype(np.int16),
        "alike": np.full((n, ranks), 3, dtype=np.int16),
        "within": np.where(symbols == output[:, None], 3, 12).astype(np.int16),
    }
    about = {"k": ranks, "clusters": 50, "small_clusters": 0.0, "flags": "", "nulls": 20, "entropy": 0.7}
    rows = texts(n, seed, subject).assign(**about, output=output)
    return rows.assign(**{name: list(column) for name, column in lists.items()}).assign(**columns)


def left_out(rows, which):
    """These texts are not measured."""
    rows = rows.copy()
    rows.loc[rows.index[which], "output"] = -1
    for name in LISTS:
        rows[name] = [
            None if drop else value for drop, value in zip(rows["output"] < 0, rows[name], strict=True)
        ]
    return rows


def information_rows():
    """Two seeds and both controls; some texts are too short, and some have attention that is no number."""
    tables = []
    for seed in (0, 1):
        for subject, faithful in (
            ("trained", (0.9, 0.6, 0.3, 0.1)),
            ("untrained", (0.2, 0.2, 0.2, 0.2)),
            ("shuffled labels", (0.1, 0.3, 0.1, 0.2)),
        ):
            rows = information_texts(60, seed, subject, faithful)
            rows.loc[rows.index[:4], "length"] = [1, 2, 3, 3]
            rows.loc[rows.index[4], ["max_attention", "entropy"]] = math.nan
            tables.append(left_out(rows, slice(5)))
    return pd.concat(tables, ignore_index=True)
