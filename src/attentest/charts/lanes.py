"""Distributions one below the other, each with its quartiles and its null (ME Figures 1, 2 and 4)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import altair as alt
import numpy as np
import pandas as pd

from attentest.charts.style import (
    FAINT,
    INK,
    RULE,
    WIDTH,
    Records,
    framed,
    inline,
    nothing,
)
from attentest.statistics.density import density, finite

HEIGHT = 38  # points for a lane


@final
@dataclass(frozen=True, eq=False)
class Lane:
    """One distribution under its name, and the one it is held against, if there is one."""

    name: str
    values: pd.Series
    null: pd.Series | None
    colour: str


def drawn_lanes(
    lanes: Sequence[Lane],
    rows: pd.DataFrame,
    axis: str,
    ends: tuple[float, float],
    against: str,
    title: str,
    subtitle: str,
) -> alt.LayerChart:
    """The lanes one below the other, each with its quartiles and the median of its null."""
    there = [lane for lane in lanes if len(finite(lane.values))]
    if not there:
        return nothing("No text has a number to show.", title, subtitle)
    x = alt.X(
        field="x",
        type="quantitative",
        title=axis,
        scale=alt.Scale(domain=[ends[0] - 0.02, ends[1] + 0.02], nice=False),
    )
    y = _height([lane.name for lane in there])
    seeds = rows["seed"].nunique()
    lost = sum(len(lane.values) - len(finite(lane.values)) for lane in there)
    note = f"n at the right{f' over {seeds} seeds' if seeds > 1 else ''}"
    note += f"; {lost:,} undefined and left out" if lost else ""
    reads = "each scaled to its own widest place; lines: median and quartiles"
    layers = [_separators(len(there), y), *_shapes(there, x, y), _counts(there, y)]
    if any(lane.null is not None and len(finite(lane.null)) for lane in there):
        layers.append(_nulls(there, x, y))
        reads += f"; diamonds: medians of {against}"
    return framed(layers, title, subtitle, note, reads, height=HEIGHT * len(there))


def _height(names: Sequence[str]) -> alt.Y:
    axis = alt.Axis(
        values=[place + 0.5 for place in range(len(names))],
        labelExpr=f"{json.dumps(list(names), ensure_ascii=False)}[floor(datum.value)]",
        grid=False,
        ticks=False,
        domain=False,
        labelLimit=260,
    )
    scale = alt.Scale(domain=[len(names), 0], nice=False, zero=False)
    return alt.Y(field="y", type="quantitative", title=None, axis=axis, scale=scale)


def _separators(count: int, y: alt.Y) -> alt.Chart:
    between: Records = [{"y": place} for place in range(count + 1)]
    return alt.Chart(inline(between)).mark_rule(color=RULE).encode(y=y)


def _shapes(lanes: Sequence[Lane], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    bodies: Records = []
    lines: Records = []
    for place, lane in enumerate(lanes):
        middle, curve = place + 0.5, density(lane.values)
        quartiles = np.quantile(finite(lane.values), (0.25, 0.5, 0.75)).tolist()
        reach = dict.fromkeys(quartiles, 0.2)
        if curve is not None:
            half = 0.42 * curve.height / curve.height.max()
            who = {"lane": lane.name, "colour": lane.colour}
            bodies += [
                {**who, "x": at, "y": middle - h, "y2": middle + h}
                for at, h in zip(curve.at.tolist(), half.tolist(), strict=True)
            ]
            reach = {quartile: float(np.interp(quartile, curve.at, half)) for quartile in quartiles}
        lines += [
            {"x": quartile, "y": middle - reach[quartile], "y2": middle + reach[quartile], "thick": size}
            for quartile, size in zip(quartiles, (1.0, 2.5, 1.0), strict=True)
        ]
    fill = alt.Color(field="colour", type="nominal", scale=None)
    area = alt.Chart(inline(bodies)).mark_area(
        orient="vertical", opacity=0.6, clip=True, stroke=INK, strokeWidth=0.5
    )
    rule = alt.Chart(inline(lines)).mark_rule(color=INK)
    width = alt.StrokeWidth(field="thick", type="quantitative", scale=None)
    drawn = [rule.encode(x=x, y=y, y2="y2", strokeWidth=width)]
    return [area.encode(x=x, y=y, y2="y2", color=fill, detail="lane:N"), *drawn] if bodies else drawn


def _nulls(lanes: Sequence[Lane], x: alt.X, y: alt.Y) -> alt.Chart:
    middles: Records = [
        {"x": float(np.median(finite(lane.null))), "y": place + 0.5}
        for place, lane in enumerate(lanes)
        if lane.null is not None and len(finite(lane.null))
    ]
    mark = alt.Chart(inline(middles)).mark_point(
        shape="diamond", filled=True, size=70, opacity=1, color=INK, stroke="white", strokeWidth=1
    )
    return mark.encode(x=x, y=y)


def _counts(lanes: Sequence[Lane], y: alt.Y) -> alt.Chart:
    counts: Records = [
        {"y": place + 0.5, "said": f"n = {len(finite(lane.values)):,}"} for place, lane in enumerate(lanes)
    ]
    mark = alt.Chart(inline(counts)).mark_text(align="left", fontSize=10, color=FAINT)
    return mark.encode(x=alt.value(WIDTH + 6), y=y, text="said:N")
