"""CNN cloze questions: a passage whose entities are numbered, and a sentence with one of them left out."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from attentest.corpus.document import Document
from attentest.corpus.example import Split
from attentest.corpus.fetch.archive import Archive
from attentest.refusal import Refusal

MEMBERS = re.compile(r"(?:^|/)questions/(?P<id>(?P<split>training|validation|test)/[^/]+)\.question$")
FOLDERS: dict[str, Split] = {"training": "train", "validation": "dev", "test": "test"}
BLANK = re.compile(r"\r?\n\s*\n")
ENTITY = re.compile(r"@entity\d+")
PLACEHOLDER = "@placeholder"


def _wrong(blocks: list[str]) -> tuple[str, str] | None:
    """What is there and what should be, where a file's blocks are no question."""
    if len(blocks) != 5:
        return f"{len(blocks)} blocks", "5: address, passage, question, answer, entities; blank lines between"
    _, passage, question, answer, _ = blocks
    if PLACEHOLDER not in question:
        return "a question without @placeholder", "one that says where the answer was"
    if answer not in ENTITY.findall(passage):
        return f"the answer {answer[:40]!r}", "an entity that occurs in the passage"
    return None


def _document(where: str, text: str, *, id: str, split: Split) -> Document:
    blocks = [block.strip() for block in BLANK.split(text.strip())]
    wrong = _wrong(blocks)
    if wrong:
        way_out = "The file is damaged or not the publisher's: get it again."
        raise Refusal(where, got=wrong[0], needs=wrong[1], way_out=way_out)
    _, passage, question, answer, _ = blocks
    return Document(
        id=id,
        text=tuple(passage.split()),
        query=tuple(question.split()),
        label=sys.intern(answer),
        split=split,
        # Interned, since hundreds of thousands of questions name the same few hundred entities.
        candidates=tuple(sorted({sys.intern(entity) for entity in ENTITY.findall(passage)})),
    )


def read(archive: Archive) -> Iterator[Document]:
    """Every question. The publisher's tokens are kept; the candidates are the entities of the passage."""
    missing = {f"questions/{folder}/*.question" for folder in FOLDERS}
    for found, content in archive.members(MEMBERS):
        missing.discard(f"questions/{found['split']}/*.question")
        where, text = f"{archive.path}, {found.string}", archive.decoded(found.string, content)
        yield _document(where, text, id=found["id"], split=FOLDERS[found["split"]])
    if missing:
        raise archive.lacking(missing)
