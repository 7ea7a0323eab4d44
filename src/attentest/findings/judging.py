"""Claims put to findings: each where it is about something, and beside the model it is compared with.

What a model attends to explains nothing where it has learnt nothing: untrained models meet many a rule. So
models that are at chance leave a claim undecided, unless it is about their scores.

A study judges what it planned and a report what a store holds; both ask here, so they cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from attentest.findings.claims import AXES, Claim, Verdict, verdict

PERFORMANCE = "performance"
SCORES = ("accuracy", "auc")  # F1 depends on which class is called the second


@dataclass(frozen=True, eq=False)
class Evidence:
    """The findings of one experiment at one grid point, and what they were made from."""

    config: Mapping[str, Any]  # experiment, mode, parameters, the axes, and the settings of its `model`
    texts: str | None  # which texts of that corpus, where it is known
    table: pd.DataFrame


def judged(claims: Iterable[Claim], evidence: Mapping[str, Evidence]) -> Iterator[tuple[str, Verdict]]:
    """What each evidence, by its name, says of each claim about it, in the order of the claims."""
    for claim in claims:
        for name, own in evidence.items():
            if is_asked(claim, own.config) and claim.is_about(point(own.config)):
                rival = _rival(claim, own, evidence) if claim.against else None
                why = unlearnt(own, evidence) or (rival and unlearnt(rival, evidence))
                if why and claim.parts[0] != PERFORMANCE:
                    yield name, Verdict(claim, "undecided", why)
                else:
                    yield name, verdict(claim, own.table, None if rival is None else rival.table)


def unlearnt(own: Evidence, evidence: Mapping[str, Evidence]) -> str | None:
    """Why nothing can be asked of these models: no score is above that of one answer for all texts."""
    for other in evidence.values():
        same = point(other.config) == point(own.config) and other.config["model"] == own.config["model"]
        if other.config["experiment"] == PERFORMANCE and same and other.texts == own.texts:
            scores = other.table[(other.table["group"] == "overall") & other.table["measure"].isin(SCORES)]
            if len(scores) and (scores["low"] <= scores["null"]).all():
                told = [
                    f"{row.measure} {row.estimate:.3f} [{row.low:.3f}, {row.high:.3f}], null {row.null:.3f}"
                    for row in scores.itertuples()
                ]
                return f"its models are at chance: {'; '.join(told)}"
    return None


def point(config: Mapping[str, Any]) -> dict[str, str]:
    """The grid point of a finding cell."""
    return {axis: config[axis] for axis in AXES}


def is_asked(claim: Claim, config: Mapping[str, Any]) -> bool:
    """Whether the claim is about this experiment, done in this mode."""
    return (config["experiment"], config["mode"]) == (claim.parts[0], claim.mode)


def _rival(claim: Claim, own: Evidence, evidence: Mapping[str, Evidence]) -> Evidence | None:
    """The evidence to compare with: the same experiment on the other model, made as alike as there is."""
    sought = claim.other(point(own.config))
    there = [
        (_distance(own.config, other.config), name)
        for name, other in evidence.items()
        if is_asked(claim, other.config) and point(other.config) == sought and other.texts == own.texts
    ]
    return evidence[min(there)[1]] if there else None


def _distance(one: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    """In how many settings and parameters two differ."""
    pairs = [(one[part], other[part]) for part in ("model", "parameters")]
    return sum(mine.get(name) != yours.get(name) for mine, yours in pairs for name in {*mine, *yours})
