"""A forest plot as plain SVG: one line a test, with its estimate and interval, its null and its power.

Tests have different scales, so every line has its own, whose ends are those of the measure's range. Nothing
here needs a script, a style sheet or a drawing library; what is embedded in a page takes its colours from
the classes, if the page has them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import final

from attentest.notebook import harmless, number

INK, FAINT, RULE, DOT = "#222222", "#62626e", "#b5b5c0", "#d15a00"
HEIGHT = 26  # of a line, in pixels
LABEL, POWER, ROW, HEAD = 330, 190, 46, 34  # of the whole picture, in pixels
FONT = "Liberation Sans, Helvetica, Arial, sans-serif"


@final
@dataclass(frozen=True, kw_only=True)
class ForestLine:
    """One test: what was measured, its null, and how well the test separates known truth."""

    label: str
    estimate: float
    low: float
    high: float
    null: float  # NaN where there is none
    range: tuple[float, float]  # of the measure; the ends of the line
    short: str = ""  # the label where there is little room
    power: str = ""  # how well the test separates known truth, in words
    auc: float = math.nan  # the same as an area under the ROC curve

    def place(self, value: float) -> float:
        """Where a value lies on the line, in per cent; what is outside the range lies at its end."""
        low, high = self.range
        return round(100 * min(max((value - low) / (high - low), 0.0), 1.0), 2)

    @property
    def told(self) -> str:
        """The numbers in words, for whoever cannot see the line."""
        between = f" ({number(self.low)} to {number(self.high)})" if math.isfinite(self.low) else ""
        null = f", null {number(self.null)}" if math.isfinite(self.null) else ", no null"
        return f"{number(self.estimate)}{between}{null}".replace("-", "−")


def strip(line: ForestLine) -> str:
    """The line alone, as wide as whatever holds it: numbers and words are for the page to say."""
    return (
        f'<svg class="forest" width="100%" height="{HEIGHT}" role="img"'
        f' aria-label="{escape(harmless(f"{line.label}: {line.told}"))}">{_marks(line)}</svg>'
    )


def _marks(line: ForestLine) -> str:
    """Axis, zero, null, interval and dot; places are per cents of whatever is as wide as the line."""
    middle = HEIGHT / 2
    parts = [_rule("axis", 0.0, 100.0, middle, RULE, 1)]
    if line.range[0] < 0 < line.range[1]:
        parts.append(_upright("zero", line.place(0.0), 4, RULE, 1))
    if math.isfinite(line.null):
        parts.append(_upright("null", line.place(line.null), 9, INK, 2))
    if math.isfinite(line.low) and math.isfinite(line.high):
        parts.append(_rule("interval", line.place(line.low), line.place(line.high), middle, DOT, 4))
    if math.isfinite(line.estimate):
        parts.append(f'<circle class="dot" cx="{line.place(line.estimate):g}%" cy="{middle:g}" r="5"')
        parts.append(f' fill="{DOT}" />')
    return "".join(parts)


def _rule(name: str, start: float, end: float, at: float, colour: str, width: int) -> str:
    return (
        f'<line class="{name}" x1="{start:g}%" x2="{end:g}%" y1="{at:g}" y2="{at:g}" stroke="{colour}"'
        f' stroke-width="{width}" />'
    )


def _upright(name: str, at: float, reach: int, colour: str, width: int) -> str:
    middle = HEIGHT / 2
    return (
        f'<line class="{name}" x1="{at:g}%" x2="{at:g}%" y1="{middle - reach:g}" y2="{middle + reach:g}"'
        f' stroke="{colour}" stroke-width="{width}" />'
    )


def forest(lines: Sequence[ForestLine], *, width: int = 860, title: str = "") -> str:
    """The whole picture with its words: on the left the test, then its line, on the right its power."""
    middle = width - LABEL - POWER
    height = HEAD + ROW * len(lines) + 8
    rows = "".join(_row(line, HEAD + ROW * n, middle, width) for n, line in enumerate(lines))
    heads = _words(LABEL, 16, "this model (dot, 95 % interval) and its null (bar)", FAINT, size=12)
    heads += _words(width - POWER + 14, 16, "separates known truth", FAINT, size=12)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="forest-plot" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" font-family="{FONT}" role="img"'
        f' aria-label="{escape(harmless(title))}">{heads}{rows}</svg>'
    )


def _row(line: ForestLine, top: int, middle: int, width: int) -> str:
    low, high = (number(end) for end in line.range)
    ends = _words(LABEL, top + 36, low, FAINT, size=11)
    ends += _words(width - POWER, top + 36, high, FAINT, size=11, anchor="end")
    said = _words(0, top + 17, line.label, INK, size=14) + _words(0, top + 34, line.told, FAINT, size=12)
    said += _words(width - POWER + 14, top + 17, line.power, INK, size=13)
    drawn = f'<svg x="{LABEL}" y="{top}" width="{middle}" height="{HEIGHT}" overflow="visible">'
    return f"{said}{drawn}{_marks(line)}</svg>{ends}"


def _words(x: int, y: int, said: str, colour: str, *, size: int, anchor: str = "start") -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" text-anchor="{anchor}">'
        f"{escape(harmless(said))}</text>"
    )
