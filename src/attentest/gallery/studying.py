"""The page of a study: its claims by corpus and model, and what was published beside what is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from attentest.charts.diagram import zero_and_renormalise
from attentest.charts.style import to_svg
from attentest.compare.formats import FORMATS, SUFFIXES, tables
from attentest.compare.points import GridPoint
from attentest.compare.stored import Stored
from attentest.compare.table import compare_stored
from attentest.compare.verdicts import Judged, asks_for
from attentest.gallery.across import across
from attentest.gallery.pages import StudyPage
from attentest.gallery.study_claims import claim_files, claim_tables
from attentest.gallery.study_figures import Album, Lacking
from attentest.gallery.study_pictures import study_pictures
from attentest.refusal import Refusal
from attentest.studies.recipe import Study, load_study, names

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


def recipes(more: Sequence[str]) -> dict[str, Study]:
    """The studies of the package, and those named beside them, by what they are called with."""
    found = {name: load_study(name) for name in dict.fromkeys([*names(), *more])}
    called = Counter(study.study for study in found.values())
    for name, study in found.items():
        if called[study.study] > 1 and name in more:
            raise Refusal(
                f"study {name}",
                got=f"the name {study.study!r}, which another study has",
                needs="a name of its own, since each study has a page",
                way_out="Change `study` in its TOML.",
            )
    return found


def study_pages(
    studies: Mapping[str, Study],
    stored: Stored,
    points: Sequence[GridPoint],
    verdicts: Mapping[str, Sequence[Judged]],
    shelf: Mapping[str, str],
    album: Album,
    missing: Lacking,
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
