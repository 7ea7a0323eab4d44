"""A model at a glance: of each experiment the one number to read first, and what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attentest.compare.points import GridPoint
from attentest.gallery.lines import MAIN, Line, main_line
from attentest.gallery.pages import Glance, Section
from attentest.gallery.reading import reading

SCORES = ("accuracy", "f1", "auc")


def glances(point: GridPoint, sections: Sequence[Section]) -> Iterator[Glance]:
    """Scores first, then of every experiment what the overview shows, or its first number over all texts."""
    seen = set()
    for section in sections:
        experiment = section.finding.cell.config["experiment"]
        if experiment in seen:  # done in two ways: the corrected one speaks
            continue
        seen.add(experiment)
        for line in _lines(point, section, experiment):
            yield Glance(anchor=section.anchor, title=section.title, line=line, reading=reading(line.finding))


def _lines(point: GridPoint, section: Section, experiment: str) -> list[Line]:
    first = section.lines.first
    if experiment == "performance":
        return [line for line in first if line.finding["measure"] in SCORES]
    main = [main_line(point, name) for name in MAIN if name.split("/")[0] == experiment]
    found = [line for line in main if line is not None]
    return found or list(first[:1])
