"""Means and pairs: the tolerance's curve, the search beside the optimum, tau by length (JW-1, 2, 5)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from attentest.charts.histograms import IMPORTANCES, Importance
from attentest.charts.style import (
    FAINT,
    INK,
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
from attentest.experiments.adversary.conclude import SEARCHES
from attentest.experiments.importance.conclude import EDGES as LENGTH_EDGES
from attentest.experiments.importance.conclude import null_of_texts
from attentest.statistics.density import finite

EPSILONS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1)
NULL_EPSILONS = (0.01, 0.05)  # where weights were shuffled as well
SUBJECTS = {
    "trained": "#d15a00",
    "weights shuffled over the tokens": "#222222",
    "untrained": "#0072b2",
    "shuffled labels": "#cc79a7",
}
MOST_POINTS = 2000  # of a scatter; more would neither be seen nor load
LENGTHS = (
    f"below {LENGTH_EDGES[1]:g}",
    *(f"{low:g}–{high - 1:g}" for low, high in pairwise(LENGTH_EDGES[1:-1])),
    f"from {LENGTH_EDGES[-2]:g}",
)


def epsilon_curve(rows: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """The mean exact ε-max JSD as the output may move further, with controls and null (JW-5)."""
    require(rows, "subject", *(f"exact@{epsilon:g}" for epsilon in EPSILONS))
    means: Records = []
    for subject, texts in rows.groupby("subject") if len(rows) else ():
        means += _means(str(subject), texts, "exact", EPSILONS)
    means += _means("weights shuffled over the tokens", trained(rows), "shuffled", NULL_EPSILONS)
    if not means:
        return nothing("No text has an exact optimum: the decision is not affine.", title, subtitle)
    x = alt.X(
        field="epsilon",
        type="quantitative",
        title="ε: how far the output may move (total variation)",
        scale=alt.Scale(type="log", domain=[0.0008, 0.125], nice=False),
        axis=alt.Axis(values=list(EPSILONS), format="~g", grid=False),
    )
    y = alt.Y(
        field="mean",
        type="quantitative",
        title="mean ε-max JSD (exact optimum)",
        scale=alt.Scale(domain=[0, 0.72], nice=False),
    )
    names = [name for name in SUBJECTS if name in {record["subject"] for record in means}]
    scale = alt.Scale(domain=names, range=[SUBJECTS[name] for name in names])
    legend = alt.Legend(title=None, symbolSize=80)
    curves = (
        alt.Chart(inline(means))
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=50, filled=True))
        .encode(
            x=x,
            y=y,
            color=alt.Color(field="subject", type="nominal", scale=scale, legend=legend),
            shape=alt.Shape(field="subject", type="nominal", scale=alt.Scale(domain=names), legend=legend),
            tooltip=["subject:N", "epsilon:Q", alt.Tooltip("mean:Q", format=".3f"), "n:Q"],
        )
    )
    most: Records = [{"mean": math.log(2), "epsilon": 0.0008, "said": "ln 2, the largest JSD there is"}]
    ceiling = alt.Chart(inline(most)).mark_rule(color=FAINT, strokeDash=[2, 3]).encode(y=y)
    words = alt.Chart(inline(most)).mark_text(align="left", dx=4, dy=-7, fontSize=10, color=FAINT)
    texts = trained(rows)
    note = counted(texts[f"exact@{EPSILONS[2]:g}"], texts)
    return framed([ceiling, words.encode(x=x, y=y, text="said:N"), curves], title, subtitle, note)


def _means(subject: str, texts: pd.DataFrame, variant: str, epsilons: Sequence[float]) -> Records:
    defined = {
        epsilon: finite(texts[f"{variant}@{epsilon:g}"])
        for epsilon in epsilons
        if f"{variant}@{epsilon:g}" in texts
    }
    return [
        {"subject": subject, "epsilon": epsilon, "mean": float(values.mean()), "n": len(values)}
        for epsilon, values in defined.items()
        if len(values)
    ]


def search_against_exact(
    rows: pd.DataFrame,
    epsilon: float = 0.01,
    *,
    title: str = "",
    subtitle: str = "",
    classes: Sequence[str] | None = None,
    pooled: bool = False,
) -> alt.LayerChart:
    """The best the published search found, text by text, against the optimum it searched for (JW-5)."""
    texts, columns = trained(rows), [f"{search}@{epsilon:g}" for search in SEARCHES]
    require(texts, f"exact@{epsilon:g}", *columns)
    if texts.empty:
        return nothing("No text was observed.", title, subtitle)
    numbers = texts[[f"exact@{epsilon:g}", *columns]].apply(pd.to_numeric, errors="coerce")
    pairs = pd.DataFrame({"exact": numbers.iloc[:, 0], "search": numbers[columns].max(axis=1)}).dropna()
    if pairs.empty:
        return nothing("No text has both a search and an exact optimum.", title, subtitle)
    groups = classed(texts, classes, pooled)
    pairs["group"] = groups.of
    drawn = pairs.sample(min(len(pairs), MOST_POINTS), random_state=0)  # in no order, so none lies on top
    shown: Records = [{str(name): value for name, value in row.items()} for row in drawn.to_dict("records")]
    ends = alt.Scale(domain=[0, 0.7], nice=False)
    x = alt.X(field="exact", type="quantitative", title=f"exact optimum at ε = {epsilon:g}", scale=ends)
    y = alt.Y(field="search", type="quantitative", title="best the search found", scale=ends)
    equal: Records = [{"exact": end, "search": end} for end in (0.0, 0.7)]
    diagonal = alt.Chart(inline(equal)).mark_line(color=FAINT, strokeDash=[4, 3], strokeWidth=1)
    points = alt.Chart(inline(shown)).mark_circle(size=16, opacity=0.45)
    return framed(
        [diagonal.encode(x=x, y=y), points.encode(x=x, y=y, color=groups.colour)],
        title,
        subtitle,
        _said(pairs, texts, len(shown)),
        width=340,
        height=340,
    )


def _said(pairs: pd.DataFrame, texts: pd.DataFrame, shown: int) -> str:
    """How many pairs there are, how many are drawn, what the search misses, and what is not proved."""
    said = counted(pairs["exact"], texts) + (f", {shown:,} of them drawn" if shown < len(pairs) else "")
    said += f"; on average the search misses {(pairs['exact'] - pairs['search']).mean():.3f}"
    unproved = int((~texts.loc[pairs.index, "proved"].astype(bool)).sum()) if "proved" in texts else 0
    return said + (f"; {unproved:,} optima are the best known, not proved" if unproved else "")


def tau_by_length(
    rows: pd.DataFrame, importance: Importance = "gradient", *, title: str = "", subtitle: str = ""
) -> alt.LayerChart:
    """Mean tau, and mean tau under the null, by the length of texts (JW-1, JW-2)."""
    texts, column = trained(rows), f"tau_{importance}"
    require(texts, column, "length")
    if lacks(texts, column):
        return nothing(f"No text has a Kendall τ with {IMPORTANCES[importance]}.", title, subtitle)
    null, named = null_of_texts(texts, importance)
    kinds = {f"attention and {IMPORTANCES[importance]}": column, named: "null"}
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
