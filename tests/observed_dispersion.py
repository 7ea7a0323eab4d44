"""Rows of the dispersion experiment, made by hand."""

import math

import numpy as np
import pandas as pd

from attentest.experiments.dispersion import conclude as dispersion
from tests.observed import texts


def dispersion_texts(n, seed=0, subject="trained", **columns):
    """Twelve tokens each, all with weight, everything else a quarter, unless told otherwise."""
    numbers = {**dict.fromkeys(dispersion.NUMBERS, 0.25), "support": 12, "frobenius": subject == "trained"}
    return texts(n, seed, subject).assign(**numbers).assign(**columns)


def dispersion_rows():
    """Two seeds and both controls, numbers of every size, some texts of one token or one with weight."""
    rng = np.random.default_rng(0)
    tables = []
    for seed in (0, 1):
        for subject in ("trained", "untrained", "shuffled labels"):
            rows = dispersion_texts(40, seed, subject)
            rows[list(dispersion.NUMBERS)] = rng.uniform(size=(40, len(dispersion.NUMBERS)))
            rows["length"] = rng.integers(2, 60, 40)
            rows["support"] = rng.integers(2, rows["length"] + 1)
            rows.loc[::7, ["length", "support"]] = 1
            rows.loc[::7, list(dispersion.NUMBERS[:7])] = math.nan
            rows.loc[::11, "support"] = 1
            tables.append(rows.assign(frobenius=(subject == "trained") & (np.arange(40) % 3 == 0)))
    tables[0] = tables[0].assign(attention_rate=10.0)  # dev chose it for one seed
    return pd.concat(tables, ignore_index=True)
