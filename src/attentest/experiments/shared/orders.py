"""The order of ranks in one model, and what becomes of it in another that was trained from the same seed.

Two models are compared seed by seed: what a seed does to both cancels. Each is measured at its own number of
ranks; over the ranks that both have, the difference is told as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import pandas as pd
from scipy import stats

from attentest.experiments.information.conclude import NO_ORDER, NOT_A_NUMBER, SHORT, Ranks, settings
from attentest.statistics.estimates import OVERALL, group_asked
from attentest.statistics.finding import finding
from attentest.statistics.of_models import Measured, Number
from attentest.statistics.ranking_null import Taus, dealt, p_value, weighted_tau
from attentest.statistics.record import Finding
from attentest.statistics.tables import PerRank, plug_in, tables

OF_MODEL = ("k", "clusters", "small_clusters", "flags", "nulls")  # the same in all rows of a model
LISTS = ("attention", "symbols", "joint")
COLUMNS = ("seed", "subject", "id", "length", "max_attention", "entropy", *OF_MODEL, "output", *LISTS)
TRAINED = "trained"
FEW_TEXTS = "fewer texts than clusters"
UNPAIRED = f"{NO_ORDER}, in either model"
LITTLE = 0.005  # a tau that moves by less is the same as printed, to two decimals
NOTHING = np.zeros(0)


@final
@dataclass(frozen=True, eq=False)
class Order:
    """What each rank of one model tells, the attention it has, and the taus of orders that are luck."""

    information: PerRank
    attention: PerRank
    joint: PerRank  # told by one codebook of all ranks
    luck: Taus
    texts: int
    left_out: Counter[str]
    chosen: Mapping[str, Number]  # numbers of ranks and clusters

    @classmethod
    def of(cls, texts: pd.DataFrame, rng: np.random.Generator, *, with_luck: bool = True) -> Order:
        """From the rows of one model. Where nobody asks for luck there is its tau and no more: luck is nearly
        all of the work.
        """
        kept = texts["output"] >= 0
        few = texts["flags"].str.contains(FEW_TEXTS, regex=False)
        why = np.where(texts["length"] < texts["k"], SHORT, np.where(few, FEW_TEXTS, NOT_A_NUMBER))
        left_out, count = Counter(why[~kept].tolist()), int(kept.sum())
        ranks = Ranks(texts[kept]) if count else None
        if ranks is None or ranks.undefined:
            chosen = settings(texts) if count else {}
            return cls(NOTHING, NOTHING, NOTHING, np.full(1, math.nan), count, left_out, chosen)
        joint, luck = np.full(len(ranks.attention), math.nan), np.full(1, math.nan)
        if with_luck:
            joint = plug_in(tables(ranks.joint, ranks.output))
            by_luck = dealt(ranks.joint, ranks.output, ranks.draws, rng)
            luck = np.array([weighted_tau(one, ranks.attention) for one in by_luck])
        return cls(
            information=plug_in(ranks.counts),
            attention=ranks.attention,
            joint=joint,
            luck=luck,
            texts=count,
            left_out=left_out,
            chosen=settings(texts),
        )

    @cached_property
    def tau(self) -> float:
        """Agreement of information and attention."""
        return weighted_tau(self.information, self.attention)

    def down_to(self, ranks: int) -> float:
        """The same over the first ranks alone."""
        return weighted_tau(self.information[:ranks], self.attention[:ranks])

    @property
    def measured(self) -> Measured:
        """The model's numbers."""
        return Measured(
            numbers={
                "tau": Number(self.tau, float(self.luck.mean())),
                "tau-p": Number(p_value(self.tau, self.luck), 0.5),
                "tau-null-95": Number(float(np.quantile(self.luck, 0.95)), math.nan),
                "tau-joint": Number(weighted_tau(self.joint, self.attention), float(self.luck.mean())),
                **self.chosen,
            },
            texts=self.texts,
            left_out=self.left_out,
            undefined=NO_ORDER,
        )


def tau_of(texts: pd.DataFrame) -> float:
    """Tau of one model alone, without any draws: what a picture needs."""
    kept = texts["output"] >= 0
    ranks = Ranks(texts[kept]) if kept.any() else None
    if ranks is None or ranks.undefined:
        return math.nan
    return weighted_tau(plug_in(ranks.counts), ranks.attention)


Orders = Mapping[str, Mapping[Hashable, Order]]  # by subject, then by seed


def group_of(subject: str) -> str:
    """The group that a model's findings are in: the normal one speaks for all."""
    return OVERALL if subject == TRAINED else subject


def orders(rows: pd.DataFrame, rng: np.random.Generator) -> dict[str, dict[Hashable, Order]]:
    """Of every subject and seed."""
    found: dict[str, dict[Hashable, Order]] = {}
    for subject, of_subject in rows.groupby("subject"):
        own = found.setdefault(str(subject), {})
        for seed, texts in of_subject.groupby("seed"):
            own[seed] = Order.of(texts, rng, with_luck=group_asked(group_of(str(subject))))
    return found


def pairs(known: Orders, first: str, second: str) -> list[tuple[Order, Order]]:
    """Both orders of every seed that has both subjects."""
    return [(known[first][seed], known[second][seed]) for seed in known[first] if seed in known[second]]


def lost(normal: Order, other: Order) -> Measured:
    """What the other model's tau is less than the normal one's, beside two orders that are luck."""
    change, by_luck = normal.tau - other.tau, _differences(normal, other)
    shared = min(len(normal.attention), len(other.attention))
    numbers = {
        "tau-lost": Number(change, float(by_luck.mean())),
        "tau-lost-shared": Number(normal.down_to(shared) - other.down_to(shared), 0.0),
        "tau-lost-p": Number(p_value(abs(change), np.abs(by_luck)), 0.5),
        "not-fallen": Number(float(change < LITTLE), float((by_luck < LITTLE).mean())),
        "unchanged": Number(float(abs(change) < LITTLE), float((np.abs(by_luck) < LITTLE).mean())),
    }
    if math.isnan(change):
        numbers = dict.fromkeys(numbers, Number(math.nan, math.nan))
    return Measured(numbers=numbers, texts=other.texts, left_out=other.left_out, undefined=UNPAIRED)


def _differences(normal: Order, other: Order) -> Taus:
    """Of the draws of both; how many there are is the experiment's choice, the same for both."""
    draws = min(len(normal.luck), len(other.luck))
    return normal.luck[:draws] - other.luck[:draws]


def sign_test(changes: Sequence[tuple[float, int]], **about: Any) -> Finding:
    """Whether more seeds lose agreement than gain, exactly and from both sides; small changes say nothing.

    A change is what a seed loses, and from how many texts.
    """
    told = [(change, texts) for change, texts in changes if not math.isnan(change)]
    fallen, risen = (sum(sign * change >= LITTLE for change, _ in told) for sign in (1, -1))
    p = stats.binomtest(fallen, fallen + risen).pvalue if fallen + risen else 1.0
    excluded = sum(texts for change, texts in changes if math.isnan(change))
    return finding(
        (),
        measure="sign-p",
        estimate=float(p) if told else math.nan,
        n=sum(texts for _, texts in told),
        seeds=len(told),
        excluded=excluded,
        why=UNPAIRED if excluded else "",
        null=1.0,
        **about,
    )
