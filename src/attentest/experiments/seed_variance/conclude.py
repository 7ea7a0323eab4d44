"""How far attention lies from that of other seeds: Wiegreffe & Pinter (2019), WP-2.

An adversary says something of a text only where it moves attention further than another seed does anyway.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

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
    attainable = numbers["attainable"].where(numbers["attainable"] > 0)
    why, unknown = reasons(rows, NOT_A_NUMBER), reasons(rows, NOT_AFFINE)
    yield Measure(name="seed-jsd-excess", values=jsd - permuted, null=0.0, why=why)
    yield Measure(name="seed-jsd-ratio", values=jsd / attainable, null=permuted / attainable, why=why)
    yield Measure(name="adversary-jsd", values=exact, null=jsd, why=unknown)
    yield Measure(name="adversary-beyond-seeds", values=exact - jsd, null=0.0, why=unknown)
    yield Measure(
        name="share-beyond-seeds", values=_exceeds(exact, jsd), null=_exceeds(permuted, jsd), why=unknown
    )


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


def _exceeds(one: pd.Series, other: pd.Series) -> pd.Series:
    return (one > other).astype(np.float64).where(one.notna() & other.notna())
