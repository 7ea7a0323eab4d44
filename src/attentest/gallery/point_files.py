"""The pages of one grid point, from nothing but what `earlier.token` names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from attentest.compare.points import GridPoint
from attentest.compare.verdicts import Judged
from attentest.gallery.by_seed import by_seed
from attentest.gallery.earlier import Made
from attentest.gallery.explorer import corpus_words, explorer
from attentest.gallery.page_writer import Writer
from attentest.gallery.rows import PointRows
from attentest.gallery.sections import point_page
from attentest.gallery.study_figures import told
from attentest.studies.recipe import Study


@final
@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a report is to be made of, beside the store itself."""

    version: str
    studies: Sequence[str] = ()
    private: Collection[str] = ()  # corpora whose texts are left out
    corpora: Sequence[Mapping[str, Any]] = ()  # what the catalogue says of each: title, licence, citation
    every_text: bool = True  # whether each text travels with its attention, or only those kept whole

    def of(self, point: GridPoint) -> dict[str, bool]:
        """What of this changes the pages of a grid point."""
        return {"private": point.corpus in self.private, "every_text": self.every_text}


def point_files(
    write: Writer,
    point: GridPoint,
    said: Sequence[Judged],
    known: Mapping[str, Study],
    *,
    private: bool,
    every_text: bool,
) -> Made:
    """The page and the explorer of one grid point, and what other pages show of it."""
    rows = PointRows(point)
    page, figures = point_page(rows, said, known, private=private)
    held = None if private else corpus_words(point.stored_corpus)
    commands = list(dict.fromkeys(section.command for section in page.sections if section.command))
    texts, shards = explorer(rows, held, commands, private=private, every=every_text)
    files = {point.file: write.filled("point.html", page), texts.file: write.filled("explorer.html", texts)}
    if held is not None:  # models of the same corpus have the same words
        files |= {name: write.files[name] for name in held.names if name in write.files} or held.files()
    about = {name: value for name, value in vars(texts).items() if name != "point"}
    return Made(files=files | figures | shards, seeds=by_seed(rows), drawn=told(page), explorer=about)
