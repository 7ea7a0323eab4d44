"""The page of a grid point: a section for each of its finding cells, with figures, tables and texts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from attentest.charts.training import Epoch, training_curve
from attentest.compare.pairs import vectors
from attentest.compare.points import GridPoint
from attentest.compare.stored import StoredFinding
from attentest.compare.verdicts import Judged, command
from attentest.experiments.catalogue import title_and_question
from attentest.gallery.lines import MAIN, Line, Lines, lines, main_line
from attentest.gallery.pages import Glance, HeatMaps, PointPage, Section
from attentest.gallery.pictures import Picture, picture, pictures
from attentest.gallery.reading import reading
from attentest.gallery.rows import PointRows
from attentest.gallery.texts import ShownText, most_opposed, opposed_texts, pictured_texts
from attentest.studies.recipe import Study

FIRST = ("epochs", "vectors", "decoder", "hidden", "embedding")  # of the settings, what readers ask for
EXPECTED = ("performance", "importance", "permutation", "adversary")
ONLY_FINDINGS = (
    "The store holds the findings but not the rows they were concluded from, so nothing can be drawn."
)
PRIVATE = "Texts of this corpus need credentials: they are on no page unless --include-text asks for it."
NO_TEXTS = "The store was passed on without its texts."


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


def point_page(
    rows: PointRows, judged: Sequence[Judged], studies: Mapping[str, Study], *, private: bool
) -> tuple[PointPage, dict[str, str]]:
    """The page and the files of its figures; `private` texts are neither shown nor named."""
    point = rows.point
    sections = [_section(rows, finding, studies, private=private) for finding in point.findings]
    training = _training(point)
    run = {finding.cell.config["experiment"] for finding in point.findings}
    page = PointPage(
        point=point,
        glances=[*glances(point, sections)],
        training=training,
        explorer=f"explore-{point.file}",
        made=_made(point),
        judged=[one for one in judged if one.point is point],
        sections=sections,
        not_run=[title_and_question(name)[0] for name in EXPECTED if name not in run],
    )
    drawn = [picture for section in sections for picture in section.pictures]
    return page, {n: c for one in [*drawn, *([training] if training else [])] for n, c in one.files.items()}


def epochs(point: GridPoint) -> list[Epoch]:
    """Every epoch of every seed that the store still tells of; none where it travelled without."""
    widest = max(point.findings, key=lambda finding: len(finding.cell.inputs))
    return [epoch for seed, key in _models(widest).items() for epoch in _history(point, seed, key)]


def _models(finding: StoredFinding) -> dict[int, str]:
    """The trained model of each seed, by its key."""
    cells = finding.stored.cells
    return {
        seed: cells[key].inputs["model"]
        for seed, key in finding.cell.observations.items()
        if key in cells and "model" in cells[key].inputs
    }


def _history(point: GridPoint, seed: int, key: str) -> list[Epoch]:
    store = point.findings[0].stored.store
    if not store.holds(key, "training.json"):
        return []
    told = json.loads(store.read(key, "training.json"))
    return [
        Epoch(seed=seed, epoch=one["epoch"], chosen=one["epoch"] == told.get("chosen"), numbers=_numbers(one))
        for one in told["history"]
        if "epoch" in one
    ]


def _numbers(epoch: dict[str, Any]) -> dict[str, float]:
    said = {"training loss": epoch.get("loss"), "dev accuracy": (epoch.get("dev") or {}).get("accuracy")}
    return {name: value for name, value in said.items() if isinstance(value, float)}


def _training(point: GridPoint) -> Picture | None:
    known = epochs(point)
    if not known:
        return None
    file = f"figures/{point.file.removesuffix('.html')}-training.svg"
    title, says = "Training", "The loss falls on the training texts; the score is on texts held out for it."
    chart = training_curve(known, title=title, subtitle=f"{point.corpus}: {point.model}")
    return picture(file, title, says, chart)


def _section(
    rows_of: PointRows, finding: StoredFinding, studies: Mapping[str, Study], *, private: bool
) -> Section:
    point = rows_of.point
    experiment = finding.cell.config["experiment"]
    same = Counter(f.cell.config["experiment"] for f in point.findings)[experiment]
    anchor = experiment if same == 1 else f"{experiment}-{finding.cell.key[:8]}"
    title, asks = title_and_question(experiment)
    rows = rows_of.of(finding)
    drawn: list[Picture] = []
    if rows is not None:
        drawn = [*pictures(finding, point, rows, f"{point.file.removesuffix('.html')}-{anchor}")]
    return Section(
        anchor=anchor,
        title=title,
        asks=asks,
        finding=finding,
        lines=Lines([], []) if private and experiment == "heat-map" else lines(finding, point.tolerance),
        pictures=drawn,
        heat_maps=None if rows is None else _heat_maps(experiment, point, rows, private=private),
        missing=ONLY_FINDINGS if rows is None else "",
        command=command(studies, finding),
    )


def _heat_maps(experiment: str, point: GridPoint, rows: pd.DataFrame, *, private: bool) -> HeatMaps | None:
    if experiment not in ("adversary", "heat-map"):
        return None
    if private:
        return HeatMaps(missing=PRIVATE)
    if experiment == "heat-map":
        return _drawn(pictured_texts(rows), "None of the texts asked for is in this corpus.")
    chosen = most_opposed(rows, point.tolerance)
    if chosen.empty:
        return HeatMaps(missing="No text was kept whole with another attention.")
    corpus = point.stored_corpus
    texts = None if corpus is None else corpus.words(chosen["id"])
    if texts is None:
        return HeatMaps(missing=NO_TEXTS)
    return _drawn(opposed_texts(chosen, point.tolerance, texts), NO_TEXTS)


def _drawn(texts: Sequence[ShownText], if_none: str) -> HeatMaps:
    if not texts:
        return HeatMaps(missing=if_none)
    if not any(text.fits for text in texts):
        return HeatMaps(missing="This attention weighs sentences, not words.")
    return HeatMaps(html=[text.html for text in texts if text.fits])


def _made(point: GridPoint) -> list[tuple[str, str]]:
    """How the models were made, as far as the configuration says."""
    ran = next((f.epochs_run for f in point.findings if f.epochs_run), None)
    said = [("seeds", str(point.seeds))]
    if ran:
        fewest, most = ran
        said.append(("epochs run", str(most) if fewest == most else f"{fewest} to {most}"))
    said.append(("trained on", point.trained_on or "not known"))
    shown = {name: v for name, v in point.settings.items() if name not in (*point.axes, "trained_on")}
    first = [name for name in FIRST if name in shown]
    order = [*first, *(name for name in shown if name not in first)]
    return said + [(name.replace("_", " "), vectors({"vectors": str(shown[name])})) for name in order]
