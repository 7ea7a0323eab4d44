"""Findings as the lines of a page's tables: the measure in words, and what it takes to read the number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from attentest.compare.points import GridPoint
from attentest.compare.stored import StoredFinding
from attentest.experiments.cards import CARDS
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.statistics.card import Card
from attentest.statistics.named import Named

# What an overview has room for, in the words of a column's heading.
MAIN = {
    f"{name}/{measure}": heading
    for name, conclusion in CONCLUSIONS.items()
    for measure, heading in conclusion.about.main.items()
}
SEARCHED = "emax-jsd-last"


@final
@dataclass(frozen=True)
class Line:
    """One finding: its fields by name, and the card of its measure, if there is one."""

    finding: Mapping[str, Any]
    card: Card | None

    @property
    def measure(self) -> str:
        """The measure in words, with the setting that its name has after an @."""
        named = Named.of(self.finding["measure"])
        words = self.card.measure if self.card else named.name.replace("-", " ")
        known = CONCLUSIONS.get(self.finding["experiment"])
        setting = known.about.setting if known else "ε"
        if not named.setting:
            return words
        return f"{words} ({setting}\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{named.setting})"

    @property
    def searched(self) -> bool:
        """Whether it stands in for an optimum that is not known."""
        return self.finding["measure"].startswith(SEARCHED)

    @property
    def defined(self) -> bool:
        """Whether there is a number."""
        return math.isfinite(self.finding["estimate"])


@final
@dataclass(frozen=True)
class Lines:
    """The findings of a cell: those to read first, and the others."""

    first: Sequence[Line]
    others: Sequence[Line]


def lines(finding: StoredFinding, tolerance: float) -> Lines:
    """Over all texts first, and of several tolerances the main one; groups and controls after.

    Where nothing is over all texts, since each group is a model or a text of its own, groups are compared:
    all of one measure stand together.
    """
    first: list[Line] = []
    others: list[Line] = []
    for found in finding.records:
        line = Line(found, _card(found))
        main = found["group"] == "overall" and is_main(found["measure"], tolerance)
        (first if main else others).append(line)
    if not first:
        order = list(dict.fromkeys(line.finding["measure"] for line in others))
        others.sort(key=lambda line: order.index(line.finding["measure"]))
    return Lines(first, others)


def is_main(measure: str, tolerance: float) -> bool:
    """Whether it is for the tolerance that is shown, or for none."""
    return Named.of(measure).setting in ("", f"{tolerance:g}")


def measure_key(experiment: str, measure: str) -> str:
    """The measure without the tolerance, which a question changes and which would set corpora apart."""
    return f"{experiment}/{Named.of(measure).name}"


def columns(points: Sequence[GridPoint]) -> dict[str, str]:
    """Of the main numbers those that some grid point has: a column of nothing would say nothing."""
    return {
        name: said for name, said in MAIN.items() if any(point.of(name.split("/")[0]) for point in points)
    }


def main_line(point: GridPoint, name: str) -> Line | None:
    """One of the main numbers of a grid point, or None where it was not measured.

    Where the decision is not affine nobody knows the optimum; then what the published search found is shown.
    """
    experiment, measure = name.split("/")
    finding = point.of(experiment)
    if finding is None:
        return None
    found = [_line(finding, measure)]
    if experiment == "adversary":
        found = [_line(finding, f"{each}@{point.tolerance:g}") for each in (measure, SEARCHED)]
    there = [line for line in found if line is not None]
    return next((line for line in there if line.defined), there[0] if there else None)


def _line(finding: StoredFinding, measure: str) -> Line | None:
    found = finding.row(measure, "overall")
    return None if found is None else Line(found, _card(found))


def _card(found: Mapping[str, Any]) -> Card | None:
    """The measure's card; a store of another version may hold measures that have none here."""
    return CARDS.get(measure_key(found["experiment"], found["measure"]))
