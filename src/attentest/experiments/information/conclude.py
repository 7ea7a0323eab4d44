"""Do the words that get more attention tell more about the output? Wen et al. (2022), WE-1 and WE-5.

Each text's tokens are ranked by attention. At every rank hidden states are symbols, as the output is, and
their mutual information is set beside the mean attention of the rank.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import digamma

from attentest.experiments.description import Conclusion
from attentest.experiments.information import ABOUT
from attentest.experiments.information.cards import CARDS
from attentest.statistics.estimates import group_asked, nulls_asked
from attentest.statistics.group_means import Means, Measure, of_controls, reasons
from attentest.statistics.of_models import Measured, Number, of_models
from attentest.statistics.ranking_null import dealt, p_value, scipy_tau, weighted_tau
from attentest.statistics.record import Finding, ordered
from attentest.statistics.tables import (
    PerRank,
    Tables,
    entropy,
    floors,
    miller_madow,
    plug_in,
    standard_error,
    tables,
)

EXPERIMENT = "information"
LISTS = ("attention", "symbols", "joint", "alike", "within")  # a number for each of the text's first k ranks
OF_MODEL = ("k", "clusters", "small_clusters", "flags", "nulls")  # the same in all its rows
COLUMNS = ("seed", "subject", "id", "length", "max_attention", "entropy", *OF_MODEL, "output", *LISTS)
SHORT = "fewer tokens than ranks"
NOT_A_NUMBER = "attention or output is not a number"
NO_ORDER = "one output symbol, flat attention, or too few ranks for an order"
ABSENT = "the model is compared at fewer ranks"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Agreement of information and attention, both at every rank, and how flat attention is.

    Of the trained models and of the controls; by class there is nothing, since classes are what is told.
    """
    rows = ordered(rows, COLUMNS)
    trained = rows[rows["subject"] == "trained"]
    if trained.empty:
        return []
    groups = [("overall", trained), *of_controls(rows)]
    found = []
    for group, texts in groups:
        if not group_asked(group):
            continue
        models = [measured(of_seed, rng) for _, of_seed in texts.groupby("seed")]
        found += of_models(models, absent=ABSENT, experiment=EXPERIMENT, group=group, mode=mode)
    means = Means(experiment=EXPERIMENT, rows=rows, mode=mode, rng=rng)
    return [*found, *means.of(_flatness(rows), groups)]


def measured(texts: pd.DataFrame, rng: np.random.Generator) -> Measured:
    """All numbers of one model; texts that are too short for its ranks are left out."""
    kept = texts["output"] >= 0
    why = np.where(texts["length"] < texts["k"], SHORT, NOT_A_NUMBER)
    ranks = Ranks(texts[kept]) if kept.any() else None
    numbers = {} if ranks is None else {**settings(texts), **_told(ranks, rng)}
    if ranks is not None and ranks.undefined:
        numbers |= dict.fromkeys(numbers.keys() - SETTINGS, Number(math.nan, math.nan))
    return Measured(
        numbers=numbers, texts=int(kept.sum()), left_out=Counter(why[~kept].tolist()), undefined=NO_ORDER
    )


def nearest_neighbour(
    alike: Int[np.ndarray, "text rank"],
    within: Int[np.ndarray, "text rank"],
    output: Int[np.ndarray, " text"],
) -> Float[np.ndarray, " rank"]:
    """I(X; Y) = psi(n) - <psi(n_y)> + <psi(alike)> - <psi(within)>, in nats; signed, since it is unbiased.

    Around each text is the ball that just holds its k-th neighbour of the same output: it holds `alike` texts
    of that output and `within` of any. Where the output matters, few of the others are of another one. A text
    whose output nobody shares has no such neighbour and is left out.
    """
    shared = np.bincount(output)[output]
    kept = shared > 1
    if not kept.any():
        return np.full(alike.shape[1], np.nan)
    balls = digamma(alike[kept]) - digamma(within[kept])
    return digamma(kept.sum()) - digamma(shared[kept]).mean() + balls.mean(axis=0)


@final
@dataclass(frozen=True, eq=False)
class Ranks:
    """One model's texts, long enough all of them, as arrays of texts by ranks."""

    rows: pd.DataFrame

    def array(self, column: str) -> np.ndarray:
        """A list column as one array."""
        return np.stack(self.rows[column].map(np.asarray).tolist())

    @cached_property
    def output(self) -> Int[np.ndarray, " text"]:
        """What the model said, as symbols."""
        return self.rows["output"].to_numpy(dtype=np.int64)

    @cached_property
    def weights(self) -> Float[np.ndarray, "text rank"]:
        """The attention of each text, the largest first."""
        return self.array("attention")

    @cached_property
    def attention(self) -> PerRank:
        """The mean weight of each rank."""
        return self.weights.astype(np.float64).mean(axis=0)

    @cached_property
    def symbols(self) -> Int[np.ndarray, "text rank"]:
        """By the codebook of each rank."""
        return self.array("symbols").astype(np.int64)

    @cached_property
    def joint(self) -> Int[np.ndarray, "text rank"]:
        """By the one codebook of all ranks."""
        return self.array("joint").astype(np.int64)

    @cached_property
    def counts(self) -> Tables:
        """Symbols against outputs."""
        return tables(self.symbols, self.output)

    @cached_property
    def by_neighbours(self) -> PerRank:
        """Information without clusters."""
        return nearest_neighbour(
            self.array("alike").astype(np.int64), self.array("within").astype(np.int64), self.output
        )

    @property
    def draws(self) -> int:
        """How often each null is drawn."""
        return int(self.rows["nulls"].iloc[0])

    @property
    def undefined(self) -> bool:
        """Whether the model says the same of every text, or attention is flat, so that ranks are places."""
        return len(np.unique(self.output)) < 2 or np.allclose(
            self.weights[:, 0], self.weights[:, -1], rtol=1e-5, atol=0
        )


def settings(texts: pd.DataFrame) -> dict[str, Number]:
    """What was chosen for the model, and whether the choice is doubtful."""
    first = texts.iloc[0]
    return {
        "ranks": Number(float(first["k"]), math.nan),
        "clusters": Number(float(first["clusters"]), math.nan),
        "small-clusters": Number(float(first["small_clusters"]), 0.0),
        "flagged": Number(float(bool(first["flags"])), 0.0),
    }


SETTINGS = {"ranks", "clusters", "small-clusters", "flagged"}


def _told(ranks: Ranks, rng: np.random.Generator) -> dict[str, Number]:
    by_luck = dealt(ranks.joint, ranks.output, ranks.draws, rng)
    noise, corrected_noise = floors(ranks.symbols, ranks.output, ranks.draws, rng)
    return {**_orders(ranks, by_luck, noise), **_curves(ranks, noise, corrected_noise)}


def _orders(ranks: Ranks, by_luck: Float[np.ndarray, "draw rank"], floor: PerRank) -> dict[str, Number]:
    """How information and attention agree, beside orders that are luck.

    States of some ranks fill their clusters more evenly than those of others, and so have a higher floor:
    the floor by itself has an order. Above it there is none where states tell nothing.
    """
    attention, joint = ranks.attention, plug_in(tables(ranks.joint, ranks.output))
    null = np.array([weighted_tau(one, attention) for one in by_luck])
    # Its draws decide no estimate, as those of our own tau decide p.
    null_scipy = np.array([scipy_tau(one, attention) for one in by_luck] if nulls_asked() else math.nan)
    own, of_joint = weighted_tau(plug_in(ranks.counts), attention), weighted_tau(joint, attention)
    above = weighted_tau(plug_in(ranks.counts) - floor, attention)
    luck = float(null.mean())
    return {
        "tau": Number(own, luck),
        "tau-p": Number(p_value(own, null), 0.5),
        "tau-joint": Number(of_joint, luck),
        "tau-joint-p": Number(p_value(of_joint, null), 0.5),
        "tau-above-floor": Number(above, luck),
        "tau-above-floor-p": Number(p_value(above, null), 0.5),
        "tau-of-floor": Number(weighted_tau(floor, attention), luck),
        "tau-null-95": Number(float(np.quantile(null, 0.95)), math.nan),
        "tau-scipy": Number(scipy_tau(plug_in(ranks.counts), attention), float(null_scipy.mean())),
        "tau-knn": Number(weighted_tau(ranks.by_neighbours, attention), luck),
        **_by_rank("mi-joint", joint, by_luck.mean(axis=0)),
    }


def _curves(ranks: Ranks, noise: PerRank, corrected_noise: PerRank) -> dict[str, Number]:
    """Information and attention at each rank."""
    information, zero = plug_in(ranks.counts), np.zeros(len(ranks.attention))
    uniform = np.full(len(zero), (1 / ranks.rows["length"]).mean())
    return {
        "output-entropy": Number(entropy(ranks.output), math.nan),
        **_by_rank("mi", information, noise),
        **_by_rank("mi-corrected", miller_madow(ranks.counts), corrected_noise, standard_error(ranks.counts)),
        **_by_rank("mi-knn", ranks.by_neighbours, zero),
        **_by_rank("attention", ranks.attention, uniform),
    }


def _by_rank(
    name: str, values: PerRank, nulls: PerRank, errors: Float[np.ndarray, " rank"] | None = None
) -> dict[str, Number]:
    spread = np.full(len(values), math.nan) if errors is None else errors
    each = zip(values.tolist(), nulls.tolist(), spread.tolist(), strict=True)
    return {f"{name}@{rank}": Number(*one) for rank, one in enumerate(each, start=1)}


def _flatness(rows: pd.DataFrame) -> list[Measure]:
    """Of every text, ranked or not: whether flat attention goes with little agreement (WE-5)."""
    why = reasons(rows, NOT_A_NUMBER)
    largest, flat = (rows[name].astype(np.float64) for name in ("max_attention", "entropy"))
    return [
        Measure(name="attention-entropy", values=flat, null=1.0, why=why),
        Measure(name="max-attention", values=largest.where(flat.notna()), null=1 / rows["length"], why=why),
    ]


CONCLUSION = Conclusion(conclude, version=4, about=ABOUT, cards=CARDS, columns=COLUMNS)
