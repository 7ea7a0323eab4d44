"""The figures of trained adversaries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.style import FAINT, INK, WIDTH, Records, framed, inline, nothing, require
from attentest.experiments.seed_variance.charts import apart_scatter, apart_violins
from attentest.experiments.shared.numbered import numbered
from attentest.experiments.trained_adversary.conclude import EXACT, LAMBDA, SEARCH, SEED, UNIFORM
from attentest.statistics.envelope import lower_envelope

SWEPT, SEEDS = "trained adversary, by λ", "another seed"
HEIGHT = 380


PLUS, CROSS = "M-1,0L1,0M0,-1L0,1", "M-.75,-.75L.75,.75M.75,-.75L-.75,.75"


# The paper's signs; the controls, and what is exact, are ours.
SIGNS = {
    SWEPT: ("circle", "#d15a00"),
    SEEDS: ("triangle-up", "#0072b2"),
    "uniform attention": ("square", "#43406b"),
    "search, text by text": (PLUS, INK),
    "exact adversary, text by text": (CROSS, INK),
    "never trained": ("diamond", "#cc79a7"),
    "trained on shuffled labels": ("triangle-down", "#cc79a7"),
}


POINTS = {
    UNIFORM: "uniform attention",
    SEARCH: "search, text by text",
    EXACT: "exact adversary, text by text",
    "untrained": "never trained",
    "shuffled labels": "trained on shuffled labels",
}


ENVELOPE = "lower convex envelope"


APART = (46, 13)  # points across and up that a label takes


def adversary_plane(
    rows: pd.DataFrame, findings: pd.DataFrame, *, title: str = "", subtitle: str = ""
) -> alt.LayerChart:
    """The curve of trained adversaries over lambda and its envelope, among the points to compare (WP-4).

    Means and intervals are the findings'; every pair of seeds is a triangle of its own, from the rows.
    """
    require(findings, "measure", "group", "estimate", "low", "high")
    require(rows, "seed", "subject", "jsd", "tvd")
    swept, points = _swept(findings), _points(findings)
    seeds = _pairs_of_seeds(rows)
    if not swept:
        return nothing("No text has a trained adversary to compare with.", title, subtitle)
    every = [*swept, *points, *seeds]
    top = max(0.1, 1.05 * max(record.get("y_high", record["y"]) for record in every))
    x = alt.X(
        field="x",
        type="quantitative",
        title="mean JSD of attention from the base's",
        scale=alt.Scale(domain=[0, 0.7], nice=False),
    )
    y = alt.Y(
        field="y",
        type="quantitative",
        title="mean change of output (total variation)",
        scale=alt.Scale(domain=[0, top], nice=False),
    )
    layers = [*_intervals([*swept, *points], x, y), *_curves(swept, x, y), _signs(every, x, y)]
    layers.append(_labels(swept, x, y, top))
    texts = rows[rows["subject"] == "trained"]
    seeds_said = f" over {texts['seed'].nunique()} seeds" if texts["seed"].nunique() > 1 else ""
    notes = (
        f"n = {len(texts):,}{seeds_said}; thin lines: 95 % intervals; dotted: {ENVELOPE}",
        "low at the right: attending elsewhere costs little; the paper halves the change of output",
    )
    return framed(layers, title, subtitle, *notes, height=HEIGHT)


def _swept(findings: pd.DataFrame) -> Records:
    """The adversaries in the order of their lambda."""
    return [
        {**point, "lambda": number, "label": f"λ {number:g}"}
        for name, number in numbered(findings.get("group", ()), LAMBDA).items()
        if (point := _point(findings, name, SWEPT))
    ]


def _points(findings: pd.DataFrame) -> Records:
    return [point for name, kind in POINTS.items() if (point := _point(findings, name, kind))]


def _point(findings: pd.DataFrame, group: str, kind: str) -> dict[str, Any]:
    """A group's place on both axes with its intervals; empty where it has none."""
    place: dict[str, Any] = {"kind": kind}
    for axis, measure in (("x", "attention-jsd"), ("y", "output-tvd")):
        found = findings[(findings["group"] == group) & (findings["measure"] == measure)].to_dict("records")
        if not found or not math.isfinite(found[0]["estimate"]):
            return {}
        place |= _with_interval(axis, found[0])
    return place


def _with_interval(axis: str, found: Mapping[Any, Any]) -> dict[str, float]:
    """Where no interval is known it is a point, too."""
    ends = {f"{axis}_{end}": found[end] for end in ("low", "high")}
    known = {name: value if math.isfinite(value) else found["estimate"] for name, value in ends.items()}
    return {axis: found["estimate"], **known}


def _pairs_of_seeds(rows: pd.DataFrame) -> Records:
    """The mean place of every other seed beside every base; a text without divergence is on no axis."""
    if rows.empty:
        return []
    others = rows[rows["subject"].str.startswith(SEED)]
    axes = others[["jsd", "tvd"]].astype(np.float64).dropna()
    means = axes.groupby([others.loc[axes.index, "seed"], others.loc[axes.index, "subject"]]).mean()
    return [{"kind": SEEDS, "x": x, "y": y} for x, y in means.to_numpy().tolist()]


def _intervals(points: Records, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    across: Records = [{"x": p["x_low"], "x2": p["x_high"], "y": p["y"]} for p in points]
    up: Records = [{"x": p["x"], "y": p["y_low"], "y2": p["y_high"]} for p in points]
    thin: dict[str, Any] = {"color": FAINT, "strokeWidth": 1, "opacity": 0.6, "clip": True}
    return [
        alt.Chart(inline(across)).mark_rule(**thin).encode(x=x, x2="x2", y=y),
        alt.Chart(inline(up)).mark_rule(**thin).encode(x=x, y=y, y2="y2"),
    ]


def _curves(swept: Records, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    corners = lower_envelope([p["x"] for p in swept], [p["y"] for p in swept])
    below: Records = [{"x": across, "y": up} for across, up in corners]
    way: Records = [{"x": p["x"], "y": p["y"], "order": p["lambda"]} for p in swept]
    order = alt.Order(field="order", type="quantitative")
    colour = SIGNS[SWEPT][1]
    return [
        alt.Chart(inline(below))
        .mark_line(color=INK, strokeDash=[1.5, 2.5], strokeWidth=1.5)
        .encode(x=x, y=y),
        alt.Chart(inline(way)).mark_line(color=colour, strokeWidth=1.5).encode(x=x, y=y, order=order),
    ]


def _signs(points: Records, x: alt.X, y: alt.Y) -> alt.Chart:
    there = {point["kind"] for point in points}
    kinds = {kind: sign for kind, sign in SIGNS.items() if kind in there}
    shapes, colours = (
        alt.Scale(domain=list(kinds), range=list(of)) for of in zip(*kinds.values(), strict=True)
    )
    legend = alt.Legend(title=None, symbolOpacity=1, columns=2, symbolSize=70)
    shown: Records = [{"kind": p["kind"], "x": p["x"], "y": p["y"]} for p in points]
    mark = alt.Chart(inline(shown)).mark_point(size=60, strokeWidth=1.8, opacity=0.9)
    return mark.encode(
        x=x,
        y=y,
        color=alt.Color(field="kind", type="nominal", scale=colours, legend=legend),
        shape=alt.Shape(field="kind", type="nominal", scale=shapes, legend=legend),
    )


def _labels(swept: Records, x: alt.X, y: alt.Y, top: float) -> alt.Chart:
    """A lambda beside its point unless it would lie on one that is written already; the ends come first."""
    written: Records = []
    for point in [swept[0], swept[-1], *swept[1:-1]][: len(swept)]:
        taken = any(
            abs(point["x"] - other["x"]) * WIDTH / 0.7 < APART[0]
            and abs(point["y"] - other["y"]) * HEIGHT / top < APART[1]
            for other in written
        )
        if not taken:
            written.append({"x": point["x"], "y": point["y"], "label": point["label"]})
    mark = alt.Chart(inline(written)).mark_text(align="left", dx=4, dy=-10, fontSize=10, color=FAINT)
    return mark.encode(x=x, y=y, text="label:N")


FIGURES: tuple[Figure, ...] = (
    Figure(
        "plane",
        "What it costs to look elsewhere",
        "Adversaries trained with more and more reward for attending elsewhere. Points below the curve"
        " move attention as far at less cost: adversaries made text by text are no model.",
        lambda rows, view, title: adversary_plane(rows, view.findings, title=title, subtitle=view.subtitle),
        redraws="WP-4: output TVD against attention JSD over lambda",
    ),
    Figure(
        "exact",
        "Exact adversaries, text by text",
        "How far they move attention at the same output, by the base's largest weight.",
        lambda rows, view, title: apart_violins(
            rows, "exact", title=title, subtitle=view.subtitle, **view.by_class
        ),
    ),
    Figure(
        "search",
        "Searched adversaries, text by text",
        "The same of the published search, for the texts it was run on.",
        lambda rows, view, title: apart_violins(
            rows, "search", title=title, subtitle=view.subtitle, **view.by_class
        ),
        redraws="WP-2: the violins with the search's adversaries in place of seeds",
    ),
    Figure(
        "search-output",
        "And the output under them",
        "To be read beside that of other seeds: an adversary may not move the output by more than ε, and"
        " so lies at the bottom.",
        lambda rows, view, title: apart_scatter(
            rows, "search", title=title, subtitle=view.subtitle, **view.by_class
        ),
        redraws="WP-2: the scatter with the search's adversaries",
    ),
)
