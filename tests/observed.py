"""Rows as the experiments observe them, made by hand, and the findings drawn from them."""

import math

import numpy as np
import pandas as pd

from attentest.experiments.adversary import conclude as adversary
from attentest.experiments.importance import conclude as importance
from attentest.statistics.record import to_frame


def concluded(rows, conclude, seed=0):
    return to_frame(conclude(rows, mode="corrected", rng=np.random.default_rng(seed)))


def one(findings, measure, group="overall"):
    found = findings[(findings["measure"] == measure) & (findings["group"] == group)]
    assert len(found) == 1
    return found.iloc[0]


def texts(n, seed=0, subject="trained"):
    """What every experiment tells of a text."""
    return pd.DataFrame(
        {
            "seed": seed,
            "subject": subject,
            "id": [f"t{number:04d}" for number in range(n)],
            "label": "yes",
            "predicted": "yes",
            "length": 12,
            "max_attention": 0.5,
        }
    )


def importance_texts(n, seed=0, subject="trained", **columns):
    """Rows of the importance experiment, in which everything not given is 0, or k = 10."""
    numbers = {**dict.fromkeys(importance.NUMBERS, 0.0), "k": 10}
    return texts(n, seed, subject).assign(**numbers).assign(**columns)


def with_traded_null(rows, kind):
    """Rows of the importance experiment whose nulls are the first edition's, of importances not held."""
    old = dict.fromkeys((f"{null}_tau_{kind}" for null in importance.NULLS), rows[f"traded_tau_{kind}"])
    return rows.assign(**{f"tau_{importance.HELD[kind]}": rows[f"tau_{kind}"]}, **old)


def adversary_texts(n, seed=0, subject="trained", **columns):
    """Rows of the adversary experiment, in which everything not given is 0, or 0.5 attainable."""
    numbers = {**dict.fromkeys(adversary.NUMBERS, 0.0), "attainable": 0.5, "proved": True}
    return texts(n, seed, subject).assign(**numbers).assign(**columns)


def _drawn(make, columns, ceiling):
    """Two seeds and both controls with numbers of every size, classes and lengths, and some holes."""
    rng = np.random.default_rng(0)
    tables = []
    for seed in (0, 1):
        for subject in ("trained", "untrained", "shuffled labels"):
            rows = make(40, seed, subject)
            rows[columns] = rng.uniform(0, ceiling, size=(40, len(columns)))
            rows.loc[::9, columns] = math.nan
            tables.append(
                rows.assign(
                    label=rng.choice(["no", "yes"], 40),
                    predicted=rng.choice(["no", "yes"], 40),
                    length=rng.integers(1, 400, 40),
                    max_attention=rng.uniform(size=40),
                )
            )
    return pd.concat(tables, ignore_index=True)


def importance_rows():
    """With the importances of a few texts of the trained model, whole."""
    columns = [name for name in importance.NUMBERS if name != "k"]
    rows = _drawn(importance_texts, columns, 1.0)
    whole = (rows["subject"] == "trained") & (np.arange(len(rows)) % 5 == 0)
    rng = np.random.default_rng(1)
    vectors = [rng.random(4).tolist() if there else None for there in whole]
    return rows.assign(gradient=vectors, loo=vectors)


def adversary_rows():
    columns = [name for name in adversary.NUMBERS if name != "attainable"]
    rows = _drawn(adversary_texts, columns, 0.3)
    for epsilon in adversary.MAIN:  # a bound is no bound below what it bounds
        rows[f"bound@{epsilon:g}"] += rows[f"exact@{epsilon:g}"]
    return rows
