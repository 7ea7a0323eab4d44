"""The figures of agreement with importance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.histograms import histogram, shares_in_bins
from attentest.charts.style import (
    INK,
    RULE,
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
from attentest.evidence.importances.names import IN_WORDS
from attentest.experiments.importance.conclude import EDGES as LENGTH_EDGES
from attentest.experiments.importance.conclude import null_of_texts
from attentest.statistics.density import density, finite

TAU_EDGES = np.linspace(-1.0, 1.0, 31)


def tau_histogram(
    rows: pd.DataFrame,
    importance: str = "gradient",
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
        return nothing(f"No text has a Kendall τ with {IN_WORDS[importance]}.", title, subtitle)
    null, named = null_of_texts(texts, importance)
    groups = classed(texts, classes, pooled)
    layers = histogram(
        shares_in_bins(texts[column], groups, TAU_EDGES),
        shares_in_bins(null, groups, TAU_EDGES),
        groups,
        alt.X(
            field="from",
            type="quantitative",
            title=f"Kendall τ of attention and {IN_WORDS[importance]}",
            scale=alt.Scale(domain=[-1, 1], nice=False),
            axis=alt.Axis(tickCount=9, format="~g"),
        ),
        f"{named} (a text's mean τ)",
    )
    return framed(layers, title, subtitle, counted(texts[column], texts))


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


LENGTHS = (
    f"below {LENGTH_EDGES[1]:g}",
    *(f"{low:g}–{high - 1:g}" for low, high in pairwise(LENGTH_EDGES[1:-1])),
    f"from {LENGTH_EDGES[-2]:g}",
)


def tau_by_length(
    rows: pd.DataFrame, importance: str = "gradient", *, title: str = "", subtitle: str = ""
) -> alt.LayerChart:
    """Mean tau, and mean tau under the null, by the length of texts (JW-1, JW-2)."""
    texts, column = trained(rows), f"tau_{importance}"
    require(texts, column, "length")
    if lacks(texts, column):
        return nothing(f"No text has a Kendall τ with {IN_WORDS[importance]}.", title, subtitle)
    null, named = null_of_texts(texts, importance)
    kinds = {f"attention and {IN_WORDS[importance]}": column, named: "null"}
    means = list(_by_length(texts.assign(null=null), kinds))
    x = alt.X(
        field="length",
        type="ordinal",
        sort=list(dict.fromkeys(record["length"] for record in means)),
        title="tokens in the text",
        axis=alt.Axis(labelAngle=0, labelExpr="split(datum.label, '|')"),
    )
    scale = alt.Scale(domain=list(kinds), range=["#d15a00", INK])
    base = alt.Chart(inline(means)).encode(
        x=x,
        xOffset=alt.XOffset(field="kind", type="nominal", sort=list(kinds)),
        color=alt.Color(
            field="kind", type="nominal", scale=scale, legend=alt.Legend(title=None, symbolOpacity=1)
        ),
    )
    spread = base.mark_rule(strokeWidth=1.5, opacity=0.5).encode(
        y=alt.Y(field="low", type="quantitative", title="Kendall τ"), y2="high"
    )
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        y=alt.Y(field="mean", type="quantitative"), tooltip=["kind:N", alt.Tooltip("mean:Q", format=".3f")]
    )
    note = f"{counted(texts[column], texts)}; dots: means, bars: the middle half of the texts"
    return framed([spread, points], title, subtitle, note)


def _by_length(texts: pd.DataFrame, kinds: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Means and quartiles of each kind, for each span of lengths that has some."""
    spans = pd.cut(texts["length"], LENGTH_EDGES, right=False, labels=list(LENGTHS))
    for name, of_span in texts.groupby(spans, observed=True):
        found = {kind: finite(of_span[column]) for kind, column in kinds.items()}
        counts = f"n = {max(map(len, found.values())):,}"
        for kind, numbers in found.items():
            if len(numbers):
                low, high = np.quantile(numbers, (0.25, 0.75)).tolist()
                mean = float(numbers.mean())
                yield {"kind": kind, "length": f"{name}|{counts}", "mean": mean, "low": low, "high": high}


FIGURES: tuple[Figure, ...] = (
    Figure(
        "tau-gradient",
        "Attention and gradients",
        "Rank agreement, text by text. Attention is a factor of the gradient, so even values at random"
        " places (dashed) agree with it: what counts is the distance between the two.",
        lambda rows, view, title: tau_histogram(
            rows, "gradient", title=title, subtitle=view.subtitle, **view.by_class
        ),
        redraws="JW-1: histograms of Kendall's tau of attention and gradients, by class",
    ),
    Figure(
        "tau-loo",
        "Attention and leaving words out",
        "The same against the change of output when a word is left out.",
        lambda rows, view, title: tau_histogram(
            rows, "loo", title=title, subtitle=view.subtitle, **view.by_class
        ),
        redraws="JW-2: the same for leave-one-out",
    ),
    Figure(
        "tau-length-gradient",
        "Gradients, by length of text",
        "Means by length: a correlation over few words is noisy, over many small.",
        lambda rows, view, title: tau_by_length(rows, "gradient", title=title, subtitle=view.subtitle),
    ),
    Figure(
        "tau-length-loo",
        "Leaving words out, by length of text",
        "The same for leave-one-out importance.",
        lambda rows, view, title: tau_by_length(rows, "loo", title=title, subtitle=view.subtitle),
    ),
    Figure(
        "tau-differences",
        "Do the two importances agree better with each other?",
        "Right of zero, gradients and leaving words out agree more with each other than one of them does"
        " with attention.",
        lambda rows, view, title: tau_differences(rows, title=title, subtitle=view.subtitle),
        redraws="JW-3: densities of differences, drawn by the published code only",
    ),
)
