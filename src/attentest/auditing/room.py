"""Texts that are longer than a model can read: refused, left out, or cut at the end of a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from attentest.auditing.options import REFUSE, SKIP, TRUNCATE
from attentest.corpus.example import Example
from attentest.corpus.raw_text import text_and_spans
from attentest.model.seam import Model, Room
from attentest.refusal import Refusal

DONE = {SKIP: "left out", TRUNCATE: "cut at the end of the last word that fits"}


@final
@dataclass(frozen=True)
class TooLong:
    """What was done with texts that the model has no room for."""

    way: str = REFUSE
    most: int | None = None  # places that the model has, where it has a limit
    of: int = 0  # texts that were looked at
    ids: tuple[str, ...] = ()  # of those that were too long

    @property
    def sentence(self) -> str | None:
        """As a report says it; None where no text was too long."""
        if not self.ids:
            return None
        were = "was" if len(self.ids) == 1 else "were"
        return (
            f"{len(self.ids)} of {self.of} texts {were} longer than the {self.most} places that the model has"
            f" positions for, and {were} {DONE[self.way]}."
        )

    @property
    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "way": self.way,
            "places": self.most,
            "texts": len(self.ids),
            "of": self.of,
            "ids": [*self.ids],
        }


def with_room(model: Model, examples: Sequence[Example], way: str) -> tuple[tuple[Example, ...], TooLong]:
    """The texts that the model can read, and what became of the others. To refuse is left to the model."""
    room = model.capabilities.room
    if room is None or way == REFUSE:
        return tuple(examples), TooLong(way, None if room is None else room.most, len(examples))
    long = {example.id for example in examples if room.places(example) > room.most}
    found = TooLong(way, room.most, len(examples), tuple(e.id for e in examples if e.id in long))
    if way == SKIP:
        return tuple(example for example in examples if example.id not in long), found
    return tuple(cut(each, room) if each.id in long else each for each in examples), found


def cut(example: Example, room: Room) -> Example:
    """The example with as many of its first words as the model has room for."""
    low, high = 0, len(text_and_spans(example)[1])
    while high - low > 1:  # so many words fit, and so many do not
        middle = (low + high) // 2
        fits = room.places(first_words(example, middle)) <= room.most
        low, high = (middle, high) if fits else (low, middle)
    if not low:
        raise Refusal(
            f"text {example.id!r}",
            got=f"a first word or a second text that takes more than the model's {room.most} places alone",
            needs="room for at least one word",
            way_out="Leave that text out: too_long='skip'.",
        )
    return first_words(example, low)


def first_words(example: Example, count: int) -> Example:
    """The example cut behind so many words; marks and sentences that begin later are gone."""
    text, spans = text_and_spans(example)
    short = text[: spans[count - 1][1]]
    if len(spans) != len(example.tokens):  # a preparation dropped or rewrote some
        tokens = tuple(short[start:end] for start, end in spans[:count])
        return replace(example, tokens=tokens, text=short, rationale=None, sentences=None)
    kept = {
        name: None if places is None else tuple(place for place in places if place < count)
        for name, places in (("rationale", example.rationale), ("sentences", example.sentences))
    }
    return replace(
        example,
        tokens=example.tokens[:count],
        text=None if example.text is None else short,
        rationale=kept["rationale"],
        sentences=kept["sentences"],
    )
