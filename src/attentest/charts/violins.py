"""Violins by largest attention weight: what intervening on attention does where it is peaked (JW-4, JW-5)."""

from __future__ import annotations

import json
from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from attentest.charts.style import (
    FAINT,
    INK,
    LIGHT,
    PALETTE,
    RULE,
    WIDTH,
    Classes,
    Records,
    classed,
    counted,
    framed,
    inline,
    lacks,
    nothing,
    require,
)
from attentest.statistics.density import SPANS, Violin, violins

LANE = 28  # points of height for one class in one span
FILLED = 0.9  # of a span's height is for violins, the rest keeps the spans apart


def by_largest_weight(
    texts: pd.DataFrame,
    column: str,
    x: alt.X,
    why: str,
    title: str,
    subtitle: str,
    classes: Sequence[str] | None,
    pooled: bool,
    null: str = "",
) -> alt.LayerChart:
    """One violin for each predicted class in each span of `max_attention`; diamonds where a null has medians.

    `why` is said where the column has no number.
    """
    require(texts, column, "max_attention", *([null] if null else []))
    if len(texts):
        texts = texts.assign(**{column: texts[column].where(texts["max_attention"].notna())})
    if lacks(texts, column):
        return nothing(why, title, subtitle)
    groups = classed(texts, classes, pooled)
    found = list(violins(texts, column, groups.of))
    height = len(SPANS) * max(44, LANE * len(groups.names))
    layers = [_separators(), *_shapes(found, groups, x), _points(found, groups, x), _counts(found, groups)]
    note = "each violin is scaled to its own widest place; lines: median and quartiles"
    if null:
        beside = texts[null].where(texts[column].notna())
        layers.append(_null(list(violins(texts.assign(**{null: beside}), null, groups.of)), groups, x))
        note += "; diamonds: the null's medians"
    notes = (counted(texts[column], texts), note)
    return framed(layers, title, subtitle, *notes, height=height)


def _middle(violin: Violin, groups: Classes) -> float:
    """The height of a violin's lane, counted in spans from the top."""
    lane = (groups.names.index(violin.group) + 0.5) / len(groups.names)
    return SPANS.index(violin.span) + (1 - FILLED) / 2 + FILLED * lane


def _height() -> alt.Y:
    """Spans from the top, each a unit high, named at their middles."""
    named = f"{json.dumps(SPANS)}[floor(datum.value)]"
    axis = alt.Axis(
        values=[n + 0.5 for n in range(len(SPANS))], labelExpr=named, grid=False, ticks=False, domain=False
    )
    scale = alt.Scale(domain=[len(SPANS), 0], nice=False, zero=False)
    return alt.Y(field="y", type="quantitative", title="largest attention weight", axis=axis, scale=scale)


def _separators() -> alt.Chart:
    between: Records = [{"y": n} for n in range(len(SPANS) + 1)]
    return alt.Chart(inline(between)).mark_rule(color=RULE).encode(y=_height())


def _shapes(found: Sequence[Violin], groups: Classes, x: alt.X) -> list[alt.Chart]:
    """The violins, and lines across them at their quartiles.

    Equal areas would make a sharp spike at zero, which many models have, the yardstick beside which
    every broad violin is a thread; so each is as thick as its lane at its widest.
    """
    bodies: Records = []
    lines: Records = []
    for violin in found:
        if violin.curve is None:
            continue
        y, at, height = _middle(violin, groups), violin.curve.at, violin.curve.height
        half = 0.46 * FILLED / len(groups.names) * height / height.max()
        who = {"group": violin.group, "span": violin.span}
        ink = INK if PALETTE[groups.names.index(violin.group)] in LIGHT else "white"
        bodies += [{**who, "x": p, "y": y - h, "y2": y + h} for p, h in zip(at, half, strict=True)]
        for name, place in zip(("lower quartile", "median", "upper quartile"), violin.quartiles, strict=True):
            reach = np.interp(place, at, half)
            lines.append({**who, "ink": ink, "line": name, "x": place, "y": y - reach, "y2": y + reach})
    body = (
        alt.Chart(inline(bodies))
        .mark_area(orient="vertical", opacity=0.75, clip=True, stroke=INK, strokeWidth=0.5)
        .encode(x=x, y=_height(), y2="y2", color=groups.colour, detail="span:N")
    )
    median = alt.condition("datum.line == 'median'", alt.value([1, 0]), alt.value([3, 2]))
    line = (
        alt.Chart(inline(lines))
        .mark_rule(strokeWidth=1.4)
        .encode(
            x=x,
            y=_height(),
            y2="y2",
            stroke=alt.Stroke(field="ink", type="nominal", scale=None),
            strokeDash=median,
            tooltip=["group:N", "line:N", "x:Q"],
        )
    )
    return [body, line]


def _points(found: Sequence[Violin], groups: Classes, x: alt.X) -> alt.Chart:
    """Where there are fewer than two different values there is no density: only the place."""
    alone: Records = [
        {"group": v.group, "x": v.quartiles[1], "y": _middle(v, groups)} for v in found if v.curve is None
    ]
    mark = alt.Chart(inline(alone)).mark_point(filled=True, size=40, opacity=1, stroke=INK, strokeWidth=0.5)
    return mark.encode(x=x, y=_height(), color=groups.colour)


def _null(found: Sequence[Violin], groups: Classes, x: alt.X) -> alt.Chart:
    """What the same texts come to where there is nothing to find."""
    middles: Records = [{"x": v.quartiles[1], "y": _middle(v, groups)} for v in found]
    mark = alt.Chart(inline(middles)).mark_point(
        shape="diamond", filled=True, size=70, opacity=1, color=INK, stroke="white", strokeWidth=1
    )
    return mark.encode(x=x, y=_height())


def _counts(found: Sequence[Violin], groups: Classes) -> alt.Chart:
    """How many texts each violin stands for, in the margin."""
    counts: Records = [{"y": _middle(v, groups), "said": f"n = {v.n:,}"} for v in found]
    mark = alt.Chart(inline(counts)).mark_text(align="left", fontSize=10, color=FAINT)
    return mark.encode(x=alt.value(WIDTH + 6), y=_height(), text="said:N")
