"""Claims as data: a sentence of a paper, the statistic it is about, and the rules that decide.

The rules are written before anything runs (`attentest.claims.rules`). At every grid point each of a
claim's two rules is one one-sided test. The p-values of a rule are corrected by Holm over the grid points at
which the claim was tested, so that a rule about a hundred models is wrongly found to hold at any of them in
5 % of studies at most. The claim's own verdict is read off those of its grid points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
import pandas as pd

from attentest.claims.measured import Deviation, estimates, is_p_value, numbers, plain_deviation
from attentest.claims.rules import parse, rule_p, shown, told, untested
from attentest.claims.verdict import Verdict, decided, over_counts
from attentest.refusal import Refusal, look_up
from attentest.statistics.multiplicity import LEVEL, holm

AXES = ("corpus", "encoder", "attention", "projection")
GROUP = "group"  # what a claim may be held against beside axes: other models of the same findings
MODES = ("corrected", "as-published")
FROM_INTERVAL = "the error is read off the 95 % interval, since the stored finding has none"
ONE_TRAINING = "over texts of this one training"
LEAST_SEEDS = 2  # one seed's interval knows of texts alone, where others of its study know of seeds, too


@final
@dataclass(frozen=True, kw_only=True)
class Claim:
    """A paper's sentence in our words, and what decides it; `statistic` is experiment/measure/group.

    Rules are parsed when the claim is made, so a study with a bad one is refused before it runs.
    """

    says: str
    statistic: str
    supported_if: str
    refuted_if: str
    cite: str = ""
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the grid points it is about
    against: Mapping[str, str] = field(default_factory=dict)  # what the model it is compared with has instead
    # What it takes for granted: measure/group of the same findings, and the rule that must hold there.
    provided: Mapping[str, str] = field(default_factory=dict)
    mode: str = "corrected"  # of the experiment: what the published code's errors made decides only if asked

    def __post_init__(self) -> None:
        if not all(self.parts):
            raise Refusal(
                f"claim {self.says!r}",
                got=f"the statistic {self.statistic!r}",
                needs="experiment/measure/group",
                way_out='Write for example "permutation/median-output-change/overall".',
            )
        for rule in (self.supported_if, self.refuted_if, *self.provided.values()):
            parse(rule)
        look_up(self.mode, dict.fromkeys(MODES), f"mode in claim {self.says!r}:")
        for known, axes in ((AXES, self.where), ((*AXES, GROUP), self.against)):
            for axis in axes:
                look_up(axis, dict.fromkeys(known), f"axis in claim {self.says!r}:")
        for granted in self.provided:
            if not all(granted.partition("/")):
                raise Refusal(
                    f"claim {self.says!r}",
                    got=f"provided {granted!r}",
                    needs="measure/group of the same findings",
                    way_out='Write for example provided = { "tau-p/overall" = "estimate < 0.05" }.',
                )

    def is_about(self, point: Mapping[str, str]) -> bool:
        """Whether the claim speaks of this grid point; a model is not compared with itself."""
        spoken_of = all(point[axis] in names for axis, names in self.where.items())
        itself = self.other(point) == dict(point) and self.other_group == self.parts[2]
        return spoken_of and not (self.against and itself)

    def other(self, point: Mapping[str, str]) -> dict[str, str]:
        """The grid point this one is compared with."""
        return {**point, **{axis: name for axis, name in self.against.items() if axis != GROUP}}

    @property
    def other_group(self) -> str:
        """The group it is compared with; its own, unless the claim names another."""
        return self.against.get(GROUP, self.parts[2])

    @property
    def parts(self) -> tuple[str, str, str]:
        """Experiment, measure and group; a group may hold further slashes, since class names do."""
        experiment, measure, group = [*self.statistic.split("/", 2), "", ""][:3]
        return experiment, measure, group


@final
@dataclass(frozen=True)
class ClaimAtPoint:
    """What the findings of one grid point say of a claim, and why.

    `p` is small where the data speak for `supported_if`, `p_refutes` where they speak for `refuted_if`. Both
    are one-sided and NaN where nothing was tested. The verdict rests on the corrected ones.
    """

    claim: Claim
    verdict: Verdict
    reason: str
    p: float = math.nan
    p_refutes: float = math.nan
    p_corrected: float = math.nan
    p_refutes_corrected: float = math.nan


@final
@dataclass(frozen=True)
class ClaimVerdict:
    """What all grid points together say of a claim.

    It is supported (refuted) if at least half of the grid points are decided and all of those support
    (refute) it. It is mixed if some support and some refute it, and undecided otherwise.
    """

    claim: Claim
    supported: int
    refuted: int
    undecided: int

    @property
    def points(self) -> int:
        """At how many grid points the claim was put."""
        return self.supported + self.refuted + self.undecided

    @property
    def verdict(self) -> Verdict:
        """The one word."""
        return over_counts(self.supported, self.refuted, self.points)

    @property
    def reason(self) -> str:
        """The counts behind it."""
        counts = {"supported": self.supported, "refuted": self.refuted, "undecided": self.undecided}
        told = ", ".join(f"{verdict} at {count}" for verdict, count in counts.items() if count)
        return f"of {self.points} grid {'point' if self.points == 1 else 'points'} {told}"


@final
@dataclass(frozen=True)
class Tested:
    """A claim at one grid point before correction: the p-values of its two rules, or why there are none."""

    claim: Claim
    p: float = math.nan
    p_refutes: float = math.nan
    seen: str = ""  # the numbers that its rules name
    unknown: str = ""  # why a rule has no p-value; empty where both have one
    note: str = ""  # where the error comes from, if that is unusual
    reason: str = ""  # why nothing was tested


def verdict(
    claim: Claim,
    findings: pd.DataFrame,
    others: pd.DataFrame | None = None,
    deviation: Deviation = plain_deviation,
) -> ClaimAtPoint:
    """What the findings of one grid point say, as if it were the only one.

    `others` are the findings of the model it is compared with.
    """
    return corrected([tested(claim, findings, others, deviation)])[0]


def overall(verdicts: Iterable[ClaimAtPoint]) -> list[ClaimVerdict]:
    """The verdict of every claim over its grid points, in the order in which the claims come up."""
    groups: list[list[ClaimAtPoint]] = []
    for one in verdicts:
        own = next((group for group in groups if group[0].claim == one.claim), None)
        if own is None:
            groups.append([one])
        else:
            own.append(one)
    return [over_points(group[0].claim, group) for group in groups]


def over_points(claim: Claim, verdicts: Iterable[ClaimAtPoint]) -> ClaimVerdict:
    """The verdict of one claim from those of its grid points."""
    said = [one.verdict for one in verdicts]
    return ClaimVerdict(
        claim, *(said.count(each) for each in (Verdict.SUPPORTED, Verdict.REFUTED, Verdict.UNDECIDED))
    )


def tested(
    claim: Claim,
    findings: pd.DataFrame,
    others: pd.DataFrame | None = None,
    deviation: Deviation = plain_deviation,
) -> Tested:
    """The p-values of both rules at one grid point, or why there are none."""
    _, measure, group = claim.parts
    if claim.against and others is None:
        return Tested(claim, reason=f"no findings for {_named(claim.against)}")
    row = _about(claim, findings, measure, group)
    other = None if others is None or not claim.against else _about(claim, others, measure, claim.other_group)
    if isinstance(row, str):
        return Tested(claim, reason=row)
    if isinstance(other, str):
        return Tested(claim, reason=f"beside {_named(claim.against)}: {other}")
    missing = _not_granted(claim, findings)
    if missing:
        return Tested(claim, reason=missing)
    return _tested(claim, row, other, deviation)


def _about(claim: Claim, findings: pd.DataFrame, measure: str, group: str) -> pd.Series | str:
    """The one finding of that measure in that group, or why it can decide nothing."""
    sought = {"experiment": claim.parts[0], "measure": measure, "group": group}
    found = findings[(findings[list(sought)] == pd.Series(sought)).all(axis=1)]
    if len(found) != 1:
        return f"{len(found)} findings are about {'/'.join(sought.values())}, not one"
    row, most = found.iloc[0], int(findings["seeds"].max())
    if row["seeds"] < LEAST_SEEDS <= most:
        because = f" ({row['why']})" if row["why"] else ""
        return f"it rests on {int(row['seeds']) or 'no'} seed of the {most}{because}"
    return row


def _not_granted(claim: Claim, findings: pd.DataFrame) -> str | None:
    """What the claim takes for granted and the findings do not show: of what is not there nothing is kept."""
    for granted, rule in claim.provided.items():
        measure, _, group = granted.partition("/")
        row = _about(claim, findings, measure, group)
        if isinstance(row, str):
            return f"it takes {rule} of {granted} for granted: {row}"
        values = numbers(row, None)
        conditions = parse(rule)
        if not all(condition.holds(values) for condition in conditions):
            return f"it takes {rule} of {granted} for granted: {shown(conditions, values)}"
    return None


def _named(axes: Mapping[str, str]) -> str:
    return ", ".join(f"{axis} {name}" for axis, name in axes.items())


def _tested(claim: Claim, row: pd.Series, other: pd.Series | None, deviation: Deviation) -> Tested:
    supports, refutes = parse(claim.supported_if), parse(claim.refuted_if)
    both = (*supports, *refutes)
    values, known = numbers(row, other, deviation), estimates(row, other, deviation)
    from_interval = any(known[condition.quantity].from_interval for condition in both)
    notes = [FROM_INTERVAL] * from_interval + [ONE_TRAINING] * (int(row["seeds"]) == 1)
    return Tested(
        claim,
        rule_p(supports, known),
        rule_p(refutes, known),
        seen=shown(both, values),
        unknown=untested(both, known),
        note="; ".join(notes),
    )


def corrected(tests: Sequence[Tested]) -> list[ClaimAtPoint]:
    """The verdicts of one claim at all its grid points, after Holm within each of the two directions."""
    raw = np.array([[one.p, one.p_refutes] for one in tests]).reshape(len(tests), 2)
    counts = (~np.isnan(raw)).sum(axis=0).tolist()
    settled = np.stack([holm(raw[:, 0]), holm(raw[:, 1])], axis=1)
    return [_settled(one, p, q, counts) for one, (p, q) in zip(tests, settled.tolist(), strict=True)]


def _settled(one: Tested, p: float, p_refutes: float, counts: Sequence[int]) -> ClaimAtPoint:
    p, p_refutes = (math.nan if math.isnan(each) else each for each in (p, p_refutes))
    if one.reason:
        return ClaimAtPoint(one.claim, Verdict.UNDECIDED, one.reason)
    supported, refuted = p < LEVEL, p_refutes < LEVEL
    itself = is_p_value(one.claim.parts[1])
    supports = told(one.claim.supported_if, p, counts[0], itself=itself)
    refutes = told(one.claim.refuted_if, p_refutes, counts[1], itself=itself)
    said = decided(supported, refuted, against=Verdict.REFUTED)
    if supported and refuted:
        parts = ["both rules hold, so they contradict each other", one.seen, supports, refutes]
    elif supported:
        parts = [one.claim.supported_if, one.seen, supports]
    elif refuted:
        parts = [one.claim.refuted_if, one.seen, refutes]
    else:
        parts = [one.unknown or "neither rule is shown", one.seen, supports, refutes]
    reason = "; ".join(part for part in (f"{parts[0]}: {parts[1]}", *parts[2:], one.note) if part)
    return ClaimAtPoint(one.claim, said, reason, one.p, one.p_refutes, p, p_refutes)
