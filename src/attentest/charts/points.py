"""Findings as points with their interval and their null: scores of several models (WP-1, WP-3, PR)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from attentest.charts.style import FAINT, INK, PALETTE, Records, framed, inline, nothing, require

NUMBERS = ("estimate", "low", "high", "null")
LANE, GAP = 15, 18  # points of height for a measure, and between models
CONTROLS = {"untrained": "never trained", "shuffled labels": "trained on shuffled labels"}
READS = "dots: estimates, lines: 95 % intervals, upright bars: the null"


def points(
    findings: pd.DataFrame,
    measures: Mapping[str, str],
    groups: Mapping[str, str],
    axis: str,
    title: str,
    subtitle: str,
    within: Sequence[float] = (),
) -> alt.LayerChart:
    """A lane for each of the groups there are, in it a colour for each measure; both go by their words.

    The axis reaches as far as the numbers do, and over the numbers `within`.
    """
    require(findings, "measure", "group", *NUMBERS)
    found = [
        row
        for row in findings.to_dict("records")
        if row["measure"] in measures and row["group"] in groups and math.isfinite(row["estimate"])
    ]
    if not found:
        return nothing("No text has an answer that can be scored.", title, subtitle)
    records: Records = [
        {
            "group": groups[row["group"]],
            "measure": measures[row["measure"]],
            **{name: row[name] if math.isfinite(row[name]) else None for name in NUMBERS},
        }
        for row in found
    ]
    lanes = [said for said in groups.values() if any(record["group"] == said for record in records)]
    height = len(lanes) * (LANE * len(measures) + GAP)
    layers = _layers(records, lanes, list(measures.values()), axis, within)
    return framed(layers, title, subtitle, _counted(found), READS, height=height)


def _layers(
    records: Records, lanes: Sequence[str], measures: Sequence[str], axis: str, within: Sequence[float]
) -> list[alt.Chart]:
    ends = [
        *within,
        *(value for record in records for name in NUMBERS if (value := record[name]) is not None),
    ]
    x = alt.Scale(domain=[min(ends), max(ends)], nice=True, zero=False)
    colour = alt.Color(
        field="measure",
        type="nominal",
        scale=alt.Scale(domain=list(measures), range=list(PALETTE[: len(measures)])),
        legend=alt.Legend(title=None, symbolOpacity=1, columns=3 if len(measures) < 4 else 2),
    )
    spread = GAP / (GAP + LANE * len(measures))
    base = alt.Chart(inline(records)).encode(
        y=alt.Y(
            field="group",
            type="ordinal",
            sort=list(lanes),
            title=None,
            axis=alt.Axis(grid=False, ticks=False, domain=False, labelLimit=260, labelPadding=10),
            scale=alt.Scale(paddingInner=spread, paddingOuter=spread / 2),
        ),
        yOffset=alt.YOffset(field="measure", type="nominal", sort=list(measures)),
    )
    low, null, estimate = (
        alt.X(field=name, type="quantitative", scale=x, title=axis, axis=alt.Axis(format="~g", tickCount=6))
        for name in ("low", "null", "estimate")
    )
    zero = alt.Chart(inline([{"low": 0.0}])).mark_rule(color=FAINT, strokeDash=[2, 3]).encode(x=low)
    return [
        *([zero] if 0.0 in within else []),
        base.mark_rule(strokeWidth=2, opacity=0.7).encode(x=low, x2="high", color=colour),
        base.mark_tick(color=INK, thickness=2, size=LANE - 2).encode(x=null),
        base.mark_point(filled=True, size=55, opacity=1, stroke=INK, strokeWidth=0.5).encode(
            x=estimate, color=colour
        ),
    ]


def _counted(found: Sequence[Mapping[Any, Any]]) -> str:
    """How many texts the points are about, and from how many seeds: a range where they differ."""
    n, seeds = ({int(row[name]) for row in found} for name in ("n", "seeds"))
    said = f"n = {min(n):,}" + (f" to {max(n):,}" if len(n) > 1 else "")
    return said + (f" over {max(seeds)} seeds" if max(seeds) > 1 else "")
