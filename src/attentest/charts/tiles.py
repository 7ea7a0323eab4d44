"""Tables as pictures: words on tiles, both placed in tiles from the corner of the first one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Literal, NamedTuple

import altair as alt

from attentest.charts.style import FAINT, Records, inline
from attentest.notebook import harmless

LIMIT = 180  # points across that a word may take


class Word(NamedTuple):
    """Something written, where, and how."""

    x: float
    y: float
    said: str
    size: int = 10
    align: Literal["left", "center", "right"] = "center"
    colour: str = FAINT


def plane(left: float, right: float, top: float, bottom: float) -> tuple[alt.X, alt.Y]:
    """Both directions in tiles, downwards from the top; nothing of an axis is drawn."""
    across, down = alt.Scale(domain=[left, right], nice=False), alt.Scale(domain=[bottom, top], nice=False)
    return (
        alt.X(field="x", type="quantitative", axis=None, scale=across),
        alt.Y(field="y", type="quantitative", axis=None, scale=down),
    )


def tiles(records: Records, x: alt.X, y: alt.Y) -> alt.Chart:
    """A tile for each record, down and to the right of its place."""
    placed: Records = [{**record, "x2": record["x"] + 1, "y2": record["y"] + 1} for record in records]
    return (
        alt.Chart(inline(placed)).mark_rect(stroke="white", strokeWidth=3).encode(x=x, x2="x2", y=y, y2="y2")
    )


def written(words: Iterable[Word], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A layer for the words of each size, alignment and colour."""
    layers = []
    for (size, align, colour), alike in groupby(sorted(words, key=_style), key=_style):
        placed: Records = [{"x": word.x, "y": word.y, "said": harmless(word.said)} for word in alike]
        mark = alt.Chart(inline(placed)).mark_text(fontSize=size, align=align, color=colour, limit=LIMIT)
        layers.append(mark.encode(x=x, y=y, text=alt.Text(field="said", type="nominal")))
    return layers


def _style(word: Word) -> tuple[int, Literal["left", "center", "right"], str]:
    return word.size, word.align, word.colour
