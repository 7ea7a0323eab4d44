"""The rules of claims: a small language that is parsed, never evaluated, and the test that each condition is.

A rule joins conditions such as `low > 0.1` by " and ". No condition is decided by a point estimate. Each is a
one-sided test, and its p-value is small where the data speak for the condition:

| condition | what is tested |
|---|---|
| `estimate`, `low` or `high` above or below c | whether the true value is above (below) c |
| `excess` above or below c | whether the true value is above (below) null + c; the null is taken as known |
| `difference`, `difference_low`, `difference_high` | the same of the difference of two models, by Welch's t |
| `apart < c` | whether the true difference lies between -c and c: equivalence, two one-sided tests |
| `apart > c` | whether the true difference lies outside of them |
| `null` | nothing: it is known |

`<` and `<=` are the same test, because an estimate with an error equals no number. A rule is the intersection
of its conditions: its p-value is the largest of theirs (intersection-union test; Berger 1982), which needs no
correction for the number of conditions.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from scipy import stats

from attentest.refusal import Refusal
from attentest.statistics.multiplicity import LEVEL

RELATIONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
BOUNDS = ("estimate", "low", "high")  # of the same true value, and so the same test
MEASURED = (*BOUNDS, "null")
# excess = estimate - null; the others are of the difference to another model's estimate, if there is one.
QUANTITIES = (*MEASURED, "excess", "difference", "difference_low", "difference_high", "apart")
NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
SENTENCE = re.compile(rf"({'|'.join(QUANTITIES)}) *(<=|>=|<|>) *({NUMBER})")
TRUE = {
    **dict.fromkeys(BOUNDS, "the true value is"),
    **dict.fromkeys(("difference", "difference_low", "difference_high"), "the true difference is"),
    "excess": "the true excess over the null is",
    "apart": "the size of the true difference is",
    "null": "the null is",
}


@final
@dataclass(frozen=True)
class Condition:
    """One comparison of a rule, such as `low > 0.1`."""

    quantity: str
    relation: str
    number: float

    def holds(self, finding: Mapping[str, float]) -> bool:
        """Whether the numbers as they are meet it; a quantity that is NaN meets nothing."""
        return RELATIONS[self.relation](finding[self.quantity], self.number)

    @property
    def hypothesis(self) -> str:
        """What its test is to show, in words."""
        return f"{TRUE[self.quantity]} {'above' if self.relation[0] == '>' else 'below'} {self.number:g}"


@final
@dataclass(frozen=True)
class Estimate:
    """A number with its standard error, which is 0 where it is sure and NaN where it is not known.

    `least_p` is what a p-value can at best be where the error is 0: seeds that happen to agree exactly are a
    few draws, not certainty. `is_p` marks a measure that is itself a p-value, `from_interval` an error that
    was not stored and had to be read off the 95 % interval.
    """

    value: float
    error: float
    freedom: float
    least_p: float = 0.0
    is_p: bool = False
    from_interval: bool = False


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


def rule_p(rule: Sequence[Condition], estimates: Mapping[str, Estimate]) -> float:
    """The p-value of a whole rule: the largest of its conditions'; NaN where one of them has none."""
    values = [condition_p(condition, estimates[condition.quantity]) for condition in rule]
    return math.nan if any(map(math.isnan, values)) else max(values)


def condition_p(condition: Condition, of: Estimate) -> float:
    """The one-sided p-value of one condition; NaN where it cannot be tested."""
    if of.is_p:
        return _of_p_value(condition, of.value)
    if math.isnan(of.value) or math.isnan(of.error):
        return math.nan
    if of.error == 0:
        size = abs(of.value) if condition.quantity == "apart" else of.value
        return of.least_p if RELATIONS[condition.relation](size, condition.number) else 1.0
    above = condition.relation[0] == ">"
    if condition.quantity == "apart":
        return (outside_p if above else inside_p)(of, condition.number)
    return above_p(of, condition.number) if above else below_p(of, condition.number)


def above_p(of: Estimate, border: float) -> float:
    """Against "the true value is at most the border"."""
    return float(stats.t.sf((of.value - border) / of.error, of.freedom))


def below_p(of: Estimate, border: float) -> float:
    """Against "the true value is at least the border"."""
    return float(stats.t.cdf((of.value - border) / of.error, of.freedom))


def inside_p(of: Estimate, border: float) -> float:
    """Equivalence, against "the true value is -border or less, or border or more".

    Both one-sided tests must reject, each at the full level (Schuirmann 1987): the larger p-value counts.
    """
    return max(below_p(of, border), above_p(of, -border))


def outside_p(of: Estimate, border: float) -> float:
    """Against "the true value lies between -border and border".

    The statistic is the size |d| of the estimate. Under the null hypothesis it is the more likely to be large
    the further the true value is from 0, so the worst case is a true value of `border` (or -border, which is
    the same by symmetry). There |d| is reached from above with the probability of the upper tail beyond
    |d| - border, and from below with that of the lower tail beyond |d| + border. The p-value is their sum.

    At border 0 that is the two-sided t test, and far from 0 the one-sided one. It is never larger than twice
    the smaller one-sided p-value, which Bonferroni would give. With a known error the sum is exact; with an
    estimated one and a border of about one error the size stays between 3.8 and 5 % (simulated in the tests).
    """
    if border < 0:
        return 0.0  # every size is larger
    size = abs(of.value)
    tails = stats.t.sf([(size - border) / of.error, (size + border) / of.error], of.freedom)
    return min(1.0, float(tails.sum()))


def _of_p_value(condition: Condition, value: float) -> float:
    """A measure that is a p-value is its own test, for "below" alone.

    A border stricter than 5 % stays as strict: the p-value is scaled so that the border lies at 5 %. That a
    p-value is large shows nothing, since few texts make every p-value large; so "above" has no test.
    """
    if condition.relation[0] == ">" or math.isnan(value):
        return math.nan
    if condition.number <= 0:
        return 1.0
    return min(1.0, value * max(1.0, LEVEL / condition.number))


def shown(conditions: Sequence[Condition], values: Mapping[str, float]) -> str:
    """The numbers that the conditions name."""
    names = dict.fromkeys(condition.quantity for condition in conditions)
    return ", ".join(f"{name} {values[name]:.3g}" for name in names)


def untested(rules: Sequence[Condition], known: Mapping[str, Estimate]) -> str:
    """Why conditions have no p-value, if any have none."""
    names = dict.fromkeys(condition.quantity for condition in rules)
    undefined = [name for name in names if math.isnan(known[name].value)]
    if undefined:
        return f"{' and '.join(undefined)} undefined"
    without = [name for name in names if math.isnan(known[name].error) and not known[name].is_p]
    if without:
        return f"no error is known of {' and '.join(without)}"
    if any(known[name].is_p for name in names):
        return "a p-value that is not small shows nothing"
    return ""


def told(rule: str, p: float, count: int, *, itself: bool) -> str:
    """What the p-value of a rule tests, and over how many grid points it was corrected.

    `itself` says that the finding is a p-value.
    """
    if math.isnan(p):
        return ""
    number = "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.9995 else "p = 1"
    conditions = parse(rule)
    what = " and ".join(dict.fromkeys(condition.hypothesis for condition in conditions))
    itself = itself and all(condition.quantity in BOUNDS for condition in conditions)
    test = "the finding is itself a p-value" if itself else f"test that {what}"
    return f"{test}: {number}" + (f" after Holm over {count} grid points" if count > 1 else "")
