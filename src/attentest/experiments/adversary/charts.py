"""The figures of adversarial attention."""

from __future__ import annotations

import math
from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.histograms import VARIANTS, histogram, shares_in_bins
from attentest.charts.style import (
    FAINT,
    MOST_POINTS,
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
from attentest.charts.violins import by_largest_weight
from attentest.experiments.adversary.conclude import SEARCHES
from attentest.statistics.density import finite

JSD_EDGES = np.linspace(0.0, 0.7, 41)


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
        shares_in_bins(texts[column], groups, JSD_EDGES),
        shares_in_bins(texts[null], groups, JSD_EDGES) if null in texts else [],
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


EPSILONS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1)
NULL_EPSILONS = (0.01, 0.05)  # where weights were shuffled as well


SUBJECTS = {
    "trained": "#d15a00",
    "weights shuffled over the tokens": "#222222",
    "untrained": "#0072b2",
    "shuffled labels": "#cc79a7",
}


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


def adversary_violins(
    rows: pd.DataFrame,
    variant: str = "exact",
    epsilon: float = 0.01,
    *,
    title: str = "",
    subtitle: str = "",
    classes: Sequence[str] | None = None,
    pooled: bool = False,
) -> alt.LayerChart:
    """How far attention can move while the output stays within epsilon, by largest weight (JW-5)."""
    said = VARIANTS.get(variant, variant)
    x = alt.X(
        field="x",
        type="quantitative",
        title=f"ε-max JSD at ε = {epsilon:g} ({said})",
        scale=alt.Scale(domain=[-0.05, 0.7], nice=False),
        axis=alt.Axis(values=[tenth / 10 for tenth in range(8)]),
    )
    why = f"No text has an ε-max JSD here: {said}."
    column = f"{variant}@{epsilon:g}"
    return by_largest_weight(trained(rows), column, x, why, title, subtitle, classes, pooled)


FIGURES: tuple[Figure, ...] = (
    Figure(
        "jsd",
        "How far attention can move at the same output",
        "0 is the model's own attention, ln 2 = 0.69 one that shares no word with it. Dashed, where the"
        " optimum is known: the same with the weights on other words.",
        lambda rows, view, title: jsd_histogram(
            rows, view.opponent, view.tolerance, title=title, subtitle=view.subtitle, **view.by_class
        ),
        redraws="JW-5: histograms of the ε-max JSD, by class",
    ),
    Figure(
        "epsilon",
        "As the output may move further",
        "The mean of the optimum over the tolerance, beside models that learnt nothing.",
        lambda rows, view, title: epsilon_curve(rows, title=title, subtitle=view.subtitle),
    ),
    Figure(
        "jsd-violins",
        "By the largest weight",
        "Peaked attention leaves most room to move; where it does not, the words it is on matter.",
        lambda rows, view, title: adversary_violins(
            rows, view.opponent, view.tolerance, title=title, subtitle=view.subtitle, **view.by_class
        ),
        redraws="JW-5: violins of the ε-max JSD by largest weight",
    ),
    Figure(
        "search",
        "What the published search finds",
        "Each dot a text; below the diagonal the search stopped short of the optimum.",
        lambda rows, view, title: search_against_exact(
            rows, view.tolerance, title=title, subtitle=view.subtitle, **view.by_class
        ),
    ),
)
