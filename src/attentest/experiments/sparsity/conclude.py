"""Whether sparser attention makes importance sparser, and attention a better account of it (ME-2, ME-3).

Means of every model of a sweep over lambda, each beside its untrained twin: what the projection brings about
by itself. Then rank correlations over the sweep, one point a trained model: of lambda, and of the sparsity
that attention really has, with the entropy of importance and with attention's agreement with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
import pandas as pd
from jaxtyping import Float, Shaped

from attentest.evidence.importances.names import IN_ROWS
from attentest.experiments.description import Conclusion
from attentest.experiments.dispersion.conclude import NO_ATTENTION, NOT_SPREAD, SUPPORT, unranked
from attentest.experiments.importance.conclude import NO_PARTNER, NULLS, larger_null
from attentest.experiments.shared.attention_rate import chosen_rate
from attentest.experiments.sparsity import ABOUT
from attentest.experiments.sparsity.cards import CARDS
from attentest.statistics.group_means import Group, Means, Measure, of_controls, reasons
from attentest.statistics.interval import PerDraw, Weights, over_seeds, value_of
from attentest.statistics.rank_agreement import kendalls
from attentest.statistics.record import Finding, ordered
from attentest.statistics.statistic import of_samples

EXPERIMENT = "sparsity"
LAMBDA, SOFTMAX = "lambda ", "softmax"  # how the names of the sweep's models begin, and the one beside them
TWIN = "untrained "  # goes before the name of a model that was not trained
SWEEP = "sweep"  # the group of what is said of all its models together
NUMBERS = (
    *("max_attention", "support", "entropy_attention"),
    *(f"entropy_{name}" for name in IN_ROWS),
    *(f"tau_{name}{where}" for name in IN_ROWS for where in SUPPORT),
    *(
        f"{column}{where}"
        for column in ("tau_loo_held", *(f"{null}_tau_loo" for null in NULLS))
        for where in SUPPORT
    ),
)
COLUMNS = ("seed", "subject", "id", "length", "lambda", *NUMBERS)
# What is correlated, by the measure's part of the name: how sparse a model is, and what that may come to.
SPARSER = {"lambda": "lambda", "support": "support_share", "attention-entropy": "entropy_attention"}
OUTCOMES = {
    **{f"entropy-{name}": f"entropy_{name}" for name in IN_ROWS},
    **{f"tau-{name}{named}": f"tau_{name}{where}" for name in IN_ROWS for where, named in SUPPORT.items()},
}
NO_MODEL = "no model of the sweep has a value"
NO_ORDER = "fewer than two models with values, or all alike"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """The means of every model and both controls, and the correlations over the sweep."""
    rows = ordered(rows, COLUMNS)
    if (rows["subject"] != "trained").all():
        return []
    numbers = rows[["length", "lambda", *NUMBERS]].astype(np.float64)
    # A text of one token is attended to wholly, whatever the projection: it says nothing of sparsity.
    several = numbers.where(numbers["length"] > 1)
    numbers = numbers.assign(support_share=several["support"] / several["length"])
    means = Means(experiment=EXPERIMENT, rows=rows, mode=mode, rng=rng)
    found = []
    for group, twin in _groups(rows):
        measures = _measures(rows, numbers, means, twin)
        nulled = _beside_nulls(rows, numbers, means, group[1].index)
        found += means.of([*measures, *nulled, *chosen_rate(rows)], [group])
    for against in SPARSER:
        for outcome in OUTCOMES:
            found += _correlated(rows, numbers, against, outcome, mode, rng)
    return found


def _groups(rows: pd.DataFrame) -> Iterator[tuple[Group, pd.Index]]:
    """Every model with the rows of its untrained twin; controls share that of the subject."""
    known = rows.drop_duplicates("subject")
    swept = known[known["subject"].str.startswith(LAMBDA)].sort_values("lambda")["subject"]
    others = [name for name in (SOFTMAX, *swept) if (rows["subject"] == name).any()]
    own = rows.index[rows["subject"] == TWIN.strip()]
    yield ("overall", rows[rows["subject"] == "trained"]), own
    for name in others:
        yield (name, rows[rows["subject"] == name]), rows.index[rows["subject"] == TWIN + name]
    for name, texts in of_controls(rows):
        yield (name, texts), own[:0] if name == TWIN.strip() else own


def _measures(rows: pd.DataFrame, numbers: pd.DataFrame, means: Means, twin: pd.Index) -> Iterator[Measure]:
    """Sparsity, entropies and agreements; all but leave-one-out's agreement have the twin for a null."""
    several = numbers.where((numbers["length"] > 1) & numbers["max_attention"].notna())
    beside = {
        "max-attention": (several["max_attention"], reasons(rows, NO_ATTENTION)),
        "support": (several["support"], reasons(rows, NO_ATTENTION)),
        "support-share": (several["support_share"], reasons(rows, NO_ATTENTION)),
        **{
            f"entropy-{name}": (numbers[f"entropy_{name}"], reasons(rows, NOT_SPREAD))
            for name in ("attention", *IN_ROWS)
        },
        **{
            f"tau-gradient{named}": (numbers[f"tau_gradient{where}"], unranked(rows, numbers, where))
            for where, named in SUPPORT.items()
        },
    }
    for name, (values, why) in beside.items():
        yield Measure(name=name, values=values, null=means.mean(values.loc[twin]), why=why)


def _beside_nulls(
    rows: pd.DataFrame, numbers: pd.DataFrame, means: Means, texts: pd.Index
) -> Iterator[Measure]:
    """Leave-one-out's agreement, as published and with scores held, as in its nulls."""
    for where, named in SUPPORT.items():
        null, why = larger_null(numbers, f"loo{where}", means, texts), unranked(rows, numbers, where)
        tau, drawn = numbers[f"tau_loo_held{where}"], numbers[f"{null}_tau_loo{where}"]
        missing = why.where(drawn.notna() | tau.isna(), NO_PARTNER)
        yield Measure(name=f"tau-loo{named}", values=numbers[f"tau_loo{where}"], null=math.nan, why=why)
        yield Measure(name=f"tau-loo-held{named}", values=tau, null=drawn, why=why)
        yield Measure(name=f"tau-loo{named}-excess", values=tau - drawn, null=0.0, why=missing)


@final
@dataclass(frozen=True)
class Sweep:
    """One seed's texts under every model: how sparse it is, and what came of it; NaN where undefined."""

    ids: Shaped[np.ndarray, " n"]
    sparser: Float[np.ndarray, "n model"]
    outcome: Float[np.ndarray, "n model"]

    def __len__(self) -> int:
        return len(self.ids)


PerModel: TypeAlias = Float[np.ndarray, "draw model"]


def of_means(correlation: Callable[[PerModel, PerModel], PerDraw]) -> Callable[[Sweep, Weights], PerDraw]:
    """The correlation of the models' means, each over the texts that it has a value for."""

    def statistic(sample: Sweep, weights: Weights) -> PerDraw:
        return correlation(_means(sample.sparser, weights), _means(sample.outcome, weights))

    return statistic


def _means(values: Float[np.ndarray, "n model"], weights: Weights) -> PerModel:
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):  # a draw without a text of some model has no mean of it
        return weights @ np.where(known, values, 0.0) / (weights @ known.astype(np.float64))


def kendall(x: PerModel, y: PerModel) -> PerDraw:
    """Tau-b of each row."""
    return kendalls(x, y, np.full(len(x), x.shape[1]))[0]


def _correlated(
    rows: pd.DataFrame, numbers: pd.DataFrame, against: str, outcome: str, mode: str, rng: np.random.Generator
) -> Iterator[Finding]:
    """Within a seed, over its models, then the mean over seeds; beside it the same of the untrained twins.

    Within, because the models of a seed begin alike and differ in lambda alone; pooled, lambda would tie with
    itself as often as there are seeds, and no order of the models could reach 1.
    """
    axes = SPARSER[against], OUTCOMES[outcome]
    samples, asked = _sweeps(rows, numbers, axes, "trained", LAMBDA)
    twins, _ = _sweeps(rows, numbers, axes, TWIN.strip(), TWIN + LAMBDA)
    statistic = of_means(kendall)
    if asked:
        yield of_samples(
            samples,
            statistic,
            left_out=(asked - sum(map(len, samples)), NO_MODEL),
            undefined=NO_ORDER,
            rng=rng,
            experiment=EXPERIMENT,
            measure=f"kendall-{against}-{outcome}",
            group=SWEEP,
            null=over_seeds([v for twin in twins if not np.isnan(v := value_of(twin, statistic))])[0],
            mode=mode,
        )


def _sweeps(
    rows: pd.DataFrame, numbers: pd.DataFrame, axes: tuple[str, str], subject: str, swept: str
) -> tuple[list[Sweep], int]:
    """A sweep for each seed that has one, and how many texts were asked; models without values stay out."""
    chosen = (rows["subject"] == subject) | rows["subject"].str.startswith(swept)
    table = numbers[chosen & numbers["lambda"].notna()].join(rows[["seed", "id"]])
    table["point"] = table["lambda"]  # which may itself be an axis
    found, asked = [], 0
    for _, of_seed in table.groupby("seed"):
        asked += of_seed["id"].nunique()
        defined = of_seed.dropna(subset=list(axes))
        if len(defined):
            across, up = (defined.pivot(index="id", columns="point", values=axis) for axis in axes)
            found.append(Sweep(across.index.to_numpy(), across.to_numpy(float), up.to_numpy(float)))
    return found, asked


CONCLUSION = Conclusion(conclude, version=4, about=ABOUT, cards=CARDS, columns=COLUMNS)
