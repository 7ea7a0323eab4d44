"""The page of a study: its claims by corpus and model, and what was published beside what is stored.

Its figures are over all models of a store, from their findings alone: what no page of one model can show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import final

import altair as alt

from attentest.charts.context import ModelPoint, context_scatter
from attentest.charts.diagram import zero_and_renormalise
from attentest.charts.style import to_svg
from attentest.compare.formats import FORMATS, SUFFIXES, tables
from attentest.compare.points import GridPoint
from attentest.compare.stored import Stored
from attentest.compare.table import compare_stored
from attentest.compare.verdicts import Judged, asks_for
from attentest.gallery.pages import StudyPage
from attentest.gallery.pictures import Picture, picture
from attentest.gallery.study_claims import claim_files, claim_tables
from attentest.gallery.study_figures import Album, Lacking
from attentest.gallery.study_pictures import study_pictures
from attentest.refusal import Refusal
from attentest.store.store import Store
from attentest.store.studies import remembered
from attentest.studies.recipe import Study, load_study, names, parse

Draw = Callable[[Sequence[GridPoint], str], alt.LayerChart]


@final
@dataclass(frozen=True)
class Across:
    """One kind of figure over models: the experiment it is drawn from, its words, and who draws it."""

    experiment: str
    name: str
    title: str
    says: str
    draw: Draw


def _context(points: Sequence[GridPoint], title: str) -> alt.LayerChart:
    return context_scatter([*map(_placed, points)], title=title, subtitle="every model of the store")


def _placed(point: GridPoint) -> ModelPoint:
    finding = point.of("dispersion")
    assert finding is not None
    spread, tau = (
        finding.row(measure, "overall") for measure in ("entropy-influence", "tau-inputs-gradient")
    )
    nan = float("nan")
    return ModelPoint(
        corpus=point.corpus,
        model=point.model,
        spread=spread["estimate"] if spread else nan,
        excess=tau["estimate"] - tau["null"] if tau else nan,
        low=tau["low"] - tau["null"] if tau else nan,
        high=tau["high"] - tau["null"] if tau else nan,
    )


ACROSS = (
    Across(
        "dispersion",
        "context",
        "Does context make tau unfair?",
        "To the right, hidden states are about more words; further up, attention agrees better with the"
        " gradients of words than in untrained models. If rank correlation were unfair to models with"
        " context, points would fall to the right.",
        _context,
    ),
)


def across(study: Study, points: Sequence[GridPoint]) -> Iterator[Picture]:
    """The figures of the experiments that the study runs, where any model has been asked."""
    run = {step.name for step in study.experiment}
    for figure in ACROSS:
        asked = [point for point in points if point.of(figure.experiment) is not None]
        if figure.experiment in run and asked:
            file = f"figures/across-{figure.name}.svg"
            yield picture(file, figure.title, figure.says, figure.draw(asked, figure.title))


Files = dict[str, str]
# As on a page one reads from left to right: what was found, then how.
ORDER = (
    *("model", "class", "group", "measure", "published", "version A", "ours", "95 % interval", "null"),
    *("agrees", "P(agrees if equal)", "why"),
    *("n", "excluded", "seeds", "seed std", "vectors", "epochs", "decoder", "differs in", "cell"),
)
DOWNLOADS = (".md", ".tex", ".csv")
DEMO = "demo"  # studies that show the package rather than a paper
REMOVALS = {"single-weight", "removal"}  # experiments that take weights away
DIAGRAM = "figures/zero-and-renormalise.svg"


def recipes(more: Sequence[str], store: Store) -> dict[str, Study]:
    """The user's studies that ran in the store, those named here, and those of the package, by name.

    Where a study that ran here has the name of another, it is the one that counts; one whose TOML this
    version cannot read is left out.
    """
    ran = {}
    for name, one in remembered(store).items():
        if not one.packaged:
            with suppress(Refusal):
                recipe = parse(one.toml, name)
                ran[name] = recipe if one.path else recipe.model_copy(update={"published": None})
    named = {name: load_study(name) for name in dict.fromkeys([*more, *names()])}
    called = Counter(study.study for study in named.values())
    for name, study in named.items():
        if called[study.study] > 1 and name in more:
            raise Refusal(
                f"study {name}",
                got=f"the name {study.study!r}, which another study has",
                needs="a name of its own, since each study has a page",
                way_out="Change `study` in its TOML.",
            )
    taken = {study.study for name, study in named.items() if name in more}
    first = {name: study for name, study in ran.items() if study.study not in taken}
    others = {name: study for name, study in named.items() if study.study not in first}
    return first | others


def ran_here(
    studies: Mapping[str, Study], store: Store, more: Sequence[str], points: Sequence[GridPoint]
) -> set[str]:
    """The studies that this store is about: those that ran in it, and those named with `--study`.

    What no such study asks for was imported, or is older than the store's memory: then every study that
    asks for it counts, too.
    """
    known = remembered(store)
    ran = {name for name in studies if name in known or name in more}
    every = [finding for point in points for finding in point.findings]
    left = [f for f in every if not any(asks_for(studies[name], f) for name in ran)]
    return ran | {name for name, study in studies.items() if any(asks_for(study, f) for f in left)}


def study_pages(
    studies: Mapping[str, Study],
    stored: Stored,
    points: Sequence[GridPoint],
    verdicts: Mapping[str, Sequence[Judged]],
    shelf: Mapping[str, str],
    album: Album,
    missing: Lacking,
    ran: Collection[str],
    *,
    watch: Callable[[int], None] = lambda done: None,
) -> tuple[list[StudyPage], Files]:
    """A page for every study of a paper, and for the others that ask for something the store holds."""
    pages, files = [], Files()
    for place, (name, study) in enumerate(studies.items()):
        watch(place)
        asked = any(asks_for(study, finding) for point in points for finding in point.findings)
        document = compare_stored(name, stored, shelf) if study.published is not None else None
        if not asked and document is None and name.startswith(DEMO):
            continue
        stem = f"study-{study.study}"
        downloads = [f"{stem}{suffix}" for suffix in DOWNLOADS] if document is not None else []
        for suffix, file in zip(DOWNLOADS, downloads, strict=False):
            assert document is not None
            files[file] = FORMATS[SUFFIXES[suffix]](document)
        claims = claim_tables(study, verdicts[name])
        taken = claim_files(study, claims)
        files |= taken
        pages.append(
            StudyPage(
                study=study,
                file=f"{stem}.html",
                ran=name in ran,
                claims=claims,
                claim_files=list(taken),
                comparison=document,
                tables=[] if document is None else [*tables(document, ORDER)],
                downloads=downloads,
                diagram=DIAGRAM if REMOVALS & {step.name for step in study.experiment} else "",
                pictures=[*study_pictures(study, points), *across(study, points)],
                figures=[*album.tables(study, missing)],
                texts=[*album.shown_texts(study)],
            )
        )
        for drawn in pages[-1].pictures:
            files |= drawn.files
    if any(page.diagram for page in pages):
        title = "To remove an item: zero its weight and renormalise the rest"
        files[DIAGRAM] = to_svg(zero_and_renormalise(title=title, subtitle="a made example, not a finding"))
    return pages, files
