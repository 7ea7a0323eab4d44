"""How Serrano & Smith take a weight away: to zero it and renormalise the rest (SS-1 to SS-3), drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import altair as alt

from attentest.charts.style import INK, Records, framed
from attentest.charts.tiles import Word, plane, tiles, written
from attentest.refusal import Refusal

TILE, LABELS, ANSWERS = 78, 160, 130  # points across: a word, what the rows are, what they say
WARM = "#d15a00"
STEPS = ("the model's weights", "the largest set to zero", "the rest renormalised")


@final
@dataclass(frozen=True)
class WeighedText:
    """Words, their weights, and what each says to a decoder that adds it up by weight, in logits."""

    tokens: Sequence[str]
    weights: Sequence[float]
    says: Sequence[float]

    def __post_init__(self) -> None:
        if not 2 <= len(self.tokens) == len(self.weights) == len(self.says) or max(self.weights) >= 1:
            raise Refusal(
                "diagram of a removal",
                got=f"{len(self.tokens)} words, {len(self.weights)} weights, {len(self.says)} logits",
                needs="a weight below one and a logit for each of at least two words",
                way_out="Without its largest weight something must be left to renormalise.",
            )

    def removed(self) -> list[list[float]]:
        """Its weights, without the largest, and the rest as a distribution again."""
        largest = max(range(len(self.weights)), key=lambda place: self.weights[place])
        zeroed = [0.0 if place == largest else weight for place, weight in enumerate(self.weights)]
        return [list(self.weights), zeroed, [weight / sum(zeroed) for weight in zeroed]]

    def output(self, weights: Sequence[float]) -> float:
        """The probability of yes under these weights."""
        logit = sum(weight * said for weight, said in zip(weights, self.says, strict=True))
        return 1.0 / (1.0 + math.exp(-logit))


# By hand, and small enough to check on paper.
MADE = WeighedText(
    tokens=("a", "truly", "great", "cast", "wasted"),
    weights=(0.05, 0.15, 0.5, 0.1, 0.2),
    says=(0.0, 0.8, 4.0, 0.2, -5.0),
)


def zero_and_renormalise(text: WeighedText = MADE, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """A text's weights, its largest set to zero, and the rest scaled up to one again, with the answers."""
    steps, end = text.removed(), len(text.tokens)
    weighed: Records = [
        {"x": place, "y": row, "weight": weight}
        for row, weights in enumerate(steps)
        for place, weight in enumerate(weights)
    ]
    answers = [_answer(text.output(steps[0])), f"sums to {sum(steps[1]):.2f}", _answer(text.output(steps[2]))]
    words = [
        *(Word(n + 0.5, -0.3, token, 12, colour=INK) for n, token in enumerate(text.tokens)),
        *(Word(w["x"] + 0.5, w["y"] + 0.5, f"{w['weight']:.2f}", 12, colour=INK) for w in weighed),
        *(Word(-0.15, row + 0.5, said, 12, "right") for row, said in enumerate(STEPS)),
        *(Word(end + 0.15, row + 0.5, said, 12, "left") for row, said in enumerate(answers)),
    ]
    x, y = plane(-LABELS / TILE, end + ANSWERS / TILE, -0.7, float(len(steps)))
    warmth = alt.Scale(domain=[0, 1], range=["#ffffff", WARM], interpolate="rgb")
    colour = alt.Color(field="weight", type="quantitative", scale=warmth, legend=None)
    layers = [tiles(weighed, x, y).encode(color=colour), *written(words, x, y)]
    return framed(layers, title, subtitle, height=150, width=TILE * end + LABELS + ANSWERS)


def _answer(probability: float) -> str:
    return f"{'yes' if probability > 0.5 else 'no'}: p(yes) = {probability:.2f}"
