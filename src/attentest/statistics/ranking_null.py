"""Does information fall with attention, and how often would it by luck? The tau of Wen et al. (2022).

Ranks are few and their weights uneven, so a random order scores far from zero. The null deals each text's
tokens to its ranks at random. That makes the ranks exchangeable: any order of their information is as likely
as any other, so the null distribution of tau depends on the weights alone, and dealing among the ranked
tokens or among all the tokens of a text comes to the same. One codebook for all ranks leaves the symbols as
they are when tokens are dealt.
"""

from __future__ import annotations

import warnings
from typing import TypeAlias

import numpy as np
from jaxtyping import Float
from scipy import stats

from attentest.statistics.comparison import weighted_kendall
from attentest.statistics.tables import Output, PerRank, Symbols, plug_in, tables

Taus: TypeAlias = Float[np.ndarray, " draw"]


def weighted_tau(information: PerRank, attention: PerRank) -> float:
    """Agreement of information and attention over ranks, a pair counting by the product of its weights."""
    return weighted_kendall(information, attention, attention)


def scipy_tau(information: PerRank, attention: PerRank) -> float:
    """`scipy.stats.weightedtau` of the same two: its weights come from ranks, and add."""
    if len(information) < 2 or np.isnan(information).any():
        return float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant information has no order, hence NaN
        return float(stats.weightedtau(information, attention).statistic)


def dealt(
    joint: Symbols, output: Output, draws: int, rng: np.random.Generator
) -> Float[np.ndarray, "draw rank"]:
    """The information of each rank where every text's tokens are dealt to its ranks at random."""
    found = [plug_in(tables(rng.permuted(joint, axis=1), output)) for _ in range(draws)]
    return np.array(found).reshape(draws, joint.shape[1])


def p_value(tau: float, null: Taus) -> float:
    """How often luck does as well: (1 + draws that reach tau) / (1 + draws), which is never zero."""
    if np.isnan(tau) or np.isnan(null).all():
        return float("nan")
    return float((1 + (null >= tau - 1e-12).sum()) / (1 + len(null)))
