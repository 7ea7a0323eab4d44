"""Which figures a page shows of each experiment, drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from attentest.figures.charts import to_svg
from attentest.findings.density import finite
from attentest.refusal import Refusal
from attentest.report.figure import Figure, Figures, View
from attentest.report.pictures_jain_wallace import JAIN_WALLACE
from attentest.report.pictures_serrano_smith import SERRANO_SMITH
from attentest.report.pictures_wiegreffe_pinter import PRUTHI, WIEGREFFE_PINTER
from attentest.report.points import GridPoint
from attentest.report.stored import StoredFinding

COLOURED = 3  # classes: of more, the histograms would hide each other
FIGURES: Figures = {**JAIN_WALLACE, **WIEGREFFE_PINTER, **SERRANO_SMITH, **PRUTHI}


@dataclass(frozen=True)
class Picture:
    """A figure of a page: the file and what it shows, or why there is none."""

    figure: Figure
    file: str
    svg: str
    missing: str = ""


def pictures(finding: StoredFinding, point: GridPoint, rows: pd.DataFrame, stem: str) -> Iterator[Picture]:
    """Every figure of the experiment, drawn; one whose rows lack what it shows says so."""
    view = _view(finding, point, rows)
    for figure in FIGURES.get(finding.cell.config["experiment"], ()):
        file = f"figures/{stem}-{figure.name}.svg"
        try:
            yield Picture(figure, file, to_svg(figure.draw(rows, view, figure.title)))
        except Refusal as refusal:
            yield Picture(figure, "", "", missing=str(refusal))


def _view(finding: StoredFinding, point: GridPoint, rows: pd.DataFrame) -> View:
    exact = f"exact@{point.tolerance:g}"
    optimum = exact not in rows or len(finite(rows[exact])) > 0
    labels = point.labels
    return View(
        tolerance=point.tolerance,
        opponent="exact" if optimum else "last",
        subtitle=f"{point.corpus}: {point.model}",
        by_class={"classes": labels, "pooled": labels is None or len(labels) > COLOURED},
        findings=finding.table,
        published=finding.cell.config["mode"] == "as-published",
    )
