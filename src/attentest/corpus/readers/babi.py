"""bAbI: numbered story lines; one with tabs is a question, its answer and the lines that support it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast, final

from attentest.corpus.document import Document
from attentest.corpus.example import Split
from attentest.corpus.fetch.archive import Archive
from attentest.corpus.tables.records import numbered

LINE = re.compile(
    r"(?P<number>\d{1,6}) (?P<text>[^\t]*[^\t ]) *"
    r"(?:\t *(?P<answer>[^\t]*[^\t ]) *\t *(?P<support>\d{1,6}(?: +\d{1,6})*) *)?"
)
TOKEN = re.compile(r"[^\W_]+(?:['-][^\W_]+)*|[^\w\s]")


def members(task: int) -> re.Pattern[str]:
    """The two files of a task. `en-10k` is part of the name: the archive has other languages and sizes."""
    return re.compile(rf"(?:^|/)en-10k/qa{task}_(?:[^/]*_)?(?P<split>train|test)\.txt$")


def tokens(text: str) -> tuple[str, ...]:
    """Lower-cased words and signs; the full stop is a token, as in the papers."""
    return tuple(TOKEN.findall(text.lower()))


@final
@dataclass
class _Story:
    """The facts told so far. Question lines have numbers too, but are no part of the text."""

    number: int = 0
    last: int = 0
    questions: int = 0
    tokens: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    facts: dict[int, range] = field(default_factory=dict)  # line number -> token positions

    def tell(self, text: str) -> None:
        words = tokens(text)
        self.facts[self.last] = range(len(self.tokens), len(self.tokens) + len(words))
        self.starts.append(len(self.tokens))
        self.tokens.extend(words)

    def ask(self, question: str, answer: str, support: str, split: Split) -> Document | None:
        """The question as a document, or None where a supporting number names no fact of this story."""
        self.questions += 1
        facts = [self.facts.get(number) for number in sorted({int(n) for n in support.split()})]
        if None in facts:
            return None
        return Document(
            id=f"{split}-{self.number}-{self.questions}",
            text=tuple(self.tokens),
            label=answer.lower(),
            split=split,
            query=tokens(question),
            rationale=tuple(position for fact in facts for position in fact or ()),
            sentences=tuple(self.starts),
        )


def documents(lines: Iterator[str], split: Split, *, where: str) -> Iterator[Document]:
    """The questions of one file, each with all that was told before it; `where` is for refusals."""
    story, empty = _Story(), True
    for line, text in numbered(lines, where=where):
        found = LINE.fullmatch(text.rstrip(" "))
        if found is None:
            raise line.refusal(f"{text[:40]!r}", "'N sentence.' or 'N question?<tab>answer<tab>N ...'")
        if found["number"] == "1":
            story = _Story(number=story.number + 1)
        story.last += 1
        if int(found["number"]) != story.last:
            raise line.refusal(f"{text[:40]!r}", f"a line numbered {story.last}, or 1 for a new story")
        if found["answer"] is None:
            story.tell(found["text"])
            continue
        document = story.ask(found["text"], found["answer"], found["support"], split)
        if document is None:
            raise line.refusal(f"{text[:40]!r}", "supporting numbers that are sentences of the story so far")
        empty = False
        yield document
    if empty:
        raise line.refusal("the end, and no question before it", "at least one question with its answer")


def read(archive: Archive, *, task: int) -> Iterator[Document]:
    """Every question of a task. A text is the story without its questions; the rationale is its support."""
    missing = {f"en-10k/qa{task}_*_{split}.txt" for split in ("train", "test")}
    for found, lines in archive.streams(members(task)):
        split = cast(Split, found["split"])
        missing.discard(f"en-10k/qa{task}_*_{split}.txt")
        yield from documents(lines, split, where=f"{archive.path}, {found.string}")
    if missing:
        raise archive.lacking(missing)
