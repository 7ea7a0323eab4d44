"""The report: a folder of plain pages about everything a store holds. No script, nothing fetched.

Whatever comes from corpora, labels, names and titles is untrusted: each value is cleared of control and
direction signs and then escaped as it enters a page, and the pages forbid everything but their own style
sheet and pictures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import resources
from itertools import groupby
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from attentest.figures.charts import MainNumber, main_numbers, to_svg
from attentest.figures.heatmaps import HEATMAP_CSS
from attentest.figures.pairs import count
from attentest.figures.terminal import harmless, number
from attentest.refusal import Refusal
from attentest.report.lines import columns, main_line
from attentest.report.pages import CorpusOverview, IndexPage, ModelRow
from attentest.report.points import GridPoint, grid_points, told_apart
from attentest.report.sections import point_page
from attentest.report.stored import Stored
from attentest.report.studying import recipes, study_pages
from attentest.report.verdicts import judged
from attentest.store.cell import short
from attentest.store.store import Store

Files = dict[str, str]
FOUND = "attention found by the published search (JSD)"
Watch = Callable[[int, int], None]  # how many pages are made, of how many


def build(
    store_url: str,
    shelf: Mapping[str, str],
    *,
    version: str,
    studies: Sequence[str] = (),
    private: Collection[str] = (),
    watch: Watch = lambda done, of: None,
) -> Files:
    """Every file of the report by its name. The same store gives the same bytes.

    `shelf` says of every corpus whether it is here; the texts of `private` corpora are left out.
    """
    known = recipes(studies)
    points = grid_points(Stored(Store(store_url).existing()))
    if not points:
        raise Refusal(
            f"store {store_url}",
            got="no findings",
            needs="at least one experiment that was concluded",
            way_out="Run `attentest demo` or `attentest study NAME` first.",
        )
    write = _Writer()
    verdicts = [one for study in known.values() for one in judged(study, points)]
    for done, point in enumerate(points):
        watch(done, len(points))
        page, figures = point_page(point, verdicts, known, private=point.corpus in private)
        write.files |= figures
        write("point.html", point.file, page)
    pages, downloads = study_pages(known, points, store_url, shelf)
    write.files |= downloads
    for study in pages:
        write("study.html", study.file, study)
    shown = columns(points)
    corpora, drawings = _corpora(points, shown)
    write.files |= drawings
    write(
        "index.html",
        "index.html",
        IndexPage(
            measures=list(shown.values()),
            corpora=corpora,
            studies=pages,
            points=len(points),
            version=version,
        ),
    )
    watch(len(points), len(points))
    return write.files | _shared()


def _shared() -> Files:
    here = resources.files("attentest.report")
    style = (here / "style.css").read_text(encoding="utf-8")
    return {
        "style.css": f"{style}\n{HEATMAP_CSS}",
        "icon.svg": (here / "icon.svg").read_text(encoding="utf-8"),
    }


def _corpora(points: Sequence[GridPoint], shown: Mapping[str, str]) -> tuple[list[CorpusOverview], Files]:
    """The main numbers by corpus, and a drawing of each."""
    overviews, files = [], Files()
    differs = dict(zip(points, told_apart(points), strict=True))
    for place, (name, some) in enumerate(groupby(points, key=lambda point: point.corpus)):
        rows = [
            ModelRow(point=p, differs=differs[p], numbers=[main_line(p, main) for main in shown])
            for p in some
        ]
        anchor = f"corpus-{place}-{re.sub(r'[^a-z0-9]+', '-', name.lower())[:40]}"
        file = f"figures/{anchor}.svg"
        files[file] = to_svg(
            main_numbers(_numbers(rows, shown.values()), title="Main numbers", subtitle=name)
        )
        overviews.append(
            CorpusOverview(
                name=name,
                anchor=anchor,
                stored=next((row.point.stored_corpus for row in rows if row.point.stored_corpus), None),
                models=rows,
                picture=file,
            )
        )
    return overviews, files


def _numbers(rows: Sequence[ModelRow], measures: Collection[str]) -> list[MainNumber]:
    return [
        MainNumber(
            measure=FOUND if line.searched else measure,
            model=f"{row.point.model} ({row.differs})" if row.differs else row.point.model,
            **{name: float(line.finding[name]) for name in ("estimate", "low", "high", "null")},
        )
        for row in rows
        for measure, line in zip(measures, row.numbers, strict=True)
        if line is not None
    ]


class _Writer:
    """Fills templates; every value on a page passes through `_clean` and is then escaped."""

    def __init__(self) -> None:
        self.files = Files()
        self.templates = Environment(
            loader=PackageLoader("attentest.report"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_clean,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.filters |= {"number": _number, "count": count, "short": short, "ready": Markup}

    def __call__(self, template: str, file: str, page: object) -> None:
        self.files[file] = self.templates.get_template(template).render(page=page) + "\n"


def _number(value: float) -> str:
    return number(value).replace("-", "−")


def _clean(value: Any) -> Any:
    return harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value
