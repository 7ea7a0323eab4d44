"""Rows of the explainers experiment, made by hand."""

import math

import numpy as np
import pandas as pd

from attentest.experiments.explainers import conclude as explainers
from tests.observed import texts


def explainer_texts(n, seed=0, subject="trained", **columns):
    """Three words of twelve marked, everything else a quarter, unless told otherwise."""
    numbers = {**dict.fromkeys(explainers.NUMBERS, 0.25), "marked": 3}
    return texts(n, seed, subject).assign(**numbers).assign(**columns)


def explainer_rows():
    """Two seeds and both controls, numbers of every size, some texts without marks or of one token."""
    rng = np.random.default_rng(0)
    tables = []
    for seed in (0, 1):
        for subject in ("trained", "untrained", "shuffled labels"):
            rows = explainer_texts(30, seed, subject)
            rows[list(explainers.NUMBERS)] = rng.uniform(size=(30, len(explainers.NUMBERS)))
            rows["predicted"] = rng.choice(["no", "yes"], 30)
            rows.loc[::7, "length"] = 1
            rows.loc[::7, list(explainers.NUMBERS)] = math.nan
            rows.loc[::5, "marked"] = 0
            tables.append(rows)
    return pd.concat(tables, ignore_index=True)
