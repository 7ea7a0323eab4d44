"""What it costs attention to move alone, and together with what it attends to: Meister et al. (2021)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

from attentest.experiments.description import Conclusion
from attentest.experiments.dispersion.cards import PAPER
from attentest.experiments.frozen_adversary import ABOUT
from attentest.experiments.performance import conclude as performance
from attentest.experiments.shared.attention_rate import chosen_rate, rate_card, start_card
from attentest.experiments.shared.numbered import numbered
from attentest.experiments.shared.score_cards import TITLES, UNDEFINED, UNITS, score_card
from attentest.experiments.shared.variants import Contest, scored, seed_difference
from attentest.experiments.trained_adversary.conclude import (
    DIVERGENCE,
    NATS,
    ONE_TOKEN,
    OTHERS,
    SEEDS,
    SHARE,
    TVD,
    apart_measures,
    mean_of_other_seeds,
)
from attentest.statistics.card import Card
from attentest.statistics.group_means import CONTROLS, Means
from attentest.statistics.interval import PerDraw, Weights
from attentest.statistics.record import Finding, ordered
from attentest.statistics.statistic import of_samples

EXPERIMENT = "frozen-adversary"
COLUMNS = (*performance.COLUMNS, "length", "base_predicted", "jsd", "tvd", "lambda")
FROZEN, FREE, UNFROZEN = KINDS = ("frozen lambda ", "free lambda ", "unfrozen lambda ")
# The paper gives no lambda but the divergence that was reached: those of Table 5, read off our curves.
PUBLISHED_JSD = (0.57, 0.61, 0.62, 0.64, 0.67)
NOT_ON_THE_CURVE = "one token, or not numbers, for an adversary of the sweep"
NOT_REACHED = "no adversary of the sweep attends so far from the base"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Of every adversary and every point beside: divergence, change of output, accuracy and its change.

    Groups are subjects of the rows, and `other seeds`, each text's mean over them. `frozen at 0.62` (or
    `free`, `unfrozen`) is what the curve over lambda has at that mean divergence.
    """
    rows = ordered(rows, COLUMNS)
    if (rows["subject"] != "trained").all():
        return []
    points = ordered(pd.concat([rows, mean_of_other_seeds(rows)], ignore_index=True), COLUMNS)
    points[["jsd", "tvd"]] = points[["jsd", "tvd"]].astype(np.float64)
    names = _names(points)
    means = Means(experiment=EXPERIMENT, rows=points, mode=mode, rng=rng)
    groups = [(name, points[points["subject"] == name]) for name in names]
    models = [name for name in names if name != OTHERS]
    contest = Contest(experiment=EXPERIMENT, rows=rows, mode=mode, rng=rng)
    # A fall that another seed might show says nothing.
    luck = -seed_difference(contest.of_seeds("accuracy", "trained"))
    found = means.of(apart_measures(points)[:2], groups)
    # Weights of a text's own were never learnt at any rate, though their rows begin as the base's do.
    learnt = points[~points["subject"].str.startswith((FREE, OTHERS))]
    found += means.of(chosen_rate(learnt), [(str(name), texts) for name, texts in learnt.groupby("subject")])
    found += scored(EXPERIMENT, rows, ["trained", *models], mode=mode, rng=rng, measures=("accuracy",))
    for name in models:
        found += contest.beyond("accuracy", name, ["trained"], name="accuracy-change", group=name, null=luck)
    return [*found, *_along_the_curves(rows, luck, mode, rng)]


def _names(points: pd.DataFrame) -> list[str]:
    """Adversaries by kind and lambda, then what they are compared with, as far as it was observed."""
    there = set(points["subject"])
    swept = [name for kind in KINDS for name in numbered(there, kind)]
    return [*swept, *(name for name in (OTHERS, *CONTROLS) if name in there)]


@final
@dataclass(frozen=True)
class Curve:
    """One seed's texts: the base in the first column, then the adversaries of one kind."""

    ids: Shaped[np.ndarray, " n"]
    jsd: Float[np.ndarray, "n point"]
    right: Float[np.ndarray, "n point"]

    def __len__(self) -> int:
        return len(self.ids)


def accuracy_at(divergence: float) -> Callable[[Curve, Weights], PerDraw]:
    """The accuracy at which the curve, followed from the base as lambda grows, first has this divergence.

    Between two neighbours it is a straight line. It may turn back: a larger lambda can end nearer to the base
    and answer worse, and whoever wants to look so far away takes the smaller one. NaN where the curve never
    gets there: nothing was observed.
    """

    def statistic(sample: Curve, weights: Weights) -> PerDraw:
        total = weights.sum(axis=1, keepdims=True)
        x, y = weights @ sample.jsd / total, weights @ sample.right / total
        there = x >= divergence
        after = np.maximum(there.argmax(axis=1), 1)[:, None]
        (x0, x1), (y0, y1) = (
            [np.take_along_axis(axis, at, axis=1)[:, 0] for at in (after - 1, after)] for axis in (x, y)
        )
        share = (divergence - x0) / np.where(x1 > x0, x1 - x0, 1.0)
        return np.where(there.any(axis=1), y0 + share * (y1 - y0), np.nan)

    return statistic


def change_at(divergence: float) -> Callable[[Curve, Weights], PerDraw]:
    """The same, less the accuracy of the base on the same texts."""
    accuracy = accuracy_at(divergence)

    def statistic(sample: Curve, weights: Weights) -> PerDraw:
        return accuracy(sample, weights) - weights @ sample.right[:, 0] / weights.sum(axis=1)

    return statistic


def _along_the_curves(
    rows: pd.DataFrame, luck: float, mode: str, rng: np.random.Generator
) -> Iterator[Finding]:
    chance = _chance(rows)
    for kind in KINDS:
        curves, asked = _curves(rows, kind)
        for divergence in PUBLISHED_JSD if asked else ():
            for measure, statistic, null in (
                ("accuracy", accuracy_at(divergence), chance),
                ("accuracy-change", change_at(divergence), luck),
            ):
                yield of_samples(
                    curves,
                    statistic,
                    left_out=(asked - sum(map(len, curves)), NOT_ON_THE_CURVE),
                    undefined=NOT_REACHED,
                    rng=rng,
                    experiment=EXPERIMENT,
                    measure=measure,
                    group=f"{kind.split()[0]} at {divergence:g}",
                    null=null,
                    mode=mode,
                )


def _chance(rows: pd.DataFrame) -> float:
    """The accuracy of always answering the commonest gold label."""
    gold = rows.loc[rows["subject"] == "trained"].drop_duplicates("id")["gold"]
    return float(gold.value_counts(normalize=True).iloc[0])


def _curves(rows: pd.DataFrame, kind: str) -> tuple[list[Curve], int]:
    """A curve for each seed that has adversaries of this kind, and how many texts were asked."""
    found, asked = [], 0
    right = (rows["predicted"] == rows["label"]).astype(np.float64)
    known = rows.assign(right=right.where(_numeric(rows)), jsd=rows["jsd"].astype(np.float64))
    for _, of_seed in known.groupby("seed"):
        swept = [*numbered(of_seed["subject"], kind)]
        names = ["trained", *swept]
        table = of_seed[of_seed["subject"].isin(names)]
        if not swept or "trained" not in set(table["subject"]):
            continue
        asked += table["id"].nunique()
        axes = [table.pivot(index="id", columns="subject", values=axis)[names] for axis in ("jsd", "right")]
        kept = axes[0].notna().all(axis=1) & axes[1].notna().all(axis=1)
        if kept.any():
            found.append(Curve(axes[0].index[kept].to_numpy(), *(axis[kept].to_numpy() for axis in axes)))
    return found, asked


def _numeric(rows: pd.DataFrame) -> pd.Series:
    finite = [bool(np.isfinite(np.asarray(each, dtype=np.float64)).all()) for each in rows["probabilities"]]
    return pd.Series(finite, index=rows.index)


TABLE = "Table 5. The loss is that of Wiegreffe & Pinter, KL(adversary || base); lambda is not given"


POINTS = (
    "; a group is an adversary by its lambda: frozen (a new attention trained within the base), free (weights"
    " of each text's own within the base), unfrozen (a model from scratch); or a point beside: other seeds"
    " (each text's mean over them) and the controls"
)


AT = (
    "; of a group such as `frozen at 0.62`, where the curve over lambda, straight between neighbours, first"
    " has that mean JSD of attention, from texts that all adversaries of the kind have"
)


CARDS: dict[str, Card] = {
    "frozen-adversary/attention-rate": rate_card(PAPER),
    "frozen-adversary/attention-start": start_card(PAPER),
    "frozen-adversary/attention-jsd": Card(
        measure="Divergence of an adversary's attention",
        formula=f"mean over texts of JSD(a_adversary, a_base){POINTS}",
        range=DIVERGENCE,
        direction="higher: it looks elsewhere",
        null=SEEDS,
        unit=NATS,
        paper=PAPER,
        section=TABLE,
        undefined_when=ONE_TOKEN,
    ),
    "frozen-adversary/output-tvd": Card(
        measure="Change of output of an adversary",
        formula=f"mean over texts of TVD(y_adversary, y_base), |y_a - y_b| of two classes{POINTS}",
        range=SHARE,
        direction="lower: it answers as the base does",
        null=SEEDS,
        unit=TVD,
        paper=PAPER,
        section="ours, beside Table 5: no divergence of attention bounds it (A19)",
        undefined_when=ONE_TOKEN,
    ),
    "frozen-adversary/accuracy": score_card(
        "accuracy",
        whose="of adversaries",
        groups=f"{POINTS[2:]}; and the base itself (trained){AT}",
        paper=PAPER,
        section=TABLE,
    ),
    "frozen-adversary/accuracy-change": Card(
        measure=f"Change of {TITLES['accuracy'].lower()} from the base",
        formula=f"{TITLES['accuracy']} of the adversary minus that of the base, by seed{POINTS}{AT}",
        range=(-1.0, 1.0),
        direction="below the null: attention cannot move there without losing what it carried",
        null="minus the mean absolute difference between two seeds of the base: a fall that means nothing",
        unit=f"difference of {UNITS['accuracy']}",
        paper=PAPER,
        section=TABLE,
        undefined_when=f"{UNDEFINED['accuracy']}; at a divergence that no adversary of the kind reaches",
    ),
}


CONCLUSION = Conclusion(conclude, version=3, about=ABOUT, cards=CARDS, columns=COLUMNS)
