"""How many items must go before the decision flips: the set removal of Serrano & Smith (2019, SS-3).

Rankings are compared on the texts that all of them flip (A18); as published, each drops its own. A ranking
stands beside the random one on the same texts, and a difference between two rankings beside the same
difference where hidden states have changed places beneath the weights: large weights flip a decision
sooner than small ones even if it is chance where they lie.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attentest.experiments.description import Conclusion
from attentest.experiments.removal import ABOUT
from attentest.experiments.removal.cards import ATTENTION, CARDS, PAIRS, QUANTITIES, RANKINGS
from attentest.statistics.group_means import Group, Means, Measure, by_class, of_controls
from attentest.statistics.interval import PerDraw, Weights, interval_of_statistic, over_seeds
from attentest.statistics.record import Finding, ordered, seeds_as_json

SURVIVAL = (0.1, 0.25, 0.5, 0.75)  # shares of the items
MEASURED = ("smallest", *(f"{what}_{ranking}" for what in ("count", "mass") for ranking in RANKINGS))
NUMBERS = ("items", *MEASURED, *(f"null_{name}" for name in MEASURED))
COLUMNS = ("seed", "subject", "id", "label", "predicted", "length", "counts_random", *NUMBERS)
ONE_ITEM = "one item: every ranking is the same"
UNDEFINED = "attention or output is not a number"
NEVER = "never flips under some ranking"
NEVER_ITSELF = "never flips under this ranking"
NOT_AFFINE = "no exact smallest flip: the decision is not affine"
NO_FLIP = "no removal flips the decision, or not under every ranking"


def weighted_median(sample: Float[np.ndarray, " n"], weights: Weights) -> PerDraw:
    """The middle of a (re)sample; of an even number the mean of the middle two."""
    order = np.argsort(sample, kind="stable")
    below = weights[:, order].cumsum(axis=1)
    half = below[:, -1:] / 2.0
    lower, upper = (below >= half).argmax(axis=1), (below > half).argmax(axis=1)
    return 0.5 * (sample[order][lower] + sample[order][upper])


def means_and_medians(means: Means, measures: Sequence[Measure], groups: Iterable[Group]) -> list[Finding]:
    """Every measure in every group as a mean; of attention's also the mean over seeds of its median."""
    named = {measure.name: measure for measure in measures}
    found = []
    for group, texts in groups:
        for mean in means.of(measures, [(group, texts)]):
            found.append(mean)
            if mean.measure.endswith(ATTENTION):
                found.append(_median(means, named[mean.measure], texts, mean))
    return found


def _median(means: Means, measure: Measure, texts: pd.DataFrame, mean: Finding) -> Finding:
    defined = measure.values.loc[texts.index.intersection(measure.values.index)].dropna()
    seeds, ids = (means.rows.loc[defined.index, name] for name in ("seed", "id"))
    samples = [part.to_numpy(dtype=np.float64) for _, part in defined.groupby(seeds)]
    names = [part.to_numpy() for _, part in ids.groupby(seeds)]
    of_seeds = [_middle(sample) for sample in samples]
    estimate, seed_std = over_seeds(of_seeds)
    interval = interval_of_statistic(samples, names, weighted_median, rng=means.rng)
    null = measure.null
    if isinstance(null, pd.Series):
        beside = null.loc[defined.index].dropna()
        null = over_seeds([_middle(part.to_numpy()) for _, part in beside.groupby(seeds)])[0]
    return replace(
        mean,
        measure=f"median-{mean.measure}",
        estimate=estimate,
        std=math.nan,
        seed_std=seed_std,
        null=null,
        by_seed=seeds_as_json(of_seeds),
        **interval._asdict(),
    )


def _middle(sample: Float[np.ndarray, " n"]) -> float:
    return float(np.median(sample))


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Means over texts, overall, for the controls and by predicted class; of removals the medians, too."""
    rows = ordered(rows, COLUMNS)
    trained = rows[rows["subject"] == "trained"]
    if trained.empty:
        return []
    flips = Flips(rows, published=mode == "as-published")
    means = Means(experiment="removal", rows=rows, mode=mode, rng=rng)
    whole, classes = [("overall", trained), *of_controls(rows)], by_class(trained, "predicted", "predicted")
    levels, others = [*_levels(flips)], [*_never(flips), *_differences(flips)]
    return [
        *means_and_medians(means, levels, whole),
        *means.of([*others, *_survival(flips), *_optimum(flips), *_smallest(flips)], whole),
        *means.of([*levels, *others], classes),
    ]


@final
@dataclass(frozen=True, eq=False)
class Flips:
    """Observed rows as aligned columns; what a ranking has no value for is NaN."""

    rows: pd.DataFrame
    published: bool

    @cached_property
    def numbers(self) -> pd.DataFrame:
        """The columns as floats."""
        return self.rows[list(NUMBERS)].astype(np.float64)

    @cached_property
    def asked(self) -> pd.Series:
        """Texts with a choice: two items or more. The published figure has those of one item, too."""
        several = (self.numbers["items"] > 1) | self.published
        return several & self.numbers["count_random"].notna()

    @cached_property
    def solved(self) -> pd.Series:
        """Texts that have a smallest flip."""
        return self.asked & (self.numbers["smallest"] > 0)

    @cached_property
    def why(self) -> pd.Series:
        """Why a text is not asked; and else that it never flips."""
        one, number = self.numbers["items"] < 2, self.numbers["count_random"].notna()
        otherwise = NEVER_ITSELF if self.published else NEVER
        reasons = [~number, one & (not self.published)]
        return pd.Series(np.select(reasons, [UNDEFINED, ONE_ITEM], otherwise), index=self.rows.index)

    def compared(self, ranking: str, null: str = "") -> pd.Series:
        """Whether the text flips under all rankings; as published, under this one."""
        rankings = (ranking,) if self.published else (*RANKINGS,)
        counts = self.numbers[[f"{null}count_{one}" for one in rankings]]
        return self.asked & (counts > 0).all(axis=1)

    def removed(self, quantity: str, ranking: str, null: str = "") -> pd.Series:
        """The fraction of items, or the mass of attention, that is gone at the first flip."""
        if quantity == "mass":
            values = self.numbers[f"{null}mass_{ranking}"]
        else:
            values = self.numbers[f"{null}count_{ranking}"] / self.numbers["items"]
        return values.where(self.compared(ranking, null))

    def counts(self, ranking: str) -> np.ndarray:
        """The count of every order of the ranking: one, or several at random."""
        if ranking != "random":
            return self.numbers[[f"count_{ranking}"]].to_numpy()
        return np.array(self.rows["counts_random"].tolist(), dtype=np.float64)

    def share(self, of_orders: np.ndarray, where: pd.Series) -> pd.Series:
        """The share of a text's orders of which something holds."""
        return pd.Series(of_orders.mean(axis=1), index=self.rows.index).where(where)


def _levels(flips: Flips) -> Iterator[Measure]:
    for quantity in QUANTITIES:
        null = flips.removed(quantity, "random")
        for ranking in RANKINGS:
            values = flips.removed(quantity, ranking)
            yield Measure(name=f"{quantity}-{ranking}", values=values, null=null, why=flips.why)


def _differences(flips: Flips) -> Iterator[Measure]:
    for quantity, one, other in PAIRS:
        name = f"{quantity}-{one}-minus-{other}"
        values, null = (
            flips.removed(quantity, one, of) - flips.removed(quantity, other, of) for of in ("", "null_")
        )
        yield Measure(name=name, values=values, null=null, why=flips.why)
        if one == ATTENTION:
            yield Measure(name=f"{name}-excess", values=values - null, null=0.0, why=flips.why)


def _never(flips: Flips) -> Iterator[Measure]:
    """What A18 asks to be told: how many texts drop out."""
    shares = {ranking: flips.share(flips.counts(ranking) < 0, flips.asked) for ranking in RANKINGS}
    for ranking, values in shares.items():
        yield Measure(name=f"never-flips-{ranking}", values=values, null=shares["random"], why=flips.why)


def _survival(flips: Flips) -> Iterator[Measure]:
    """Of all texts, those that never flip among them: nothing is dropped, so nothing is selected."""
    items = flips.numbers["items"].to_numpy()[:, None]
    for share in SURVIVAL:
        alive = {
            ranking: flips.share((counts < 0) | (counts > share * items), flips.asked)
            for ranking, counts in ((ranking, flips.counts(ranking)) for ranking in RANKINGS)
        }
        for ranking, values in alive.items():
            name = f"unflipped-{ranking}@{share:g}"
            yield Measure(name=name, values=values, null=alive["random"], why=flips.why)


def _optimum(flips: Flips) -> Iterator[Measure]:
    """How often each ranking is at the exact smallest flip, and how far from it attention is."""
    smallest, why = flips.numbers["smallest"], _why_not_solved(flips)
    own, null = (
        flips.numbers[f"count_{ranking}"].where(flips.compared(ranking) & flips.solved)
        for ranking in (ATTENTION, "random")
    )
    yield Measure(name=f"excess-{ATTENTION}", values=own - smallest, null=null - smallest, why=why)
    yield Measure(name=f"ratio-{ATTENTION}", values=own / smallest, null=null / smallest, why=why)
    hits = {
        ranking: flips.share(flips.counts(ranking) == smallest.to_numpy()[:, None], flips.solved)
        for ranking in RANKINGS
    }
    for ranking, values in hits.items():
        yield Measure(name=f"at-optimum-{ranking}", values=values, null=hits["random"], why=why)


def _smallest(flips: Flips) -> Iterator[Measure]:
    """The exact smallest flip itself, and how many texts have none."""
    items, why = flips.numbers["items"], _why_not_solved(flips)
    own, null = (flips.numbers[name].where(flips.asked) for name in ("smallest", "null_smallest"))
    fractions = [counts.where(counts > 0) / items for counts in (own, null)]
    yield Measure(name="smallest-fraction", values=fractions[0], null=fractions[1], why=why)
    none = [(counts == 0).astype(np.float64).where(counts.notna()) for counts in (own, null)]
    yield Measure(name="unflippable", values=none[0], null=none[1], why=why)


def _why_not_solved(flips: Flips) -> pd.Series:
    why = flips.why.where(~flips.asked, NO_FLIP)
    return why.mask(flips.asked & flips.numbers["smallest"].isna(), NOT_AFFINE)


CONCLUSION = Conclusion(conclude, version=3, about=ABOUT, cards=CARDS, columns=COLUMNS)
