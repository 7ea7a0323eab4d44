"""Rows of the communication experiment, made by hand."""

import math

import numpy as np
import pandas as pd

from attentest.experiments.communication.conclude import CHANCE, EXPLAINERS, JOINT, NO_K
from tests.observed import texts

SIZES = (1, 5, 10)
SENDERS = (*EXPLAINERS, f"{CHANCE}attention", JOINT, f"{CHANCE}{JOINT}")
MESSAGES = (*NO_K, *(f"{name}@{k}" for k in SIZES for name in SENDERS))


def communication_texts(n, seed=0, subject="trained", **columns):
    """Rows in which every layperson that is not given is always wrong."""
    numbers = {f"{what}_{message}": 0.0 for what in ("agrees", "right") for message in MESSAGES}
    return texts(n, seed, subject).assign(support=4, words_joint=2, **numbers).assign(**columns)


def communication_rows():
    """Two seeds, both sparse siblings and both controls, with answers of every kind and some holes."""
    rng = np.random.default_rng(0)
    tables = []
    for seed in (0, 1):
        for subject in ("trained", "entmax15", "sparsemax", "untrained", "shuffled labels"):
            rows = communication_texts(40, seed, subject)
            drawn = [name for name in rows if name.startswith(("agrees_", "right_"))]
            rows[drawn] = rng.integers(0, 4, (40, len(drawn))) / 3
            rows.loc[::9, drawn] = math.nan
            tables.append(
                rows.assign(
                    label=rng.choice(["no", "yes"], 40),
                    predicted=rng.choice(["no", "yes"], 40),
                    support=rng.integers(1, 12, 40),
                )
            )
    return pd.concat(tables, ignore_index=True)
