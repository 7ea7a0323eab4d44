"""Rows of the experiment on word vectors, made by hand."""

import numpy as np
import pandas as pd

from tests.observed import texts

OF_MODEL = {"dev_measure": "auc", "dev_score": 0.9, "dev_accuracy": 0.8, "dev_majority": 0.55}
OF_MODEL |= {"norm_start": 1.7, "norm_trained": 2.0}


def vector_texts(n, seed=0, subject="trained", **columns):
    """Texts of ten words under even attention that agrees with nothing, unless others are given."""
    still = {"tau_gradient": 0.0, "tau_loo": 0.0, "max_attention": 0.1, "length": 10}
    return texts(n, seed, subject).assign(**still, **OF_MODEL).assign(**columns)


def vector_rows():
    """Two seeds, with texts that have no tau among them."""
    rng = np.random.default_rng(9)
    tables = []
    for seed in (0, 1):
        taus = {
            name: np.where(np.arange(40) % 9, rng.uniform(-1, 1, 40), np.nan) for name in ("gradient", "loo")
        }
        columns = {f"tau_{name}": tau for name, tau in taus.items()}
        tables.append(vector_texts(40, seed, max_attention=rng.uniform(0.1, 1.0, 40), **columns))
    return pd.concat(tables, ignore_index=True)
