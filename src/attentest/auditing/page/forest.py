"""A forest plot of an audit's criteria: one row of inline SVG each, all on one axis, without a script.

What is drawn is the effect: the number of the test on the side that supports the criterion, so that further
to the right always says more for it, and 0 is "no better than chance". Places are shares of the width, so
that a row fits a telephone and a page of paper; sizes of signs and letters stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, final

Test = Mapping[str, Any]
LEFT, RIGHT = 3.0, 97.0  # per cent of the width that the axis takes
STEP = 0.25  # between the ticks of the axis
JUDGED = ("supported", "not supported", "undecided")
HEIGHT = 44


@final
@dataclass(frozen=True)
class Axis:
    """From which effect to which the plot goes."""

    low: float
    high: float

    @classmethod
    def of(cls, tests: Iterable[Test]) -> Axis:
        """From just below the least to one, or to the largest effect beyond."""
        ends = [end for test in tests for end in (*_interval(test), own_null(test)) if math.isfinite(end)]
        low = min([-STEP / 2, *(end - STEP / 4 for end in ends)])
        return cls(low, max([1.0, *ends]))

    def place(self, effect: float) -> float:
        """Where an effect stands, in per cent of the width."""
        share = (effect - self.low) / (self.high - self.low)
        return round(LEFT + (RIGHT - LEFT) * min(max(share, 0.0), 1.0), 2)

    @property
    def ticks(self) -> list[float]:
        """The multiples of a quarter on it."""
        first, last = math.ceil(self.low / STEP), math.floor(self.high / STEP)
        return [number * STEP for number in range(first, last + 1)]


def plotted(test: Test | None) -> bool:
    """Whether a test has an effect to draw."""
    return test is not None and _known(test["effect"])


def row(axis: Axis, test: Test) -> str:
    """One test: where models of known truth lie, chance, its null, its margin, and what this model has."""
    parts = [*_of_known_models(axis, test), _line(axis, 0.0, "chance", "#62626e", 'stroke-width="1.5"')]
    if _known(test["margin"]):
        parts.append(_line(axis, test["margin"], "margin", "#62626e", 'stroke-dasharray="3 3"'))
    if math.isfinite(own_null(test)) and own_null(test) != 0:
        parts.append(_diamond(axis, own_null(test)))
    low, high = map(axis.place, _interval(test))
    colour = "#d15a00" if test["verdict"] in JUDGED else "#8a8a96"
    kind = "judged" if test["verdict"] in JUDGED else "shown"
    parts += [
        f'<line class="interval {kind}" x1="{low}%" x2="{high}%" y1="50%" y2="50%" stroke="{colour}"'
        ' stroke-width="4" stroke-linecap="round" opacity=".55" />',
        f'<circle class="estimate {kind}" cx="{axis.place(test["effect"])}%" cy="50%" r="6"'
        f' fill="{colour}" />',
        f'<text x="{axis.place(test["effect"])}%" y="50%" dy="-12" text-anchor="middle" font-size="12"'
        f' font-weight="600" fill="#1f1f26" class="size">{test["effect"]:.2f}</text>',
    ]
    said = escape(_in_words(test), quote=True)
    return (
        f'<svg class="forest" role="img" aria-label="{said}" width="100%" height="{HEIGHT}">'
        f"<title>{said}</title>{''.join(parts)}</svg>"
    )


def scale(axis: Axis) -> str:
    """The axis beneath the rows, with its numbers and what its two directions say."""
    ticks = "".join(
        f'<line x1="{axis.place(tick)}%" x2="{axis.place(tick)}%" y1="0" y2="5" stroke="#62626e" />'
        f'<text x="{axis.place(tick)}%" y="18" text-anchor="{_anchor(axis, tick)}" font-size="11"'
        f' fill="#62626e">{tick:g}</text>'
        for tick in _legible(axis.ticks)
    )
    return (
        f'<svg class="forest axis" aria-hidden="true" width="100%" height="24">'
        f'<line x1="{LEFT}%" x2="{RIGHT}%" y1="0" y2="0" stroke="#62626e" />{ticks}</svg>'
    )


LEGEND = (
    ("estimate", "this model on these texts, with its 95 % interval (grey: shown and not judged)"),
    ("chance", "0: no better than chance"),
    ("null", "what a control reaches: weights of other words, or the same model before training"),
    ("margin", "the margin: to be supported, the estimate must lie clearly to the right of it"),
    ("no", "models whose true answer is known to be no: hardly any lies beyond the grey band"),
    ("yes", "models whose true answer is known to be yes: nearly all lie within the green band"),
)


def legend() -> str:
    """Every sign of a row, with its meaning."""
    signs = {
        "estimate": '<line x1="1" x2="27" y1="8" y2="8" stroke="#d15a00" stroke-width="4" opacity=".55" />'
        '<circle cx="14" cy="8" r="6" fill="#d15a00" />',
        "chance": '<line x1="14" x2="14" y1="0" y2="16" stroke="#62626e" stroke-width="1.5" />',
        "null": '<path d="M14 2 L20 8 L14 14 L8 8 Z" fill="none" stroke="#1f1f26" stroke-width="1.5" />',
        "margin": '<line x1="14" x2="14" y1="0" y2="16" stroke="#62626e" stroke-dasharray="3 3" />',
        "no": '<rect width="28" height="16" fill="#dedee4" />',
        "yes": '<rect width="28" height="16" fill="#bfe3c9" />',
    }
    items = (
        f'<li><svg class="forest key {name}" width="28" height="16" aria-hidden="true">{signs[name]}</svg>'
        f" {escape(said)}</li>"
        for name, said in LEGEND
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def own_null(test: Test) -> float:
    """The null of the finding itself as an effect; NaN where there is none."""
    null = test["null_of_finding"]
    return test["sign"] * (null - test["null"]) if _known(null) and _known(test["null"]) else math.nan


def _interval(test: Test) -> tuple[float, float]:
    """The interval of the effect; the effect itself where there is none."""
    ends = [test["sign"] * (test[end] - test["null"]) for end in ("low", "high") if _known(test[end])]
    return (min(ends), max(ends)) if ends else (test["effect"], test["effect"])


def _of_known_models(axis: Axis, test: Test) -> list[str]:
    """The bands of models whose truth is known: up to where those of no reach, and those of yes begin."""
    parts = []
    if _known(test["largest_no"]):
        end = axis.place(test["largest_no"])
        parts.append(_band("no", LEFT, end, "#dedee4"))
    if _known(test["smallest_yes"]):
        begin = min(axis.place(test["smallest_yes"]), RIGHT - 1.0)
        parts.append(_band("yes", begin, RIGHT, "#bfe3c9"))
    return parts


def _band(name: str, begin: float, end: float, colour: str) -> str:
    width = round(max(end - begin, 0.5), 2)
    return (
        f'<rect class="{name}" x="{begin}%" width="{width}%" y="50%" height="22"'
        f' transform="translate(0 -11)" fill="{colour}" />'
    )


def _line(axis: Axis, effect: float, name: str, colour: str, how: str) -> str:
    place = axis.place(effect)
    return f'<line class="{name}" x1="{place}%" x2="{place}%" y1="0" y2="100%" stroke="{colour}" {how} />'


def _diamond(axis: Axis, effect: float) -> str:
    """A nested picture, because a path cannot be placed by shares of the width."""
    return (
        f'<svg x="{axis.place(effect)}%" y="50%" overflow="visible"><path class="null"'
        ' d="M0 -7 L7 0 L0 7 L-7 0 Z" fill="none" stroke="#1f1f26" stroke-width="1.5" /></svg>'
    )


def _anchor(axis: Axis, tick: float) -> str:
    place = axis.place(tick)
    return "start" if place < LEFT + 2 else "end" if place > RIGHT - 2 else "middle"


def _legible(ticks: Sequence[float]) -> list[float]:
    """Every tick where there are few, else those of halves."""
    return [*ticks] if len(ticks) <= 7 else [tick for tick in ticks if tick % (2 * STEP) == 0]


def _in_words(test: Test) -> str:
    """What the row shows, for whoever does not see it."""
    low, high = _interval(test)
    said = f"{test['title']}: effect {test['effect']:.2f}, 95 % interval {low:.2f} to {high:.2f}"
    if math.isfinite(own_null(test)):
        said += f"; {test['null_in_words']}: {own_null(test):.2f}"
    return said + (f"; margin {test['margin']:.2f}" if _known(test["margin"]) else "")


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
