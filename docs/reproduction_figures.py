"""Figures of a page: one measure with intervals, nulls and controls, a row for each model and corpus."""

import math
from typing import Any

import altair as alt
from reproduction_blocks import Block
from reproduction_findings import FILTERS, Row, columns_of, finding, groups_of, rows_of, selected

from attentest.charts.style import INK, inline, to_svg

GREY, BLACK = "#8a8a8a", "#000000"
NULL = "null"
TICK = "M0,-1.6L0,1.6"  # a short vertical line
HOLLOW = ("circle", "square", "triangle-up", "diamond")
LANE, WIDTH, LETTERS = 22, 460, 12
KEYS = ("file", "measure", "groups", "axis", "line", "alt", "caption", *FILTERS)
FOLDER = "figures"


def figure(block: Block) -> tuple[str, str]:
    """The lines of the page, and the SVG document that they show."""
    block.allow(*KEYS)
    said = {key: block.one(key) for key in ("axis", "alt", "caption")}
    frame = selected(block)
    asked = Block(block.name, {**block.keys, "columns": block.many("measure")})
    frame = next(columns_of(asked, frame, "measures"))[1]
    groups = groups_of(block, frame)
    rows = rows_of(block, frame)
    corpora = {row.corpus for row in rows}
    records: list[dict[str, Any]] = []
    for row in rows:
        label = row.model if len(corpora) == 1 else f"{row.corpus}: {row.model}"
        records += _points(block, row, label, [(group.value, group.shown) for group in groups])
    kinds = [group.shown for group in groups]
    chart = _forest(records, kinds, said["axis"], block.many("line", ()))
    image = f"![{said['alt']}]({FOLDER}/{block.name}.svg)\n\n*{said['caption']}*"
    return image, to_svg(chart)


def _points(block: Block, row: Row, label: str, groups: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """The points of one lane: the first group with its interval and null, the others as they are."""
    records = []
    for place, (group, shown) in enumerate(groups):
        found = finding(block, row.findings, group)
        if found is None or math.isnan(found["estimate"]):
            continue
        known = place == 0 and math.isfinite(found["low"])
        interval = {"low": found["low"], "high": found["high"]} if known else {"low": None, "high": None}
        records.append({"lane": label, "kind": shown, "at": found["estimate"], **interval})
        if place == 0 and math.isfinite(found["null"]):
            records.append({"lane": label, "kind": NULL, "at": found["null"], "low": None, "high": None})
    return records


def _forest(records: list[dict[str, Any]], kinds: list[str], axis: str, lines: list[Any]) -> alt.LayerChart:
    lanes = list(dict.fromkeys(record["lane"] for record in records))
    domain = [*kinds, *[NULL] * any(record["kind"] == NULL for record in records)]
    look = {
        "shape": ["circle", *HOLLOW[: len(kinds) - 1], TICK][: len(domain)],
        "fill": [BLACK, *["#ffffff"] * (len(kinds) - 1), GREY],
        "stroke": [BLACK, *[BLACK] * (len(kinds) - 1), GREY],
    }
    encoded = {
        "shape": alt.Shape(
            field="kind", type="nominal", scale=_scale(domain, look["shape"]), legend=_legend()
        ),
        "fill": alt.Fill(field="kind", type="nominal", scale=_scale(domain, look["fill"]), legend=_legend()),
        "stroke": alt.Stroke(
            field="kind", type="nominal", scale=_scale(domain, look["stroke"]), legend=_legend()
        ),
    }
    labels = alt.Axis(grid=True, ticks=False, domain=False, labelLimit=420, labelPadding=8)
    y = alt.Y(field="lane", type="ordinal", sort=lanes, title=None, axis=labels)
    x = alt.X(field="at", type="quantitative", title=axis, scale=alt.Scale(zero=False, nice=True))
    spans = [record for record in records if record["low"] is not None]
    layers = [
        alt.Chart(inline([{"at": float(item.value)}])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(x=x)
        for item in lines
    ]
    if spans:
        low = alt.X(field="low", type="quantitative", title=axis)
        layers.append(
            alt.Chart(inline(spans)).mark_rule(color=BLACK, strokeWidth=1.5).encode(y=y, x=low, x2="high")
        )
    for kind in [*domain[1:], domain[0]]:  # the trained model is drawn last, above its controls
        own = [record for record in records if record["kind"] == kind]
        marks = alt.Chart(inline(own)).mark_point(size=60, opacity=1, strokeWidth=1.5)
        layers.append(marks.encode(y=y, x=x, **encoded))
    return alt.LayerChart(layer=layers, width=WIDTH, height=LANE * len(lanes), config=_style())


def _scale(domain: list[str], values: list[str]) -> alt.Scale:
    return alt.Scale(domain=domain, range=values[: len(domain)])


def _legend() -> alt.Legend:
    return alt.Legend(title=None, orient="top")


def _style() -> alt.Config:
    return alt.Config(
        background="white",
        font="Liberation Sans, Helvetica, Arial, sans-serif",
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            gridColor="#eeeeee",
            labelColor=INK,
            titleColor=INK,
            titleFontWeight="normal",
            labelFontSize=LETTERS,
            titleFontSize=LETTERS + 1,
        ),
        legend=alt.LegendConfig(labelFontSize=LETTERS, labelColor=INK, labelLimit=300),
    )
