"""What people marked in a table's texts, as positions of words: numbers, spans, or the words themselves.

Words are counted from 0 as the reader of tables splits them, punctuation among them, before anything is
dropped. Whatever does not fit its text is refused: a rationale that is off by a word measures nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attentest.refusal import Refusal

Words = Sequence[str]
Tokenise = Callable[[str], Words]
PIECE = re.compile(r"[^\s,]+")
RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)
NEEDS = (
    "positions of words from 0, as in 3 4 5 or 3-6 (6 included) or the list [3, 4, 5]; or a list of "
    "spans [start, end), or of strings that stand in the text"
)


def rationales(
    where: str, values: Sequence[Any], texts: Sequence[str], tokenise: Tokenise
) -> list[tuple[int, ...] | None]:
    """The marked positions of every text; None where a row has no value. No row with any is refused."""
    found: list[tuple[int, ...] | None] = []
    for row, (value, text) in enumerate(zip(values, texts, strict=True), start=1):
        try:
            found.append(None if value is None else positions(value, tokenise(text), tokenise))
        except (ValueError, RecursionError) as wrong:
            raise Refusal(
                where, got=f"{wrong} in row {row}", needs=NEEDS, way_out="Mend that row, or leave it empty."
            ) from wrong
    if not any(found):
        raise Refusal(where, got="no marked word in any row", needs=NEEDS, way_out="Name another column.")
    return found


def positions(value: Any, words: Words, tokenise: Tokenise) -> tuple[int, ...]:
    """The positions that one value marks, in their order; a ValueError says what does not fit."""
    marks = _written(value) if isinstance(value, str) else value
    if not isinstance(marks, list):
        raise ValueError(f"a {type(marks).__name__}")
    places: set[int] = set()
    for start, end in _spans(marks, words, tokenise):
        if start >= end:
            raise ValueError(f"a span from {start} to {end}, which holds no word,")
        if start < 0 or end > len(words):
            raise ValueError(f"word {start if start < 0 else end - 1} of a text of {len(words)} words")
        places.update(range(start, end))
    return tuple(sorted(places))


def _written(text: str) -> Any:
    """A cell of a table without lists: numbers and ranges; or a list, as programs write them into cells."""
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except ValueError as error:
            raise ValueError(f"{text[:40]!a}, which is no list") from error
    spans = []
    for piece in PIECE.findall(text):
        numbers = RANGE.fullmatch(piece)
        if not numbers:
            raise ValueError(f"{piece[:40]!a}")
        # A range is written as people write it, its last word included.
        spans.append([int(numbers[1]), int(numbers[2] or numbers[1]) + 1])
    return spans


def _spans(marks: list[Any], words: Words, tokenise: Tokenise) -> Iterator[tuple[int, int]]:
    if all(_is_number(mark) for mark in marks):
        yield from ((mark, mark + 1) for mark in marks)
    elif all(isinstance(mark, list) and len(mark) == 2 and all(map(_is_number, mark)) for mark in marks):
        yield from ((start, end) for start, end in marks)
    elif all(isinstance(mark, str) for mark in marks):
        for mark in marks:
            yield from _occurrences(mark, words, tokenise)
    else:
        raise ValueError(f"{str(marks)[:40]!a}")


def _is_number(mark: Any) -> bool:
    return isinstance(mark, int) and not isinstance(mark, bool)


def _occurrences(mark: str, words: Words, tokenise: Tokenise) -> Iterator[tuple[int, int]]:
    """Every place where the mark stands as whole words, in any case: which one was meant is not said."""
    wanted = [word.lower() for word in tokenise(mark)]
    lowered = [word.lower() for word in words]
    starts = [n for n in range(len(words)) if wanted and lowered[n : n + len(wanted)] == wanted]
    if not starts:
        raise ValueError(f"{mark[:40]!a}, which is no run of words of the text,")
    yield from ((start, start + len(wanted)) for start in starts)
