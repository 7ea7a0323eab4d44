"""The Stanford Sentiment Treebank: one bracketed tree a line, the root's number from 0 to 4 its sentiment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from attentest.corpus.document import Document
from attentest.corpus.example import SPLITS, Split
from attentest.corpus.fetch.archive import Archive
from attentest.corpus.tables.records import Line, numbered

MEMBERS = re.compile(r"(?:^|/)trees/(?P<split>train|dev|test)\.txt$")
SENTIMENT = {"0": "negative", "1": "negative", "2": "neutral", "3": "positive", "4": "positive"}

# Only the space separates: some words of the Treebank contain a no-break space ("8 1/2").
PIECE = re.compile(r" *(?:\((?P<node>\d+) |(?P<close>\))|(?P<word>[^ ()]+))")


def leaves(tree: str) -> tuple[str, tuple[str, ...]] | None:
    """The root's number and the words of a tree, or None where the brackets do not add up.

    One pass over the pieces with a depth instead of a recursion: a tree may be as deep as its sentence is
    long, and Python's stack is not.
    """
    root, words, depth, previous = "", [], 0, "start"
    end = 0
    for piece in PIECE.finditer(tree):
        kind = str(piece.lastgroup)
        if piece.start() != end or (previous, kind) not in FOLLOWS or (previous != "start" and not depth):
            return None
        end, previous = piece.end(), kind
        if kind == "word":
            words.append(piece["word"])
        else:
            root = root or piece["node"]
            depth += 1 if kind == "node" else -1
    return (root, tuple(words)) if words and depth == 0 and end == len(tree) else None


# What may come after what: a node opens on nodes or one word, and whatever was opened is closed.
FOLLOWS = {
    ("start", "node"),
    ("node", "node"),
    ("node", "word"),
    ("word", "close"),
    ("close", "close"),
    ("close", "node"),
}


def _document(line: Line, tree: str, split: Split) -> Document:
    found = leaves(tree)
    if found is None or found[0] not in SENTIMENT:
        needs = "a bracketed tree such as '(3 (2 very) (3 good))' with a root from 0 to 4"
        raise line.refusal(f"{tree[:40]!r}", needs)
    root, words = found
    # As one string: the published preparation split the words anew, so "self-aware" counts for three.
    return Document(id=f"{split}-{line.number}", text=" ".join(words), label=SENTIMENT[root], split=split)


def read(archive: Archive) -> Iterator[Document]:
    """Every sentence, neutral ones too, so that preparation can count what it leaves out."""
    missing = {f"trees/{split}.txt" for split in SPLITS}
    for found, lines in archive.streams(MEMBERS):
        split = cast(Split, found["split"])
        missing.discard(f"trees/{split}.txt")
        for line, tree in numbered(lines, where=f"{archive.path}, {found.string}"):
            yield _document(line, tree.rstrip(" "), split)
    if missing:
        raise archive.lacking(missing)
