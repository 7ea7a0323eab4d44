"""How Wen et al. group hidden states by rank of attention (their Figure 1), drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import altair as alt

from attentest.charts.style import INK, Records, framed
from attentest.charts.tiles import Word, plane, tiles, written
from attentest.refusal import Refusal

TILE, LABELS = 74, 70  # points across: a word, what the rows are
GAP = 0.6  # in tiles, between the words in their order and in that of attention
WARM = "#d15a00"


@final
@dataclass(frozen=True)
class RankedText:
    """Words, their weights, and what the model says of the text."""

    tokens: Sequence[str]
    weights: Sequence[float]
    said: str

    @property
    def pairs(self) -> list[tuple[str, float]]:
        """The words as they are written, each with its weight."""
        return list(zip(self.tokens, self.weights, strict=True))

    def by_weight(self) -> list[tuple[str, float]]:
        """The largest weight first, ties in the order of the text."""
        return sorted(self.pairs, key=lambda pair: -pair[1])


# By hand, and small enough to check on paper.
MADE = (
    RankedText(("a", "truly", "great", "cast"), (0.1, 0.2, 0.6, 0.1), "yes"),
    RankedText(("dull", "from", "the", "start"), (0.7, 0.05, 0.1, 0.15), "no"),
    RankedText(("its", "charm", "wins", "out"), (0.05, 0.5, 0.3, 0.15), "yes"),
)


def rank_groups(texts: Sequence[RankedText] = MADE, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """Texts as they are, and with their words by attention: a column is one rank, and one variable."""
    width = _words_each(texts)
    begins, below = width + GAP, float(len(texts))
    words = [
        Word(width / 2, -0.25, "as they are written", 12, colour=INK),
        Word(begins + width + 0.15, -0.25, "Y", 12, "left", colour=INK),
        *_columns(texts, width, begins),
    ]
    weighed: Records = []
    for row, text in enumerate(texts):
        words.append(Word(begins + width + 0.15, row + 0.5, f"says {text.said}", 12, "left"))
        for start, pairs in ((0.0, text.pairs), (begins, text.by_weight())):
            for place, (token, weight) in enumerate(pairs):
                at = start + place
                weighed.append({"x": at, "y": row, "weight": weight})
                words.append(Word(at + 0.5, row + 0.35, token, 12, colour=INK))
                words.append(Word(at + 0.5, row + 0.7, f"{weight:.2f}", 10))
    x, y = plane(-0.1, begins + width + LABELS / TILE, -0.6, below + 0.9)
    warmth = alt.Scale(domain=[0, 1], range=["#ffffff", WARM], interpolate="rgb")
    colour = alt.Color(field="weight", type="quantitative", scale=warmth, legend=None)
    layers = [tiles(weighed, x, y).encode(color=colour), *written(words, x, y)]
    return framed(layers, title, subtitle, height=210, width=int(TILE * (begins + width)) + LABELS)


def _words_each(texts: Sequence[RankedText]) -> int:
    lengths = {len(text.tokens) for text in texts}
    if len(lengths) != 1 or any(len(text.tokens) != len(text.weights) for text in texts):
        raise Refusal(
            "diagram of ranks",
            got=f"{len(texts)} texts of {', '.join(map(str, sorted(lengths))) or 'no'} words",
            needs="texts of as many words each, and a weight for every word",
            way_out="Texts that are shorter than the number of ranks are left out anyway.",
        )
    return lengths.pop()


def _columns(texts: Sequence[RankedText], width: int, begins: float) -> Iterator[Word]:
    """Over each rank its number; under it what it tells, and the mean attention it is weighed by."""
    for place in range(width):
        at = begins + place + 0.5
        mean = sum(text.by_weight()[place][1] for text in texts) / len(texts)
        yield Word(at, -0.25, f"rank {place + 1}", 12, colour=INK)
        yield Word(at, len(texts) + 0.25, f"I(X{place + 1}; Y)", 12, colour=INK)
        yield Word(at, len(texts) + 0.6, f"mean {mean:.2f}", 10)
