"""Claims as data: a sentence of a paper, the statistic it is about, and the rule that decides.

The rule is written before anything runs, in a language too small to hide anything in: a quantity, a
relation, a number, joined by " and ". It is parsed, never evaluated as code, since study files are shared.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd
from scipy import stats

from attentest.refusal import Refusal, look_up

AXES = ("corpus", "encoder", "attention", "projection")
GROUP = "group"  # what a claim may be held against beside axes: other models of the same findings
MODES = ("corrected", "as-published")
RELATIONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
MEASURED = ("estimate", "low", "high", "null")
# excess = estimate - null; the others are of the difference to another model's estimate, if there is one.
QUANTITIES = (*MEASURED, "excess", "difference", "difference_low", "difference_high", "apart")
NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
LEAST_SEEDS = 2  # one seed's interval knows of texts alone, where others of its study know of seeds, too
SENTENCE = re.compile(rf"({'|'.join(QUANTITIES)}) *(<=|>=|<|>) *({NUMBER})")


@dataclass(frozen=True)
class Condition:
    """One comparison of a rule, such as `low > 0.1`."""

    quantity: str
    relation: str
    number: float

    def holds(self, finding: dict[str, float]) -> bool:
        """Whether the finding meets it; a quantity that is NaN meets nothing."""
        return RELATIONS[self.relation](finding[self.quantity], self.number)


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


@dataclass(frozen=True)
class Verdict:
    """What the findings say of a claim, and why."""

    claim: Claim
    verdict: Literal["supported", "refuted", "undecided"]
    reason: str


def parse(rule: str) -> tuple[Condition, ...]:
    """The comparisons that must all hold, or a refusal: nothing is guessed."""
    found = [SENTENCE.fullmatch(part) for part in rule.split(" and ")]
    if not all(found):
        raise Refusal(
            "the rule of a claim",
            got=repr(rule),
            needs=f"comparisons of {', '.join(QUANTITIES)} by {', '.join(RELATIONS)} with a number,"
            ' joined by " and "',
            way_out='Write for example "estimate < 0.1 and high < 0.2".',
        )
    return tuple(Condition(m[1], m[2], float(m[3])) for m in found if m)


def verdict(claim: Claim, findings: pd.DataFrame, others: pd.DataFrame | None = None) -> Verdict:
    """What the findings say: the claim is undecided unless exactly one of its rules holds.

    `others` are the findings of the model it is compared with.
    """
    _, measure, group = claim.parts
    if claim.against and others is None:
        return Verdict(claim, "undecided", f"no findings for {_named(claim.against)}")
    row = _about(claim, findings, measure, group)
    other = None if others is None or not claim.against else _about(claim, others, measure, claim.other_group)
    if isinstance(row, str):
        return Verdict(claim, "undecided", row)
    if isinstance(other, str):
        return Verdict(claim, "undecided", f"beside {_named(claim.against)}: {other}")
    missing = _not_granted(claim, findings)
    if missing:
        return Verdict(claim, "undecided", missing)
    return _judged(claim, _values(row) | _difference(row, other))


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


def _values(row: pd.Series) -> dict[str, float]:
    values = {name: float(row[name]) for name in MEASURED}
    return {**values, "excess": values["estimate"] - values["null"]}


def _not_granted(claim: Claim, findings: pd.DataFrame) -> str | None:
    """What the claim takes for granted and the findings do not show: of what is not there nothing is kept."""
    for granted, rule in claim.provided.items():
        measure, _, group = granted.partition("/")
        row = _about(claim, findings, measure, group)
        if isinstance(row, str):
            return f"it takes {rule} of {granted} for granted: {row}"
        values = _values(row) | _difference(row, None)
        conditions = parse(rule)
        if not all(condition.holds(values) for condition in conditions):
            return f"it takes {rule} of {granted} for granted: {_seen(conditions, values)}"
    return None


def _seen(conditions: Sequence[Condition], values: Mapping[str, float]) -> str:
    names = dict.fromkeys(condition.quantity for condition in conditions)
    return ", ".join(f"{name} {values[name]:.3g}" for name in names)


def _named(axes: Mapping[str, str]) -> str:
    return ", ".join(f"{axis} {name}" for axis, name in axes.items())


def _difference(row: pd.Series, other: pd.Series | None) -> dict[str, float]:
    """The difference of two models' estimates and its 95 % interval by Welch's t over seeds.

    Fewer than two seeds on a side show no spread, and the bounds are NaN.
    """
    if other is None:
        return dict.fromkeys(("difference", "difference_low", "difference_high", "apart"), math.nan)
    difference = float(row["estimate"] - other["estimate"])
    errors = [
        float(one["seed_std"]) ** 2 / one["seeds"] if one["seeds"] > 1 else math.nan for one in (row, other)
    ]
    reach = math.nan
    if math.isfinite(sum(errors)):
        weight = sum(error**2 / (one["seeds"] - 1) for error, one in zip(errors, (row, other), strict=True))
        freedom = sum(errors) ** 2 / weight if weight > 0 else math.inf
        reach = float(stats.t.ppf(0.975, freedom)) * math.sqrt(sum(errors))
    return {
        "difference": difference,
        "difference_low": difference - reach,
        "difference_high": difference + reach,
        "apart": abs(difference),
    }


def _judged(claim: Claim, values: dict[str, float]) -> Verdict:
    supports, refutes = parse(claim.supported_if), parse(claim.refuted_if)
    supported = all(condition.holds(values) for condition in supports)
    refuted = all(condition.holds(values) for condition in refutes)
    asked = {condition.quantity: values[condition.quantity] for condition in (*supports, *refutes)}
    seen = _seen((*supports, *refutes), values)
    if supported and refuted:
        return Verdict(claim, "undecided", f"both rules hold, so they contradict each other: {seen}")
    if supported:
        return Verdict(claim, "supported", f"{claim.supported_if}: {seen}")
    if refuted:
        return Verdict(claim, "refuted", f"{claim.refuted_if}: {seen}")
    unknown = [name for name, value in asked.items() if math.isnan(value)]
    because = f"{' and '.join(unknown)} undefined" if unknown else "neither rule holds"
    return Verdict(claim, "undecided", f"{because}: {seen}")
