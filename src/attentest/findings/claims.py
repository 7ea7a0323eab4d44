"""Claims as data: a sentence of a paper, the statistic it is about, and the rule that decides.

The rule is written before anything runs, in a language too small to hide anything in: a quantity, a
relation, a number, joined by " and ". It is parsed, never evaluated as code, since study files are shared.
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from attentest.refusal import Refusal

RELATIONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
QUANTITIES = ("estimate", "low", "high", "null", "excess")  # excess = estimate - null
SENTENCE = re.compile(
    rf"({'|'.join(QUANTITIES)}) *(<=|>=|<|>) *([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)


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

    def __post_init__(self) -> None:
        if not all(self.parts):
            raise Refusal(
                f"claim {self.says!r}",
                got=f"the statistic {self.statistic!r}",
                needs="experiment/measure/group",
                way_out='Write for example "permutation/median-output-change/overall".',
            )
        parse(self.supported_if)
        parse(self.refuted_if)

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


def verdict(claim: Claim, findings: pd.DataFrame) -> Verdict:
    """What the findings say: the claim is undecided unless exactly one of its rules holds."""
    matching = pd.Series(True, index=findings.index)
    for column, wanted in zip(("experiment", "measure", "group"), claim.parts, strict=True):
        matching &= findings[column] == wanted
    if matching.sum() != 1:
        return Verdict(claim, "undecided", f"{matching.sum()} findings are about {claim.statistic}, not one")
    row = findings[matching].iloc[0]
    values = {name: float(row[name]) for name in QUANTITIES[:-1]}
    values["excess"] = values["estimate"] - values["null"]
    return _judged(claim, values)


def _judged(claim: Claim, values: dict[str, float]) -> Verdict:
    supports, refutes = parse(claim.supported_if), parse(claim.refuted_if)
    supported = all(condition.holds(values) for condition in supports)
    refuted = all(condition.holds(values) for condition in refutes)
    asked = {condition.quantity: values[condition.quantity] for condition in (*supports, *refutes)}
    seen = ", ".join(f"{name} {value:.3g}" for name, value in asked.items())
    if supported and refuted:
        return Verdict(claim, "undecided", f"both rules hold, so they contradict each other: {seen}")
    if supported:
        return Verdict(claim, "supported", f"{claim.supported_if}: {seen}")
    if refuted:
        return Verdict(claim, "refuted", f"{claim.refuted_if}: {seen}")
    unknown = [name for name, value in asked.items() if math.isnan(value)]
    because = f"{' and '.join(unknown)} undefined" if unknown else "neither rule holds"
    return Verdict(claim, "undecided", f"{because}: {seen}")
