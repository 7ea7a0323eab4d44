"""How far attention lies from that of other seeds: Wiegreffe & Pinter (2019), WP-2.

An adversary says something of a text only where it moves attention further than another seed does anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from attentest.experiments.description import Conclusion
from attentest.experiments.seed_variance import ABOUT
from attentest.experiments.shared.wiegreffe_pinter import (
    DIFFERENCE,
    DIVERGENCE,
    NATS,
    ONE_TOKEN,
    PAPER,
    SHARE,
    TVD,
)
from attentest.statistics.card import Card
from attentest.statistics.group_means import MAX_ATTENTION_EDGES as EDGES
from attentest.statistics.group_means import MAX_ATTENTION_SPANS as SPANS
from attentest.statistics.group_means import Group, Means, Measure, by_class, by_span, of_controls, reasons
from attentest.statistics.record import Finding, ordered

EXPERIMENT = "seed-variance"
WHO = ("seed", "subject", "id", "label", "predicted", "length", "base_predicted", "base_max_attention")
NUMBERS = ("jsd", "tvd", "exact", "attainable", "permuted")
COLUMNS = (*WHO, *NUMBERS)
NOT_A_NUMBER = "weights or output are not numbers"
NOT_AFFINE = "no exact adversary, or NaN weights"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Means over texts: overall, by the base's predicted class, by its largest weight, by both.

    What a model that learnt nothing does to the same texts is in the groups of the controls.
    """
    rows = ordered(rows, COLUMNS)
    trained = rows[rows["subject"] == "trained"]
    if trained.empty:
        return []
    numbers = rows[list(NUMBERS)].astype(np.float64)
    moved = [*_moved(rows, numbers)]
    beside = [*_beside_adversary(rows.loc[trained.index], numbers.loc[trained.index])]
    means = Means(experiment=EXPERIMENT, rows=rows, mode=mode, rng=rng)
    return [
        *means.of([*moved, *beside], _groups(trained)),
        *means.of(moved, of_controls(rows)),
    ]


def _moved(rows: pd.DataFrame, numbers: pd.DataFrame) -> Iterator[Measure]:
    """Divergences and changes of output against the base."""
    why = reasons(rows, NOT_A_NUMBER)
    jsd, permuted = numbers["jsd"], numbers["permuted"]
    yield Measure(name="seed-jsd", values=jsd, null=permuted, why=why)
    # The output needs no second token, but a text must count alike on both axes of the scatter.
    tvd = numbers["tvd"].where(jsd.notna())
    yield Measure(name="seed-tvd", values=tvd, null=_of_untrained(rows, tvd), why=why)


def _beside_adversary(rows: pd.DataFrame, numbers: pd.DataFrame) -> Iterator[Measure]:
    jsd, exact, permuted = numbers["jsd"], numbers["exact"], numbers["permuted"]
    why, unknown = reasons(rows, NOT_A_NUMBER), reasons(rows, NOT_AFFINE)
    yield Measure(name="seed-jsd-excess", values=jsd - permuted, null=0.0, why=why)
    yield Measure(name="adversary-jsd", values=exact, null=jsd, why=unknown)
    yield Measure(name="adversary-beyond-seeds", values=exact - jsd, null=0.0, why=unknown)


def _groups(rows: pd.DataFrame) -> Iterator[Group]:
    """Class and largest weight are the base's."""
    classes = by_class(rows, "base_predicted", "predicted")
    yield from [("overall", rows), *classes, *_spans(rows)]
    for name, texts in classes:
        yield from ((f"{name}, {span}", of_span) for span, of_span in _spans(texts))


def _spans(rows: pd.DataFrame) -> list[Group]:
    return by_span(rows, "base_max_attention", "max attention", EDGES, SPANS)


def _of_untrained(rows: pd.DataFrame, values: pd.Series) -> pd.Series:
    """Beside every row, the value of the untrained model for the same text; none beside the controls."""
    who = pd.MultiIndex.from_frame(rows[["seed", "id"]])
    untrained = rows["subject"] == "untrained"
    found = pd.Series(values[untrained].to_numpy(), index=who[untrained]).reindex(who)
    return pd.Series(found.to_numpy(), index=rows.index).where(rows["subject"] == "trained", math.nan)


OF_SEEDS = "in figures. Models are chosen on dev; the published code chose them on test"
CONTROLS = (
    "; in the groups of the controls, of an untrained model and one of shuffled labels against the base"
)
PERMUTED = "the base's own weights in random orders over its tokens"
ORDERLESS = "It holds the set of weights fixed and breaks which token has which: they know no token."
EXACT = "the strongest adversary: the furthest attention that changes the output by at most 0.01 (0.05 with a"
EXACT += " query)"
NO_ADVERSARY = f"{ONE_TOKEN}, the decision is not affine, or several classes make it too costly"

CARDS: dict[str, Card] = {
    "seed-variance/seed-jsd": Card(
        measure="Divergence of attention between seeds",
        formula=f"mean over texts of the median over other seeds of JSD(a_seed, a_base){CONTROLS}",
        range=DIVERGENCE,
        direction="higher: attention depends more on the luck of training",
        null=f"the same for {PERMUTED}; none for the controls. {ORDERLESS}",
        unit=NATS,
        paper=PAPER,
        section=OF_SEEDS,
        undefined_when=ONE_TOKEN,
    ),
    "seed-variance/seed-tvd": Card(
        measure="Change of output between seeds",
        formula=f"mean over texts of the mean over other seeds of TVD(y_seed, y_base){CONTROLS}",
        range=SHARE,
        direction="higher: the answer depends more on the luck of training",
        null="an untrained model against the base on the same texts; none for the controls",
        unit=TVD,
        paper=PAPER,
        section=OF_SEEDS,
        undefined_when=ONE_TOKEN,
    ),
    "seed-variance/seed-jsd-excess": Card(
        measure="Divergence between seeds beyond that of shuffled weights",
        formula=f"mean over texts of the median JSD over other seeds minus the mean JSD of {PERMUTED}",
        range=DIFFERENCE,
        direction="below 0: seeds agree on which tokens to attend to",
        null="0",
        unit=f"difference of {NATS}",
        paper=PAPER,
        section="ours",
        undefined_when=ONE_TOKEN,
    ),
    "seed-variance/adversary-jsd": Card(
        measure="Divergence of the strongest adversary, beside that of seeds",
        formula=f"mean over texts of JSD(alpha, a_base) of {EXACT}",
        range=DIVERGENCE,
        direction="no evidence against attention unless well above what another seed does",
        null="the divergence between seeds, of the same texts",
        unit=NATS,
        paper=PAPER,
        section=f"{OF_SEEDS}; the exact adversary is ours",
        undefined_when=NO_ADVERSARY,
    ),
    "seed-variance/adversary-beyond-seeds": Card(
        measure="What the strongest adversary moves attention beyond another seed",
        formula=f"mean over texts of the JSD of {EXACT}, minus the median JSD over other seeds",
        range=DIFFERENCE,
        direction="higher: adversaries do more than training anew does",
        null="0",
        unit=f"difference of {NATS}",
        paper=PAPER,
        section=OF_SEEDS,
        undefined_when=NO_ADVERSARY,
    ),
}

CONCLUSION = Conclusion(conclude, version=3, about=ABOUT, cards=CARDS, columns=COLUMNS)
