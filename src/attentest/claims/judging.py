"""Claims put to findings: each where it is about something, and beside the model it is compared with.

What a model attends to explains nothing where it has learnt nothing: untrained models meet many a rule. So
models that are at chance leave a claim undecided, unless it is about their scores: those of the grid point,
and those that an experiment made of them, as far as its findings hold their scores.

A study judges what it planned and a report what a store holds; both ask here, so they cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import pandas as pd

from attentest.claims.claims import AXES, Claim, ClaimAtPoint, Tested, corrected, tested
from attentest.claims.measured import Deviation, plain_deviation
from attentest.statistics.group_means import CONTROLS

PERFORMANCE = "performance"
SCORES = ("accuracy", "auc")  # F1 depends on which class is called the second
BASE = ("overall", "trained")  # what experiments call the model that they make others of
ANSWERS = ("accuracy", "auc", "f1", "output-")  # how measures begin that chance itself is an answer to


@final
@dataclass(frozen=True, eq=False)
class Evidence:
    """The findings of one experiment at one grid point, and what they were made from."""

    config: Mapping[str, Any]  # experiment, mode, parameters, the axes, and the settings of its `model`
    texts: str | None  # which texts of that corpus, where it is known
    table: pd.DataFrame


def judged(
    claims: Iterable[Claim], evidence: Mapping[str, Evidence], deviation: Deviation = plain_deviation
) -> Iterator[tuple[str, ClaimAtPoint]]:
    """What each evidence, by its name, says of each claim about it, in the order of the claims.

    The p-values of a claim are corrected over all evidence that it was tested on.
    """
    for claim in claims:
        tests = {
            name: _tested(claim, own, evidence, deviation)
            for name, own in evidence.items()
            if is_asked(claim, own.config) and claim.is_about(point(own.config))
        }
        yield from zip(tests, corrected([*tests.values()]), strict=True)


def _tested(claim: Claim, own: Evidence, evidence: Mapping[str, Evidence], deviation: Deviation) -> Tested:
    experiment, measure, group = claim.parts
    rival = _rival(claim, own, evidence) if claim.against else None
    for one, made in ((own, group), (rival, claim.other_group)):
        if one is None or experiment == PERFORMANCE:
            continue
        why = model_at_chance(one, evidence) or (
            None if measure.startswith(ANSWERS) else variant_at_chance(one.table, made)
        )
        if why:
            return Tested(claim, reason=why)
    return tested(claim, own.table, None if rival is None else rival.table, deviation)


def model_at_chance(own: Evidence, evidence: Mapping[str, Evidence]) -> str | None:
    """Why nothing can be asked of these models: no score is above that of one answer for all texts."""
    for other in evidence.values():
        same = point(other.config) == point(own.config) and other.config["model"] == own.config["model"]
        if other.config["experiment"] == PERFORMANCE and same and other.texts == own.texts:
            scores = _scores(other.table, ["overall"])
            if len(scores) and not _above(scores).any():
                return f"its models are at chance: {_told(scores)}"
    return None


def variant_at_chance(table: pd.DataFrame, group: str) -> str | None:
    """Why nothing can be asked of what an experiment made of its models: it is at chance where they were not.

    Only a score by which the model itself is above chance can tell: where nearly all texts are of one class,
    accuracy is no better for having learnt. A control is asked because it has learnt nothing.
    """
    base = _scores(table, BASE)
    telling = base[_above(base)]["measure"]
    scores = _scores(table, [group])
    scores = scores[scores["measure"].isin(telling)]
    if group in (*BASE, *CONTROLS) or scores.empty or _above(scores).any():
        return None
    return f"{group} is at chance: {_told(scores)}"


def _scores(table: pd.DataFrame, groups: Sequence[str]) -> pd.DataFrame:
    return table[table["group"].isin(groups) & table["measure"].isin(SCORES)]


def _above(scores: pd.DataFrame) -> pd.Series:
    """Where the interval lies above the null, or is not known: what is undefined accuses nobody."""
    return ~(scores["low"] <= scores["null"])


def _told(scores: pd.DataFrame) -> str:
    return "; ".join(
        f"{row.measure} {row.estimate:.3f} [{row.low:.3f}, {row.high:.3f}], null {row.null:.3f}"
        for row in scores.itertuples()
    )


def point(config: Mapping[str, Any]) -> dict[str, str]:
    """The grid point of a finding cell."""
    return {axis: config[axis] for axis in AXES}


def is_asked(claim: Claim, config: Mapping[str, Any]) -> bool:
    """Whether the claim is about this experiment, done in this mode."""
    return (config["experiment"], config["mode"]) == (claim.parts[0], claim.mode)


def _rival(claim: Claim, own: Evidence, evidence: Mapping[str, Evidence]) -> Evidence | None:
    """The evidence to compare with: the same experiment on the other model, made as alike as there is.

    Models of a CPU and of a GPU differ as seeds do, so those of one device are compared.
    """
    sought = claim.other(point(own.config))
    if sought == point(own.config):
        return own  # another group of its own findings
    there = [
        (_distance(own.config, other.config), name)
        for name, other in evidence.items()
        if is_asked(claim, other.config)
        and point(other.config) == sought
        and other.texts == own.texts
        and other.config["model"].get("trained_on") == own.config["model"].get("trained_on")
    ]
    return evidence[min(there)[1]] if there else None


def _distance(one: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    """In how many settings and parameters two differ."""
    pairs = [(one[part], other[part]) for part in ("model", "parameters")]
    return sum(mine.get(name) != yours.get(name) for mine, yours in pairs for name in {*mine, *yours})
