"""SNLI: pairs of sentences, one JSON object a line; the first may entail or contradict the second."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from attentest.corpus.document import Document
from attentest.corpus.example import SPLITS, Split
from attentest.corpus.fetch.archive import Archive
from attentest.corpus.tables.records import Line, objects, value

MEMBERS = re.compile(r"(?:^|/)snli_1\.0_(?P<split>train|dev|test)\.jsonl$")
LABELS = {
    "contradiction": "contradiction",
    "entailment": "entailment",
    "neutral": "neutral",
    "-": "undecided",  # no three of the five annotators agreed
}


def _document(line: Line, record: dict[str, Any], split: Split) -> Document:
    id, premise, hypothesis, label = (
        value(record, name, str, line) for name in ("pairID", "sentence1", "sentence2", "gold_label")
    )
    if label not in LABELS:
        raise line.refusal(f"the label {label!r}", f"one of {', '.join(LABELS)}")
    return Document(id=id, text=premise, query=hypothesis, label=LABELS[label], split=split)


def read(archive: Archive) -> Iterator[Document]:
    """Every pair, the undecided too, so that preparation can count what it leaves out.

    The text that is attended is the premise (`sentence1`); the hypothesis is the query.
    """
    missing = {f"snli_1.0_{split}.jsonl" for split in SPLITS}
    for found, lines in archive.streams(MEMBERS):
        split = cast(Split, found["split"])
        missing.discard(f"snli_1.0_{split}.jsonl")
        for line, record in objects(lines, where=f"{archive.path}, {found.string}"):
            yield _document(line, record, split)
    if missing:
        raise archive.lacking(missing)
