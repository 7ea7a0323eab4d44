"""How spread out influence and importance are, and what attention agrees with: Meister et al. (2021).

Normalised entropies (ME-1, ME-2) with the sparsity that attention really has, since a projection's parameter
is a temperature that the scores may undo; and rank correlations of attention with the importance of words and
of hidden states (ME-4). A state's gradient carries its weight as a factor, and dropping it does more the
larger its weight: both agree with attention where nothing was learnt, so each stands beside what the factor
alone brings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from attentest.evidence.importances.names import IN_ROWS
from attentest.experiments.description import Conclusion
from attentest.experiments.dispersion import ABOUT
from attentest.experiments.dispersion.cards import CARDS
from attentest.experiments.importance.conclude import NO_PARTNER, NULLS, larger_null
from attentest.experiments.shared.attention_rate import chosen_rate
from attentest.statistics.group_means import ONE_TOKEN, Means, Measure, of_controls, reasons
from attentest.statistics.record import Finding, ordered

ENTROPIES = ("attention", "gradient", "loo", "influence", "influence_l1")
TARGETS = ("inputs", "hidden")
# The importances that are computed again under other weights: the column of tau that is held against them.
NULLED = {"inputs_loo": "inputs_loo_held", "hidden_gradient": "hidden_gradient", "hidden_loo": "hidden_loo"}
SUPPORT = {"": "", "_support": "-on-support"}  # the columns' ending, and the measures'
NUMBERS = (
    *(f"entropy_{name}" for name in ENTROPIES),
    *("entropy_frobenius", "entropy_beside_frobenius"),
    *("max_attention", "support"),
    *(f"tau_{target}_{name}{where}" for target in TARGETS for name in IN_ROWS for where in SUPPORT),
    *(f"tau_inputs_loo_held{where}" for where in SUPPORT),
    *(f"{null}_tau_{name}{where}" for null in NULLS for name in NULLED for where in SUPPORT),
)
COLUMNS = ("seed", "subject", "id", "length", "frobenius", *NUMBERS)
NOT_SPREAD = "importance zero everywhere or not a number"
UNRANKED = "constant or NaN vector"
ONE_ATTENDED = "one token with weight"
NO_ATTENTION = "attention is not a number"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Means over texts, overall and for the controls; the paper has no classes."""
    rows = ordered(rows, COLUMNS)
    trained = rows[rows["subject"] == "trained"]
    if trained.empty:
        return []
    numbers = rows[["length", *NUMBERS]].astype(np.float64)
    untrained = rows.index[rows["subject"] == "untrained"]
    means = Means(experiment="dispersion", rows=rows, mode=mode, rng=rng)
    others = [*_differences(rows, numbers), *_norms(rows, numbers), *chosen_rate(rows)]
    found = []
    for group, texts in [("overall", trained), *of_controls(rows)]:
        # Untrained models are what the others are held against, and have no null but themselves.
        beside = untrained[:0] if group == "untrained" else untrained
        compared = [
            Measure(name=name, values=values, null=means.mean(values.loc[beside]), why=why)
            for name, values, why in _beside_untrained(rows, numbers)
        ]
        nulled = _agreements(rows, numbers, means, texts.index)
        found += means.of([*compared, *nulled, *others], [(group, texts)])
    return found


def _beside_untrained(
    rows: pd.DataFrame, numbers: pd.DataFrame
) -> Iterator[tuple[str, pd.Series, pd.Series]]:
    """Name, values and reasons of what chance has no number for: an untrained model's is the null."""
    for name in ENTROPIES:
        yield f"entropy-{name.replace('_', '-')}", numbers[f"entropy_{name}"], reasons(rows, NOT_SPREAD)
    several = numbers.where((numbers["length"] > 1) & numbers["max_attention"].notna())
    realised = {
        "max-attention": several["max_attention"],
        "support": several["support"],
        "support-share": several["support"] / several["length"],
    }
    for name, values in realised.items():
        yield name, values, reasons(rows, NO_ATTENTION)
    for where, named in SUPPORT.items():
        values = numbers[f"tau_inputs_gradient{where}"]
        yield f"tau-inputs-gradient{named}", values, unranked(rows, numbers, where)


def _agreements(
    rows: pd.DataFrame, numbers: pd.DataFrame, means: Means, texts: pd.Index
) -> Iterator[Measure]:
    """Attention against importances that its weights enter, beside the larger of their two nulls."""
    for where, named in SUPPORT.items():
        why = unranked(rows, numbers, where)
        for name, held in NULLED.items():
            null = larger_null(numbers, f"{name}{where}", means, texts)
            tau, drawn = numbers[f"tau_{held}{where}"], numbers[f"{null}_tau_{name}{where}"]
            said, short = held.replace("_", "-"), name.replace("_", "-")
            yield Measure(name=f"tau-{said}{named}", values=tau, null=drawn, why=why)
            missing = why.where(drawn.notna() | tau.isna(), NO_PARTNER)
            yield Measure(name=f"tau-{short}{named}-excess", values=tau - drawn, null=0.0, why=missing)
        values = numbers[f"tau_inputs_loo{where}"]
        yield Measure(name=f"tau-inputs-loo{named}", values=values, null=math.nan, why=why)


def _differences(rows: pd.DataFrame, numbers: pd.DataFrame) -> Iterator[Measure]:
    """States against words."""
    for where, named in SUPPORT.items():
        why = unranked(rows, numbers, where)
        for name in IN_ROWS:
            inputs, hidden = (numbers[f"tau_{target}_{name}{where}"] for target in TARGETS)
            yield Measure(
                name=f"hidden-minus-inputs-{name}{named}", values=hidden - inputs, null=0.0, why=why
            )


def _norms(rows: pd.DataFrame, numbers: pd.DataFrame) -> Iterator[Measure]:
    """Influence by the Frobenius norm, of the texts that were asked for it; the others are not excluded."""
    asked = numbers[rows["frobenius"].astype(bool)]
    values, why = asked["entropy_frobenius"], reasons(rows, NOT_SPREAD)
    yield Measure(name="entropy-influence-frobenius", values=values, null=math.nan, why=why)
    apart = values - asked["entropy_beside_frobenius"]
    yield Measure(name="entropy-influence-frobenius-minus-l2", values=apart, null=0.0, why=why)


def unranked(rows: pd.DataFrame, numbers: pd.DataFrame, where: str) -> pd.Series:
    """Why a row would have no rank correlation, over all units or (`where` not empty) over the support."""
    why = reasons(rows, UNRANKED)
    alone = (numbers["support"] == 1) & (why != ONE_TOKEN)
    return why.mask(alone, ONE_ATTENDED) if where else why


CONCLUSION = Conclusion(conclude, version=3, about=ABOUT, cards=CARDS, columns=COLUMNS)
