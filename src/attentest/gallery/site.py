"""The report: a folder of pages about everything a store holds; they open from disk, and nothing is fetched.

Whatever comes from corpora, labels, names and titles is untrusted: each value is cleared of control and
direction signs and then escaped as it enters a page, and the pages forbid everything but their own files:
style sheet, scripts, pictures. Pages can be read without scripts; with them one arranges, filters, compares.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from importlib import resources
from itertools import chain, groupby
from typing import Any

from attentest.charts.overview import MainNumber, main_numbers
from attentest.charts.style import to_svg, unvalidated
from attentest.compare.points import GridPoint, grid_points, told_apart
from attentest.compare.stored import Stored
from attentest.compare.verdicts import Judged, judged
from attentest.gallery.calibration import calibration_page
from attentest.gallery.catalogue import catalogue
from attentest.gallery.drawing import drawn_apart, workers_for
from attentest.gallery.earlier import Earlier, Made, spelled, stamp_of, token
from attentest.gallery.extra import no_findings
from attentest.gallery.first_page import card_picture, lead
from attentest.gallery.heatmaps import HEATMAP_CSS, LEVELS
from attentest.gallery.index_page import CorpusOverview, IndexPage, ModelRow
from attentest.gallery.lines import columns, main_line
from attentest.gallery.missing import failed
from attentest.gallery.numbers import numbers
from attentest.gallery.page_writer import Writer, anchor_of
from attentest.gallery.pages import (
    AboutPage,
    ComparePage,
    ExplorerPage,
    TextsPage,
)
from attentest.gallery.point_files import Asked, point_files
from attentest.gallery.shards import scripts, shard
from attentest.gallery.study_figures import Album, lacking
from attentest.gallery.studying import ran_here, recipes, study_pages
from attentest.store.checking import without_damaged
from attentest.store.store import Store
from attentest.studies.recipe import Study

Files = dict[str, str]
NUMBERS = "data/numbers.js"
FOUND = "attention found by the published search (JSD)"
Watch = Callable[[int, int], None]  # how many models and studies have their pages, of how many


def build(
    place: str | Store,
    shelf: Mapping[str, str],
    *,
    watch: Watch = lambda done, of: None,
    earlier: Earlier | None = None,
    **asked: Any,
) -> Files:
    """Every file of the report by its name. The same store gives the same bytes.

    `shelf` says of every corpus whether it is here; `asked` are the fields of `Asked`. Cells that are damaged
    are left out, and the store says which. Pages of grid points that an `earlier` report has are taken from
    it where all they are made from is the same.
    """
    store = place if isinstance(place, Store) else Store(place)
    kept, wanted = earlier or Earlier(), Asked(**asked)
    said = {**asdict(wanted), "private": sorted(wanted.private), "shelf": dict(shelf)}

    def made(store: Store) -> Files:
        known = recipes(wanted.studies, store)
        whole = kept.whole(stamp_of(store, known, said))
        return _build(store, known, shelf, watch, wanted, kept) if whole is None else whole

    with unvalidated():
        return without_damaged(store.existing(), made)


def _build(
    store: Store,
    known: Mapping[str, Study],
    shelf: Mapping[str, str],
    watch: Watch,
    wanted: Asked,
    earlier: Earlier,
) -> Files:
    stored = Stored(store)
    points = grid_points(stored)
    if not points:
        raise no_findings(store.url)
    write = Writer()
    steps = len(points) + len(known)
    watch(0, steps)
    verdicts = {name: list(judged(study, points)) for name, study in known.items()}
    seeds, album, texts = _point_pages(
        write, points, known, verdicts, wanted, earlier, lambda done: watch(done, steps)
    )
    missing = lacking(shelf, points, failed(stored.store))
    pages, downloads = study_pages(
        known,
        stored,
        points,
        verdicts,
        shelf,
        album,
        missing,
        ran_here(known, stored.store, wanted.studies, points),
        watch=lambda done: watch(len(points) + done, steps),
    )
    write.files |= downloads
    for study in pages:
        write("study.html", study.file, study)
    shown = columns(points)
    corpora, drawings = _corpora(points, shown)
    write.files |= drawings
    why = {"failed": missing.failed, "absent": missing.absent}
    write.files[NUMBERS] = shard("numbers", numbers(points, seeds, known, why))
    write("compare.html", "compare.html", ComparePage(shard=NUMBERS))
    calibrated, drawings = calibration_page(stored)
    write.files |= drawings
    write("calibration.html", "calibration.html", calibrated)
    catalogued = catalogue(stored, points, known, wanted.corpora, wanted.version)
    write("catalogue.html", "catalogue.html", catalogued)
    apart = told_apart(points)
    write("texts.html", "texts.html", TextsPage(rows=[*zip(points, apart, texts, strict=True)]))
    write("about.html", "about.html", AboutPage(version=wanted.version))
    write(
        "index.html",
        "index.html",
        IndexPage(
            lead=lead(points, pages, wanted.private),
            cards={page.file: card_picture(page, points) for page in pages if page.ran},
            measures=list(shown.values()),
            corpora=corpora,
            studies=pages,
            points=len(points),
            version=wanted.version,
            shard=NUMBERS,
        ),
    )
    watch(steps, steps)
    return write.files | _shared()


def _point_pages(
    write: Writer,
    points: Sequence[GridPoint],
    known: Mapping[str, Study],
    verdicts: Mapping[str, Sequence[Judged]],
    wanted: Asked,
    earlier: Earlier,
    watch: Callable[[int], None],
) -> tuple[dict[str, dict[str, dict[str, float]]], Album, list[ExplorerPage]]:
    """A page and an explorer for each grid point; gives numbers of single seeds, figures and explorers."""
    said: dict[str, list[Judged]] = {point.file: [] for point in points}
    for one in chain.from_iterable(verdicts.values()):
        said[one.point.file].append(one)
    seeds: dict[str, dict[str, dict[str, float]]] = {}
    album, explored = Album(), []
    recipe = spelled(known)
    tokens = {point.file: token(point, said[point.file], recipe, wanted.of(point)) for point in points}
    apart = _drawn_apart(
        [file for file in tokens if tokens[file] not in earlier.pages], points, known, wanted, watch
    )
    for point in points:
        made = apart.pop(point.file, None) or earlier.take(tokens[point.file])
        if made is None:
            watch(len(seeds))
            made = point_files(write, point, said[point.file], known, **wanted.of(point))
        earlier.keep(tokens[point.file], made)
        write.files |= made.files
        album.add(point, made.drawn)
        explored.append(ExplorerPage(point=point, **made.explorer))
        seeds[point.file] = made.seeds
    return seeds, album, explored


def _drawn_apart(
    files: Sequence[str],
    points: Sequence[GridPoint],
    known: Mapping[str, Study],
    wanted: Asked,
    watch: Callable[[int], None],
) -> dict[str, Made]:
    """What other processes made of these grid points; nothing where there are too few of them."""
    store = points[0].findings[0].stored.store
    made: dict[str, Made] = {}
    if workers := workers_for(len(files), store):
        for file, one in drawn_apart(files, store, wanted, known, workers):
            made[file] = one
            watch(len(made))
    return made


def _shared() -> Files:
    here = resources.files("attentest.gallery")
    style = (here / "style.css").read_text(encoding="utf-8")
    return {
        "style.css": f"{style}\n{HEATMAP_CSS}\n{_night()}",
        "icon.svg": (here / "icon.svg").read_text(encoding="utf-8"),
        **scripts(),
    }


def night_ink(warmth: float) -> str:
    """The colour of words on a warm ground by night: only black and white can be read on every warmth."""
    return "#ffffff" if warmth < 0.6 else "#000000"


def _night() -> str:
    """Heat maps on a dark ground: from the ground to the warm colour, so that little weight is not bright."""
    rules = []
    for n in range(LEVELS + 1):
        ink = night_ink(n / LEVELS)
        ground = f"color-mix(in srgb, var(--hot) {100 * n / LEVELS:g}%, var(--cold))"
        rules.append(
            f"  main .strip .w{n}, main .heatmap .key.w{n} {{ background: {ground}; color: {ink}; }}"
        )
    return "\n".join(["@media (prefers-color-scheme: dark) {", *rules, "}\n"])


def _corpora(points: Sequence[GridPoint], shown: Mapping[str, str]) -> tuple[list[CorpusOverview], Files]:
    """The main numbers by corpus, and a drawing of each."""
    overviews, files = [], Files()
    differs = dict(zip(points, told_apart(points), strict=True))
    for place, (name, some) in enumerate(groupby(points, key=lambda point: point.corpus)):
        rows = [
            ModelRow(point=p, differs=differs[p], numbers=[main_line(p, main) for main in shown])
            for p in some
        ]
        anchor = f"corpus-{place}-{anchor_of(name)}"
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
