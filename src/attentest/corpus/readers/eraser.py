"""ERASER: documents as lines of tokens, and what people marked in them as the reason for a label."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from attentest.corpus.document import Document
from attentest.corpus.example import Split
from attentest.corpus.fetch.archive import Archive
from attentest.corpus.tables.records import Line, objects, value

SPLITS: dict[str, Split] = {"train": "train", "val": "dev", "test": "test"}
SENTIMENT = {"NEG": "negative", "POS": "positive"}


class _Annotation(NamedTuple):
    """What one line says of one document; a span ends before its second number."""

    line: Line
    id: str
    label: str
    split: Split
    document: str
    query: str | None
    spans: tuple[tuple[int, int], ...]


def _within(name: str, rest: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|/){re.escape(name)}/{rest}$")


def members(name: str) -> re.Pattern[str]:
    """The files of a set, which lie in a folder of its name."""
    return _within(name, r"(?:(?:train|val|test)\.jsonl|docs/.+)")


def _annotation(line: Line, record: dict[str, Any], split: Split, query: bool) -> _Annotation:
    id = value(record, "annotation_id", str, line)
    groups = value(record, "evidences", list, line)
    evidence = [piece for group in groups for piece in (group if isinstance(group, list) else [group])]
    documents = {value(piece, "docid", str, line) for piece in evidence} or set(record.get("docids") or [id])
    if len(documents) > 1:
        raise line.refusal(f"evidence in {len(documents)} documents", "evidence in one document")
    ends = ("start_token", "end_token")
    return _Annotation(
        line=line,
        id=id,
        label=value(record, "classification", str, line),
        split=split,
        document=str(documents.pop()),
        query=value(record, "query", str, line) if query else None,
        spans=tuple((value(p, ends[0], int, line), value(p, ends[1], int, line)) for p in evidence),
    )


def _annotations(archive: Archive, name: str, query: bool) -> Iterator[_Annotation]:
    missing = {f"{name}/{file}.jsonl" for file in SPLITS}
    for found, lines in archive.streams(_within(name, r"(?P<file>train|val|test)\.jsonl")):
        missing.discard(f"{name}/{found['file']}.jsonl")
        for line, record in objects(lines, where=f"{archive.path}, {found.string}"):
            yield _annotation(line, record, SPLITS[found["file"]], query)
    if missing:
        raise archive.lacking(missing)


def _tokens(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The tokens of a document, and where its lines, which are its sentences, begin."""
    tokens: list[str] = []
    starts: list[int] = []
    for line in text.split("\n"):
        words = [word for word in line.strip().split(" ") if word]
        if words:
            starts.append(len(tokens))
            tokens += words
    return tuple(tokens), tuple(starts)


def _document(annotation: _Annotation, text: str) -> Document:
    tokens, sentences = _tokens(text)
    for start, end in annotation.spans:
        if not 0 <= start <= end <= len(tokens):
            raise annotation.line.refusal(
                f"evidence from token {start} to {end}", f"evidence within the {len(tokens)} of its document"
            )
    return Document(
        id=annotation.id,
        text=tokens,
        label=annotation.label,
        split=annotation.split,
        query=annotation.query,
        rationale=tuple(sorted({n for start, end in annotation.spans for n in range(start, end)})),
        sentences=sentences,
    )


def read(
    archive: Archive, *, name: str, labels: Mapping[str, str] | None = None, query: bool = False
) -> Iterator[Document]:
    """Every annotation of a set, with the tokens of its evidence as the rationale.

    `labels` gives the set's labels other names, and no other label is let pass; `query` reads the question
    or claim, which in some sets (movies) is the same for all texts. For the sets that keep their texts in
    `docs/`, one for each annotation: movies, boolq, multirc, fever, scifact.
    """
    waiting: dict[str, list[_Annotation]] = {}
    for annotation in _annotations(archive, name, query):
        label = annotation.label if labels is None else labels.get(annotation.label)
        if label is None:
            needs = f"one of {', '.join(labels or ())}"
            raise annotation.line.refusal(f"the label {annotation.label!r}", needs)
        waiting.setdefault(annotation.document, []).append(annotation._replace(label=label))
    for found, content in archive.members(_within(name, "docs/(?P<document>.+)")):
        for annotation in waiting.pop(found["document"], ()):
            yield _document(annotation, archive.decoded(found.string, content))
    if waiting:
        raise archive.lacking({f"{name}/docs/{document}" for document in sorted(waiting)[:3]})
