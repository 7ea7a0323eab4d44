"""Rows of the information experiment, made by hand: symbols that tell as much as the test wants."""

import math

import numpy as np
import pandas as pd

from attentest.experiments.information.conclude import LISTS
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
    for name in [each for each in LISTS if each in rows]:
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


SIBLINGS = {
    "fix rep": (0.9, 0.6, 0.3, 0.1),
    "fix attn": (0.1, 0.3, 0.6, 0.9),
    "fix attn, stored": (0.9, 0.3, 0.6, 0.1),
    "fix attn, random": (0.2, 0.2, 0.2, 0.2),
    "lambda 0.0005": (0.9, 0.5, 0.3, 0.1),
    "gumbel 0.8": (0.8, 0.6, 0.3, 0.1),
    "gumbel 1": (0.8, 0.5, 0.3, 0.1),
    "softmax at 0.8": (0.8, 0.6, 0.2, 0.1),
    "untrained": (0.2, 0.2, 0.2, 0.2),
    "shuffled labels": (0.1, 0.3, 0.1, 0.2),
}


def ablation_texts(n, seed=0, subject="trained", faithful=(0.9, 0.6, 0.3, 0.1), **columns):
    """Rows of one model: its symbols, its answers, and a place beside the normal model."""
    rows = information_texts(n, seed, subject, faithful).drop(columns=["alike", "within"])
    gold = np.arange(n) % 2
    yes = np.where(np.arange(n) < 0.8 * n, gold, 1 - gold) * 0.8 + 0.1
    probabilities = np.stack([1 - yes, yes], axis=1).tolist()
    predicted = np.where(yes > 0.5, "yes", "no")
    return rows.assign(gold=gold, predicted=predicted, probabilities=probabilities, jsd=0.0, tvd=0.0).assign(
        **columns
    )


def ablation_rows():
    """Two seeds of every sibling; some texts are too short, and of one the answer is no number."""
    rng, tables = np.random.default_rng(0), []
    for seed in (0, 1):
        for place, (subject, faithful) in enumerate({"trained": (0.9, 0.6, 0.3, 0.1), **SIBLINGS}.items()):
            apart = {"jsd": rng.uniform(0, 0.6, 40), "tvd": rng.uniform(0, 1, 40)} if place else {}
            rows = ablation_texts(40, seed, subject, faithful, entropy=0.5 + place / 30, **apart)
            rows.loc[rows.index[:3], "length"] = [1, 2, 3]
            rows.loc[rows.index[0], ["entropy", "jsd"]] = math.nan
            rows.at[rows.index[4], "probabilities"] = [math.nan, math.nan]
            tables.append(left_out(rows, slice(5)))
    return pd.concat(tables, ignore_index=True)


def sensitivity_rows():
    """The default, three alternatives and the controls; one alternative has too few texts in one seed."""
    subjects = ("trained", "A10: 50 clusters", "A10: 200 clusters", "A24: noise on")
    tables = []
    for seed in (0, 1):
        for subject in (*subjects, "untrained", "shuffled labels"):
            rows = information_texts(40, seed, subject, (0.9, 0.6, 0.3, 0.1)).drop(
                columns=["alike", "within"]
            )
            few = seed == 0 and "200" in subject
            rows = rows.assign(flags="fewer texts than clusters" if few else "")
            tables.append(left_out(rows, slice(40 if few else 2)))
    return pd.concat(tables, ignore_index=True)
