"""Tweets on drugs, and whether they tell of an adverse reaction: a label and a tweet end each line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attentest.corpus.document import Document
from attentest.corpus.example import Split
from attentest.corpus.fetch.archive import Archive
from attentest.corpus.tables.records import Line, numbered

MEMBERS = re.compile(r"(?:^|/)(?P<name>[^/]+)\.tsv$")
LABELS = {"0": "no", "1": "yes", "no": "no", "yes": "yes"}
SPLITS: dict[str, Split] = {"train": "train", "dev": "dev", "valid": "dev", "test": "test"}


def _split(name: str) -> Split | None:
    """The split that a file's name tells of; many tell of none."""
    return next((split for word, split in SPLITS.items() if word in name.lower()), None)


def _document(line: Line, text: str, name: str) -> Document:
    # Not as CSV: in a tweet a quotation mark is only a quotation mark.
    label, tweet = ["", *text.split("\t")][-2:]
    if label.lower() not in LABELS:
        raise line.refusal(f"{text[:40]!r}", "a label (0, 1, no, yes) and a tweet in the last two columns")
    return Document(id=f"{name}-{line.number}", text=tweet, label=LABELS[label.lower()], split=_split(name))


def read(archive: Archive) -> Iterator[Document]:
    """Every tweet of every `.tsv` file. Columns before the last two, the numbers of tweets, are not used."""
    absent = True
    for found, lines in archive.streams(MEMBERS):
        absent = False
        for line, text in numbered(lines, where=f"{archive.path}, {found.string}"):
            yield _document(line, text, found["name"])
    if absent:
        raise archive.lacking({"*.tsv"})
