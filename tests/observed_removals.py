"""Rows of the removal and single-weight experiments, made by hand."""

import numpy as np
import pandas as pd

from attentest.experiments.removal import conclude as removal
from attentest.experiments.single_weight import conclude as single_weight
from tests.observed import texts

SUBJECTS = ("trained", "untrained", "shuffled labels")


def removal_texts(n, seed=0, subject="trained", **columns):
    """Ten items each, all gone at the second removal, of attention a fifth, unless told otherwise."""
    numbers = {name: 0.2 if "mass" in name else 2.0 for name in removal.NUMBERS}
    rows = texts(n, seed, subject).assign(**{**numbers, "items": 10}).assign(**columns)
    if "counts_random" not in rows:
        rows["counts_random"] = [[count] for count in rows["count_random"]]
    return rows


def single_weight_texts(n, seed=0, subject="trained", **columns):
    """Ten items each, a weight gap of 0.3, nothing moved and nothing flipped, unless told otherwise."""
    numbers = {**dict.fromkeys(single_weight.NUMBERS, 0.0), "items": 10, "gap_attention": 0.3}
    return texts(n, seed, subject).assign(**numbers).assign(**columns)


def _groups(make):
    """Two seeds and both controls, two predicted classes, and a text of one item in each."""
    rng = np.random.default_rng(0)
    tables = [
        make(40, seed, subject).assign(predicted=rng.choice(["no", "yes"], 40))
        for seed in (0, 1)
        for subject in SUBJECTS
    ]
    return pd.concat(tables, ignore_index=True), rng


def removal_rows():
    rows, rng = _groups(removal_texts)
    rows["items"] = rng.integers(6, 30, len(rows))
    for null in ("", "null_"):
        rows[f"{null}smallest"] = rng.integers(0, 3, len(rows)).astype(float)
        for ranking in removal.RANKINGS:
            never = rng.uniform(size=len(rows)) < 0.1
            count = rng.integers(2, 6, len(rows))
            rows[f"{null}count_{ranking}"] = np.where(never, -1.0, count)
            rows[f"{null}mass_{ranking}"] = np.where(never, -1.0, rng.uniform(size=len(rows)))
    orders = rng.integers(2, 6, (len(rows), 4))
    rows["counts_random"] = np.column_stack([rows["count_random"], orders]).tolist()
    rows.loc[::13, "items"] = 1
    return rows


def single_weight_rows():
    rows, rng = _groups(single_weight_texts)
    rows["gap_attention"] = rng.uniform(size=len(rows))
    for name in single_weight.MEASURED:
        for null in ("", "null_"):
            djs = rng.normal(0.05, 0.1, len(rows)).clip(-0.69, 0.69)
            rows[f"{null}{name}"] = djs if name.startswith("djs") else rng.integers(0, 2, len(rows)) * 1.0
    rows.loc[::13, list(single_weight.NUMBERS)] = np.nan
    return rows.assign(items=rows["items"].fillna(1))
