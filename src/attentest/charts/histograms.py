"""Distributions over texts: histograms beside their null, and the curves of differences (JW-1, 2, 3, 5)."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from attentest.charts.style import (
    INK,
    POOLED,
    Classes,
    Records,
    inline,
)
from attentest.statistics.density import finite, shares

VARIANTS = {
    "exact": "exact optimum",
    "last": "published search, last iterate",
    "best": "published search, best iterate",
    "unpaired": "search without the pair term, best iterate",
    "permuted": "best permutation of the text's own weights",
    "capped": "best with no weight above the text's largest",
    "uniform": "exact optimum, from uniform attention",
    "shuffled": "exact optimum, weights shuffled over the tokens",
    "bound": "upper bound",
}


def shares_in_bins(values: pd.Series, groups: Classes, edges: NDArray[np.float64]) -> Records:
    """The share of its group in each bin: a rare class is drawn as tall as a common one."""
    return [
        {"group": name, "from": low, "to": high, "share": share}
        for name in groups.names
        if len(finite(values[groups.of == name]))
        for low, high, share in zip(
            edges[:-1], edges[1:], shares(values[groups.of == name], edges), strict=True
        )
    ]


def histogram(bins: Records, null: Records, groups: Classes, x: alt.X, null_said: str) -> list[alt.Chart]:
    """Bars of shares from `from` to `to`, a colour a group, and the null's shares as outlines, if any."""
    whose = "the texts" if groups.names == [POOLED] else "the class's texts"
    y = alt.Y(field="share", type="quantitative", title=f"share of {whose}", stack=None).axis(format="~%")
    tooltip = [
        alt.Tooltip(field="group", type="nominal", title="predicted"),
        alt.Tooltip(field="from", type="quantitative", format=".3f"),
        alt.Tooltip(field="to", type="quantitative", format=".3f"),
        alt.Tooltip(field="share", type="quantitative", format=".1%"),
    ]
    bars = (
        alt.Chart(inline(bins))
        .mark_bar(opacity=0.6, stroke="black", strokeWidth=0.4, binSpacing=0)
        .encode(x=x, x2="to", y=y, y2=alt.Y2Datum(0), color=groups.colour, tooltip=tooltip)
    )
    outline = (
        alt.Chart(inline(_corners(null, null_said)))
        .mark_line(interpolate="step-after", strokeWidth=1.6, strokeJoin="miter")
        .encode(
            x=x,
            y=y,
            color=groups.colour,
            strokeDash=_dashed(null_said),
            order=alt.Order(field="corner", type="quantitative"),
        )
    )
    return [bars, outline] if null else [bars]


def _corners(bins: Records, said: str) -> Records:
    """The bins as an outline that comes down to the axis at both ends."""
    corners: Records = []
    for name in dict.fromkeys(record["group"] for record in bins):
        own = [record for record in bins if record["group"] == name]
        path = [(own[0]["from"], 0.0), *((bar["from"], bar["share"]) for bar in own), (own[-1]["to"], 0.0)]
        corners += [
            {"group": name, "null": said, "from": x, "share": y, "corner": n} for n, (x, y) in enumerate(path)
        ]
    return corners


def _dashed(said: str) -> alt.StrokeDash:
    legend = alt.Legend(title=None, symbolStrokeColor=INK, symbolSize=200)
    scale = alt.Scale(domain=[said], range=[[4, 2]])
    return alt.StrokeDash(field="null", type="nominal", scale=scale, legend=legend)
