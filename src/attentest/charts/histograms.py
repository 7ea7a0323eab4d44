"""Distributions over texts: histograms beside their null, and the curves of differences (JW-1, 2, 3, 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from attentest.charts.style import (
    INK,
    POOLED,
    RULE,
    Classes,
    Records,
    classed,
    counted,
    framed,
    inline,
    lacks,
    nothing,
    require,
    trained,
)
from attentest.experiments.importance.conclude import null_of_texts
from attentest.statistics.density import density, finite, shares

Importance = Literal["gradient", "loo"]
IMPORTANCES = {"gradient": "gradient importance", "loo": "leave-one-out importance"}
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
TAU_EDGES = np.linspace(-1.0, 1.0, 31)
JSD_EDGES = np.linspace(0.0, 0.7, 41)


def tau_histogram(
    rows: pd.DataFrame,
    importance: Importance = "gradient",
    *,
    title: str = "",
    subtitle: str = "",
    classes: Sequence[str] | None = None,
    pooled: bool = False,
) -> alt.LayerChart:
    """How attention's ranking of the tokens agrees with an importance, text by text (JW-1, JW-2)."""
    texts, column = trained(rows), f"tau_{importance}"
    require(texts, column)
    if lacks(texts, column):
        return nothing(f"No text has a Kendall τ with {IMPORTANCES[importance]}.", title, subtitle)
    null, named = null_of_texts(texts, importance)
    groups = classed(texts, classes, pooled)
    layers = histogram(
        _binned(texts[column], groups, TAU_EDGES),
        _binned(null, groups, TAU_EDGES),
        groups,
        alt.X(
            field="from",
            type="quantitative",
            title=f"Kendall τ of attention and {IMPORTANCES[importance]}",
            scale=alt.Scale(domain=[-1, 1], nice=False),
            axis=alt.Axis(tickCount=9, format="~g"),
        ),
        f"{named} (a text's mean τ)",
    )
    return framed(layers, title, subtitle, counted(texts[column], texts))


def jsd_histogram(
    rows: pd.DataFrame,
    variant: str = "exact",
    epsilon: float = 0.01,
    *,
    title: str = "",
    subtitle: str = "",
    classes: Sequence[str] | None = None,
    pooled: bool = False,
) -> alt.LayerChart:
    """How far attention can move while the output stays within epsilon (JW-5), beside shuffled weights."""
    texts, column, null = trained(rows), f"{variant}@{epsilon:g}", f"shuffled@{epsilon:g}"
    require(texts, column)
    if lacks(texts, column):
        return nothing(f"No text has an ε-max JSD here: {VARIANTS.get(variant, variant)}.", title, subtitle)
    groups = classed(texts, classes, pooled)
    layers = histogram(
        _binned(texts[column], groups, JSD_EDGES),
        _binned(texts[null], groups, JSD_EDGES) if null in texts else [],
        groups,
        alt.X(
            field="from",
            type="quantitative",
            title=f"ε-max JSD at ε = {epsilon:g} ({VARIANTS.get(variant, variant)})",
            scale=alt.Scale(domain=[0, 0.7], nice=False),
            axis=alt.Axis(tickCount=8),
        ),
        "null: exact optimum, weights shuffled",
    )
    return framed(layers, title, subtitle, counted(texts[column], texts))


def _binned(values: pd.Series, groups: Classes, edges: NDArray[np.float64]) -> Records:
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


DIFFERENCES: dict[str, list[float]] = {
    "τ(gradient, leave-one-out)": [1, 0],
    "… less τ(attention, leave-one-out)": [6, 3],
    "… less τ(attention, gradient)": [1.5, 2.5],
}


def tau_differences(rows: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """Whether the two importances agree better with each other than either with attention (JW-3)."""
    texts = trained(rows)
    require(texts, "tau_gradient_loo", "tau_loo", "tau_gradient")
    if texts.empty:
        return nothing("No text was observed.", title, subtitle)
    both = pd.to_numeric(texts["tau_gradient_loo"])
    values = (both, both - pd.to_numeric(texts["tau_loo"]), both - pd.to_numeric(texts["tau_gradient"]))
    curves = {name: density(of) for name, of in zip(DIFFERENCES, values, strict=True)}
    points: Records = [
        {"curve": name, "at": x, "density": y}
        for name, curve in curves.items()
        if curve
        for x, y in zip(curve.at, curve.height, strict=True)
    ]
    if not points:
        return nothing("Fewer than two texts have rank correlations that differ.", title, subtitle)
    zero = (
        alt.Chart(inline([{"at": 0.0}]))
        .mark_rule(color=RULE)
        .encode(x=alt.X(field="at", type="quantitative"))
    )
    lines = (
        alt.Chart(inline(points))
        .mark_line(color="black", strokeWidth=1.6)
        .encode(
            x=alt.X(
                field="at",
                type="quantitative",
                title="Kendall τ, or difference of two",
                axis=alt.Axis(grid=False),
                scale=alt.Scale(nice=False),
            ),
            y=alt.Y(field="density", type="quantitative", title="density of texts"),
            strokeDash=alt.StrokeDash(
                field="curve",
                type="nominal",
                scale=alt.Scale(domain=list(DIFFERENCES), range=[*DIFFERENCES.values()]),
                legend=alt.Legend(
                    title=None, symbolStrokeColor="black", symbolSize=400, columns=1, rowPadding=0
                ),
            ),
        )
    )
    return framed([zero, lines], title, subtitle, counted(values[0], texts))
