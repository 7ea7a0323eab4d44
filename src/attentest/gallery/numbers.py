"""Every number over all texts, by grid point and seed: what the overview arranges and models differ in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attentest.compare.points import GridPoint, told_apart
from attentest.compare.verdicts import asks_for, command
from attentest.experiments.catalogue import title_and_question
from attentest.gallery.lines import MAIN, Line, lines, measure_key
from attentest.gallery.reading import reading
from attentest.store.cell import short
from attentest.studies.recipe import Study

Document = dict[str, Any]
FIELDS = ("estimate", "low", "high", "null", "n", "excluded")


def numbers(
    points: Sequence[GridPoint],
    seeds: Mapping[str, Mapping[str, Mapping[str, float]]],
    studies: Mapping[str, Study],
    missing: Document,
) -> Document:
    """Measures, grid points with their numbers, the studies that ask for them, and why others have none.

    `seeds` has the numbers of single seeds, by the grid point's page and the measure.
    """
    measures: dict[str, Document] = {}
    differs = told_apart(points)
    told = [
        _point(point, apart, seeds.get(point.file, {}), studies, measures)
        for point, apart in zip(points, differs, strict=True)
    ]
    _speak(measures)
    order = [*MAIN, *(key for key in measures if key not in MAIN)]
    return {
        "measures": [measures[key] for key in order if key in measures],
        "points": told,
        "studies": {
            study.study: {
                "title": study.title,
                "corpus": study.grid.corpus,
                "encoder": study.grid.encoder,
                "attention": study.grid.attention,
                "projection": study.grid.projection,
                "experiments": [step.name for step in study.experiment],
            }
            for study in studies.values()
        },
        **missing,
    }


def _point(
    point: GridPoint,
    differs: str,
    seeds: Mapping[str, Mapping[str, float]],
    studies: Mapping[str, Study],
    measures: dict[str, Document],
) -> Document:
    found: dict[str, Document] = {}
    done: dict[str, Document] = {}
    for finding in point.findings:
        experiment = finding.cell.config["experiment"]
        if experiment in done:  # in two modes: the first is the corrected one, and has a page all the same
            continue
        done[experiment] = {"cell": short(finding.cell.key), "command": command(studies, finding)}
        for line in lines(finding, point.tolerance).first:
            key = measure_key(experiment, line.finding["measure"])
            measures.setdefault(key, _measure(key, line))
            found[key] = _told(line)
    return {
        **point.axes,
        "file": point.file,
        "explore": f"explore-{point.file}",
        "model": point.model,
        "differs": differs,
        "seeds": point.seeds,
        "found": found,
        "by_seed": seeds,
        "done": done,
        "studies": [
            study.study for study in studies.values() if any(asks_for(study, f) for f in point.findings)
        ],
    }


def _measure(key: str, line: Line) -> Document:
    experiment = key.split("/")[0]
    card = line.card
    title = title_and_question(experiment)[0]
    says = MAIN.get(key) or (card.measure if card else key.split("/")[1].replace("-", " "))
    return {
        "key": key,
        "says": says,
        "heads": MAIN.get(key) or f"{title}: {says}",  # a row or a column of experiments
        "experiment": experiment,
        "title": title,
        "main": key in MAIN,
        "direction": card.direction if card else "",
        "null": card.null if card else "",
    }


def _speak(measures: Mapping[str, Document]) -> None:
    """An experiment without a main number speaks by its first one, as on the pages of models."""
    spoken = {measure["experiment"] for measure in measures.values() if measure["main"]}
    for measure in measures.values():
        if measure["experiment"] not in spoken:
            measure["main"] = True
            spoken.add(measure["experiment"])


def _told(line: Line) -> Document:
    told = {name: line.finding[name] for name in FIELDS} | {"reading": reading(line.finding)}
    return told | ({"why": line.finding["why"]} if line.finding["why"] else {})
