"""Rows of the ablation experiment, made by hand."""

import numpy as np
import pandas as pd

from attentest.experiments.ablation.conclude import ASKED, EXPLAINED
from tests.observed import texts


def ablated_texts(n, seed=0, subject="trained", **columns):
    """Rows in which no weights move anything, unless others are given."""
    still = {f"{name}_change": 0.0 for name in ASKED} | {f"{name}_predicted": "yes" for name in ASKED}
    return texts(n, seed, subject).assign(**still).assign(**columns)


def ablated_rows():
    """Two seeds and both controls, changes and answers of every kind, texts of one unit among them."""
    rng = np.random.default_rng(8)
    tables = []
    for seed in (0, 1):
        for subject in ("trained", "untrained", "shuffled labels"):
            rows = ablated_texts(40, seed, subject, predicted=rng.choice(["no", "yes"], 40))
            for name in (*ASKED, *EXPLAINED):
                change = np.where(np.arange(40) % 9, rng.uniform(size=40), np.nan)
                said = rng.choice(["no", "yes"], 40)
                rows[f"{name}_change"] = change
                rows[f"{name}_predicted"] = np.where(np.isnan(change), None, said)
            tables.append(rows.assign(permuted_weights=None))
    return pd.concat(tables, ignore_index=True)
