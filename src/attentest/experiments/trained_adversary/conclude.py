"""What it costs a whole model to look elsewhere: Wiegreffe & Pinter (2019), WP-4."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

from attentest.experiments.description import Conclusion
from attentest.experiments.performance import conclude as performance
from attentest.experiments.shared.score_cards import score_card
from attentest.experiments.shared.variants import scored
from attentest.experiments.shared.wiegreffe_pinter import (
    DIVERGENCE,
    NATS,
    ONE_TOKEN,
    PAPER,
    SHARE,
    TVD,
)
from attentest.experiments.trained_adversary import ABOUT
from attentest.statistics.card import Card
from attentest.statistics.envelope import envelope_height, lower_envelope
from attentest.statistics.group_means import CONTROLS, Group, Means, Measure, by_class, reasons
from attentest.statistics.interval import PerDraw, Weights
from attentest.statistics.record import Finding, ordered
from attentest.statistics.statistic import of_samples

EXPERIMENT = "trained-adversary"
COLUMNS = (*performance.COLUMNS, "length", "base_predicted", "jsd", "tvd", "lambda")
LAMBDA, SEED = "lambda ", "seed "  # how the names of adversaries and of other seeds begin
OTHERS, UNIFORM, EXACT, SEARCH = "other seeds", "uniform", "exact", "search"
SCORES = ("f1", "accuracy")
NOT_A_NUMBER = "weights or output are not numbers"
NOT_ON_THE_PLANE = "one token, or not numbers, for the point or for an adversary of the sweep"
NO_EDGE = "a sweep of one lambda says nothing of another divergence"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Of every adversary and every point beside: divergence, change of output, scores, place on the plane.

    All groups are subjects of the rows but `other seeds`, each text's mean over them. By class, which is the
    base's predicted one, there are divergence and change of output alone.
    """
    rows = ordered(rows, COLUMNS)
    if (rows["subject"] != "trained").all():
        return []
    points = ordered(pd.concat([rows, mean_of_other_seeds(rows)], ignore_index=True), COLUMNS)
    points[["jsd", "tvd"]] = points[["jsd", "tvd"]].astype(np.float64)
    groups = [(name, points[points["subject"] == name]) for name in _names(points)]
    means = Means(experiment=EXPERIMENT, rows=points, mode=mode, rng=rng)
    measures = apart_measures(points)
    scores = ["trained", *(name for name, _ in groups if name != OTHERS)]
    return [
        *means.of(measures, groups),
        *means.of(measures[:2], [part for group in groups for part in _classes(group)]),
        *scored(EXPERIMENT, rows, scores, mode=mode, rng=rng, measures=SCORES),
        *(_against_the_curve(points, name, mode, rng) for name, _ in groups),
    ]


def _names(points: pd.DataFrame) -> list[str]:
    """Adversaries by their lambda, then what they are compared with, as far as it was observed."""
    adversaries = points.loc[points["subject"].str.startswith(LAMBDA), ["lambda", "subject"]]
    swept = adversaries.drop_duplicates().sort_values("lambda")["subject"].tolist()
    others = (OTHERS, UNIFORM, EXACT, SEARCH, *CONTROLS)
    return [*swept, *(name for name in others if (points["subject"] == name).any())]


def mean_of_other_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a text: what another seed does to it on average."""
    seeds = rows[rows["subject"].str.startswith(SEED)]
    first = seeds.drop_duplicates(["seed", "id"]).set_index(["seed", "id"])
    apart = seeds.groupby(["seed", "id"])[["jsd", "tvd"]].mean()
    return first.assign(subject=OTHERS, jsd=apart["jsd"], tvd=apart["tvd"]).reset_index()


def apart_measures(points: pd.DataFrame) -> list[Measure]:
    """How far attention and output are from the base's, beside what other seeds do to the same texts."""
    why = reasons(points, NOT_A_NUMBER)
    # A text of one token has an output but no choice of attention: on the plane it is no point.
    jsd, tvd = points["jsd"], points["tvd"].where(points["jsd"].notna())
    return [
        Measure(name=name, values=values, null=_of_other_seeds(points, values), why=why)
        for name, values in (("attention-jsd", jsd), ("output-tvd", tvd), ("output-tvd-halved", tvd / 2))
    ]


def _of_other_seeds(points: pd.DataFrame, values: pd.Series) -> pd.Series:
    """Beside every row what other seeds do to the same text; none beside themselves."""
    who = pd.MultiIndex.from_frame(points[["seed", "id"]])
    others = points["subject"] == OTHERS
    found = pd.Series(values[others].to_numpy(), index=who[others]).reindex(who)
    return pd.Series(found.to_numpy(), index=points.index).where(~others, math.nan)


def _classes(group: Group) -> list[Group]:
    name, texts = group
    return [(f"{name}, {part}", rows) for part, rows in by_class(texts, "base_predicted", "predicted")]


@final
@dataclass(frozen=True)
class Plane:
    """One seed's texts on the plane: the sweep's adversaries in the first columns, a point in the last."""

    ids: Shaped[np.ndarray, " n"]
    jsd: Float[np.ndarray, "n point"]
    tvd: Float[np.ndarray, "n point"]

    def __len__(self) -> int:
        return len(self.ids)


def above_envelope(sample: Plane, weights: Weights) -> PerDraw:
    """How far the mean of the last point lies above the lower convex envelope of the other means."""
    total = weights.sum(axis=1, keepdims=True)
    x, y = weights @ sample.jsd / total, weights @ sample.tvd / total
    heights = [envelope_height(lower_envelope(xs[:-1], ys[:-1]), xs[-1]) for xs, ys in zip(x, y, strict=True)]
    return y[:, -1] - np.array(heights)


def _against_the_curve(points: pd.DataFrame, name: str, mode: str, rng: np.random.Generator) -> Finding:
    """The vertical distance of a point from the sweep's envelope, from the texts that both have."""
    planes = _planes(points, name)
    missing = int((points["subject"] == name).sum()) - sum(map(len, planes))
    return of_samples(
        planes,
        above_envelope,
        left_out=(missing, NOT_ON_THE_PLANE),
        undefined=NO_EDGE,
        rng=rng,
        experiment=EXPERIMENT,
        measure="tvd-above-envelope",
        group=name,
        null=0.0,
        mode=mode,
    )


def _planes(points: pd.DataFrame, name: str) -> list[Plane]:
    """One for each seed that has the point and a sweep."""
    swept = [other for other in _names(points) if other.startswith(LAMBDA)]
    found = []
    for _, of_seed in points.groupby("seed"):
        table = of_seed[of_seed["subject"].isin([*swept, name])]
        axes = [_columns(table, axis, [*swept, name]) for axis in ("jsd", "tvd")]
        kept = axes[0].notna().all(axis=1) & axes[1].notna().all(axis=1)
        if swept and kept.any():
            found.append(Plane(axes[0].index[kept].to_numpy(), *(axis[kept].to_numpy() for axis in axes)))
    return found


def _columns(table: pd.DataFrame, axis: str, names: Sequence[str]) -> pd.DataFrame:
    """A column a point, a row a text; an adversary of the sweep that is itself asked for stands twice."""
    return table.pivot(index="id", columns="subject", values=axis).reindex(columns=list(names))


# --- the cards

TABLE, FIGURE = "Table 4", "the figure of divergence against change of output"
POINTS = (
    "; a group is a trained adversary by its lambda, or a point beside: other seeds (each text's mean over"
    " them), uniform attention, the strongest adversary of each text (exact), the published search's best"
    " step (search), and the controls"
)
SEEDS = "the same for other seeds on the same texts: what training anew does; they have none themselves"

CARDS: dict[str, Card] = {
    "trained-adversary/attention-jsd": Card(
        measure="Divergence of an adversary's attention",
        formula=f"mean over texts of JSD(a_adversary, a_base){POINTS}",
        range=DIVERGENCE,
        direction="higher: it looks elsewhere",
        null=SEEDS,
        unit=NATS,
        paper=PAPER,
        section=f"{TABLE}, and {FIGURE}",
        undefined_when=ONE_TOKEN,
    ),
    "trained-adversary/output-tvd": Card(
        measure="Change of output of an adversary",
        formula=f"mean over texts of TVD(y_adversary, y_base), |y_a - y_b| of two classes{POINTS}",
        range=SHARE,
        direction="lower: it answers as the base does",
        null=SEEDS,
        unit=TVD,
        paper=PAPER,
        section=f"{FIGURE}; not the unit of the published numbers, see the halved",
        undefined_when=ONE_TOKEN,
    ),
    "trained-adversary/output-tvd-halved": Card(
        measure="Change of output of an adversary, halved",
        formula=f"half the mean over texts of TVD(y_adversary, y_base){POINTS}",
        range=(0.0, 0.5),
        direction="lower: it answers as the base does",
        null=SEEDS,
        unit=f"half of {TVD}: that of the published code, so probably of the published numbers (A6)",
        paper=PAPER,
        section=TABLE,
        undefined_when=ONE_TOKEN,
    ),
    "trained-adversary/tvd-above-envelope": Card(
        measure="Change of output above that of trained adversaries at the same divergence",
        formula="mean TVD of a point minus the height, at its mean JSD, of the lower convex envelope of the"
        " trained adversaries' (mean JSD, mean TVD), by seed, from the texts that all of them have. Beyond"
        " its ends the envelope's last edge is continued: no convex curve through the same corners is lower"
        f"{POINTS}",
        range=(-1.0, 1.0),
        direction="below 0: it moves attention as far at less cost than any mixture of trained adversaries",
        null="0: on the curve",
        unit=f"difference of {TVD}",
        paper=PAPER,
        section=f"{FIGURE}, where it is seen; the envelope is ours",
        undefined_when="one token or no numbers; or a sweep of one lambda, which has no edge to continue",
    ),
    **{
        f"trained-adversary/{measure}": score_card(
            measure,
            whose="of trained adversaries",
            groups=f"{POINTS[2:]}; and the base itself (trained)",
            paper=PAPER,
            section=TABLE,
        )
        for measure in ("f1", "accuracy")
    },
}

CONCLUSION = Conclusion(conclude, version=3, about=ABOUT, cards=CARDS, columns=COLUMNS)
