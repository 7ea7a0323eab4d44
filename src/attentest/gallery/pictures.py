"""Which figures a page shows of each experiment, drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import altair as alt
import pandas as pd

from attentest.charts.figure import View
from attentest.charts.style import specified, svg_of
from attentest.compare.points import GridPoint
from attentest.compare.stored import StoredFinding
from attentest.experiments.figures import FIGURES
from attentest.gallery.shards import shard
from attentest.refusal import Refusal
from attentest.statistics.density import finite

COLOURED = 3  # classes: of more, the histograms would hide each other
SIZE = re.compile(r'<svg[^>]* width="([\d.]+)" height="([\d.]+)"')


@final
@dataclass(frozen=True)
class Picture:
    """A figure of a page: the file and what it shows, or why there is none."""

    title: str
    says: str
    file: str
    svg: str
    missing: str = ""
    spec: Mapping[str, Any] | None = None  # as Vega-Lite has it, numbers and all

    @property
    def name(self) -> str:
        """What its specification is called among the data of the site."""
        return self.file.removesuffix(".svg").replace("/", "-")

    @property
    def size(self) -> tuple[str, str]:
        """Its width and height in pixels, so that a page keeps its place before it is loaded."""
        found = SIZE.search(self.svg)
        return (found[1], found[2]) if found else ("", "")

    @property
    def files(self) -> dict[str, str]:
        """The drawing, and the script with what it was drawn from."""
        if not self.svg:
            return {}
        return {self.file: self.svg, f"data/{self.name}.js": shard(self.name, self.spec)}


def picture(file: str, title: str, says: str, chart: alt.LayerChart) -> Picture:
    """The figure, drawn."""
    specification = specified(chart)
    return Picture(title, says, file, svg_of(specification), spec=specification)


def pictures(finding: StoredFinding, point: GridPoint, rows: pd.DataFrame, stem: str) -> Iterator[Picture]:
    """Every figure of the experiment, drawn; one whose rows lack what it shows says so."""
    view = _view(finding, point, rows)
    for figure in FIGURES.get(finding.cell.config["experiment"], ()):
        file = f"figures/{stem}-{figure.name}.svg"
        try:
            yield picture(file, figure.title, figure.says, figure.draw(rows, view, figure.title))
        except Refusal as refusal:
            yield Picture(figure.title, figure.says, "", "", missing=str(refusal))


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
