"""The figures of a study, side by side: a row a corpus, a column a model, and why where there is none.

Nothing is drawn here. Each figure was drawn for the page of its model, and stands there with its numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, final

from attentest.compare.points import GridPoint, in_words
from attentest.compare.stored import StoredFinding
from attentest.compare.verdicts import asks_for
from attentest.experiments.figures import FIGURES
from attentest.gallery.missing import absent
from attentest.gallery.pages import Drawn, FigureTable, PointPage, Section
from attentest.studies.recipe import Step, Study

HEAT_MAPS = "heat-map"


@final
@dataclass(frozen=True, kw_only=True)
class Lacking:
    """What is known of what is not here."""

    absent: Mapping[str, str]  # corpora that cannot be read here, and how they are to be had
    failed: Sequence[Mapping[str, str]]  # grid points and experiments, with what went wrong

    def why(self, about: Mapping[str, str]) -> str:
        """Why a grid point has nothing of an experiment."""
        if about["corpus"] in self.absent:
            return f"corpus not here: {self.absent[about['corpus']]}"
        error = next((one["error"] for one in self.failed if about.items() <= one.items()), None)
        return "not run" if error is None else f"failed: {error}"


@final
@dataclass(eq=False)
class Album:
    """The figures and heat maps of every model's page, as they are made."""

    drawn: dict[tuple[str, str], list[Drawn]] = field(default_factory=dict)  # by experiment and title
    heat_maps: list[tuple[Drawn, Sequence[str]]] = field(default_factory=list)

    def add(self, point: GridPoint, sections: Iterable[Mapping[str, Any]]) -> None:
        """Take what the page of the grid point shows, as `told` has it."""
        findings = {finding.cell.key: finding for finding in point.findings}
        for section in sections:
            finding = findings[section["cell"]]
            experiment = finding.cell.config["experiment"]
            for picture in section["pictures"]:
                taken = _taken(point, finding, section["anchor"], **picture)
                self.drawn.setdefault((experiment, picture["title"]), []).append(taken)
            if section["heat_maps"] is not None:
                place = _taken(point, finding, section["anchor"], section["title"])
                self.heat_maps.append((place, section["heat_maps"]))

    def tables(self, study: Study, lacking: Lacking) -> Iterator[FigureTable]:
        """Every figure of the experiments that the study runs, the paper's own first."""
        steps = {step.name: step for step in reversed(study.experiment)}
        kinds = [(step, figure) for step in reversed(steps.values()) for figure in FIGURES.get(step.name, ())]
        kinds.sort(key=lambda kind: not kind[1].redraws)
        models = list(product(study.grid.encoder, study.grid.attention, study.grid.projection))
        for step, figure in kinds:
            asked = [
                one for one in self.drawn.get((step.name, figure.title), ()) if asks_for(study, one.finding)
            ]
            yield FigureTable(
                anchor=f"figure-{step.name}-{figure.name}",
                title=figure.title,
                says=figure.says,
                redraws=figure.redraws,
                models=[in_words(*model) for model in models],
                corpora={
                    corpus: [_cell(asked, step, (corpus, *model), lacking) for model in models]
                    for corpus in study.grid.corpus
                },
            )

    def shown_texts(self, study: Study) -> Iterator[tuple[Drawn, Sequence[str]]]:
        """The heat maps of the first model that the study names: that of the paper's figures."""
        first = study.grid.encoder[0], study.grid.attention[0], study.grid.projection[0]
        for place, html in self.heat_maps:
            axes = place.point.axes
            same = (axes["encoder"], axes["attention"], axes["projection"]) == first
            if html and same and asks_for(study, place.finding):
                yield place, html


def lacking(shelf: Mapping[str, str], points: Iterable[GridPoint], failed: Sequence[Any]) -> Lacking:
    """What is absent but for what was run, which needs its files no more."""
    held = {point.corpus for point in points}
    return Lacking(absent={n: s for n, s in absent(shelf).items() if n not in held}, failed=failed)


def _cell(
    asked: Sequence[Drawn], step: Step, place: tuple[str, ...], lacking: Lacking
) -> Sequence[Drawn] | str:
    about = dict(zip(("corpus", "encoder", "attention", "projection"), place, strict=True))
    here = [one for one in asked if one.point.axes == about]
    if here:
        return here
    return lacking.why(about | {"experiment": step.name}) if step.is_about(about) else "not asked"


def told(page: PointPage) -> list[dict[str, Any]]:
    """What an album takes of a page, as JSON: files and names only, since drawings are large."""
    return [
        {
            "cell": section.finding.cell.key,
            "anchor": section.anchor,
            "title": section.title,
            "pictures": [
                {"title": one.title, "file": one.file, "size": list(one.size), "missing": one.missing}
                for one in section.pictures
            ],
            "heat_maps": _heat_maps(section),
        }
        for section in page.sections
    ]


def _heat_maps(section: Section) -> list[str] | None:
    is_asked = section.finding.cell.config["experiment"] == HEAT_MAPS and section.heat_maps is not None
    return list(section.heat_maps.html) if is_asked and section.heat_maps is not None else None


def _taken(
    point: GridPoint,
    finding: StoredFinding,
    anchor: str,
    title: str,
    file: str = "",
    size: Sequence[str] = ("", ""),
    missing: str = "",
) -> Drawn:
    return Drawn(
        point=point,
        finding=finding,
        anchor=anchor,
        title=title,
        file=file,
        size=(size[0], size[1]),
        missing=missing,
    )
