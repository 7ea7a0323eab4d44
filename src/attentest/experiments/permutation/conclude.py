"""What shuffling attention does to the output: the permutation experiment of Jain & Wallace (2019)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from attentest.experiments.description import Conclusion
from attentest.experiments.permutation import ABOUT
from attentest.statistics.card import OF_UNTRAINED, Card
from attentest.statistics.group_means import (
    CONTROLS,
    MAX_ATTENTION_EDGES,
    MAX_ATTENTION_SPANS,
    Group,
    Means,
    Measure,
    by_class,
    by_span,
    of_controls,
)
from attentest.statistics.record import Finding, ordered

COLUMNS = ("seed", "subject", "id", "predicted", "max_attention", "median_change")
UNMOVED = 0.05  # a median change of output below this is called none
ONE_TOKEN = "one token: nothing to permute"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """The mean over texts of the median output change: overall, by predicted class, by largest weight.

    The paper shows the distributions; the means per bin and class are ours, and so is the null, the
    same quantity on untrained models: an output that attention could not move before training either
    says nothing about what training put into attention. The controls themselves follow, and untrained
    models have no null but themselves.
    """
    rows = ordered(rows, COLUMNS)
    trained, untrained = (rows[rows["subject"] == subject] for subject in ("trained", "untrained"))
    if trained.empty:
        return []
    changes = rows["median_change"].astype(np.float64)
    unmoved = (changes < UNMOVED).astype(np.float64).where(changes.notna())
    why = pd.Series(ONE_TOKEN, index=rows.index)
    means = Means(experiment="permutation", rows=rows, mode=mode, rng=rng)
    nulls = {**dict(_groups(untrained)), "shuffled labels": untrained}
    found = []
    for name, texts in [*_groups(trained), *of_controls(rows)]:
        asked = {"median-output-change": changes}
        if name in ("overall", *CONTROLS):
            asked["share-unmoved"] = unmoved
        null = nulls.get(name, untrained.iloc[:0]).index
        measures = [
            Measure(name=measure, values=values, null=means.mean(values.loc[null]), why=why)
            for measure, values in asked.items()
        ]
        found += means.of(measures, [(name, texts)])
    return found


def max_attention_spans(rows: pd.DataFrame) -> list[Group]:
    """Texts by their largest weight, in the four bins of the paper's violins."""
    return by_span(rows, "max_attention", "max attention", MAX_ATTENTION_EDGES, MAX_ATTENTION_SPANS)


def _groups(rows: pd.DataFrame) -> Iterator[Group]:
    """Every group that has texts, under its printed name; class means the predicted one, as in the paper."""
    classes = by_class(rows, "predicted", "predicted")
    yield from [("overall", rows), *classes, *max_attention_spans(rows)]
    for name, texts in classes:
        yield from ((f"{name}, {span}", of_span) for span, of_span in max_attention_spans(texts))


CARDS: dict[str, Card] = {
    "permutation/median-output-change": Card(
        measure="Median output change under permuted attention",
        formula="mean over texts of median over permutations pi of TVD(y(pi(a)), y(a)),"
        " with encoder and decoder held fixed",
        range=(0.0, 1.0),
        direction="lower: the output depends less on which token gets which weight",
        null="the same on untrained models, in the group of the same name by their own predictions and"
        f" their own largest weights; untrained models have none. {OF_UNTRAINED}",
        unit="total variation distance",
        paper="jain2019attention",
        section="4.2.1 Attention permutation; the means per bin and class are ours",
        undefined_when="the text has one token",
    ),
    "permutation/share-unmoved": Card(
        measure="Share of texts that permuting attention leaves unmoved",
        formula="share of texts whose median output change is below 0.05",
        range=(0.0, 1.0),
        direction="higher: fewer outputs depend on which token gets which weight",
        null=f"the same on untrained models, which have none. {OF_UNTRAINED}",
        unit="share of texts",
        paper="jain2019attention",
        section="4.2.1 Attention permutation, where it is said of a figure; the threshold is ours",
        undefined_when="the text has one token",
    ),
}

CONCLUSION = Conclusion(conclude, version=3, about=ABOUT, cards=CARDS, columns=COLUMNS)
