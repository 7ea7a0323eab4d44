"""The main numbers of several models on one axis, each with its interval and its null."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import altair as alt

from attentest.charts.style import FAINT, INK, PALETTE, RULE, Records, framed, inline, nothing
from attentest.notebook import harmless

NUMBERS = ("estimate", "low", "high", "null")
LANE, GAP = 16, 20  # points of height for a model, and between measures


@final
@dataclass(frozen=True, kw_only=True)
class MainNumber:
    """One estimate of one model; NaN where there is none."""

    measure: str
    model: str
    estimate: float
    low: float
    high: float
    null: float


def main_numbers(numbers: Sequence[MainNumber], *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """Dots with 95 % intervals, one lane a model below each measure, and a bar where the null is."""
    there = [number for number in numbers if math.isfinite(number.estimate)]
    if not there:
        return nothing("No main number is defined.", title, subtitle)
    models = list(dict.fromkeys(harmless(number.model) for number in there))
    measures = list(dict.fromkeys(harmless(number.measure) for number in there))
    records: Records = [
        {
            "measure": harmless(number.measure),
            "model": harmless(number.model),
            **{name: _or_none(getattr(number, name)) for name in NUMBERS},
        }
        for number in there
    ]
    ends = [0.0, 1.0, *(v for record in records for n in NUMBERS if (v := record[n]) is not None)]
    x = alt.Scale(domain=[min(ends), max(ends)], nice=True)
    lanes = alt.Y(
        field="measure",
        type="ordinal",
        sort=measures,
        title=None,
        axis=alt.Axis(grid=False, ticks=False, domain=False, labelLimit=260, labelPadding=10),
        scale=alt.Scale(paddingInner=GAP / (GAP + LANE * len(models))),
    )
    base = alt.Chart(inline(records)).encode(
        y=lanes, yOffset=alt.YOffset(field="model", type="nominal", sort=models)
    )
    colours = [PALETTE[n % len(PALETTE)] for n in range(len(models))]
    colour = alt.Color(
        field="model",
        type="nominal",
        scale=alt.Scale(domain=models, range=colours),
        legend=alt.Legend(title=None, symbolOpacity=1, columns=3),
    )
    value = alt.X(field="estimate", type="quantitative", title=None, scale=x, axis=alt.Axis(format="~g"))
    zero = alt.Chart(inline([{"at": 0.0}])).mark_rule(color=RULE)
    return framed(
        [
            zero.encode(x=alt.X(field="at", type="quantitative", scale=x)),
            base.mark_rule(strokeWidth=2, opacity=0.7).encode(
                x=alt.X(field="low", type="quantitative", scale=x), x2="high", color=colour
            ),
            base.mark_tick(color=INK, thickness=2, size=LANE - 3).encode(
                x=alt.X(field="null", type="quantitative", scale=x)
            ),
            base.mark_point(filled=True, size=55, opacity=1, stroke=FAINT, strokeWidth=0.5).encode(
                x=value, color=colour
            ),
        ],
        title,
        subtitle,
        "dots: estimates, lines: 95 % intervals, upright bars: the null",
        height=len(measures) * (LANE * len(models) + GAP),
    )


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
