"""Texts as points of two numbers, some of which a brush takes; the page fills in which two."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import altair as alt

from attentest.charts.style import PALETTE, framed, inline

X, Y = "x", "y"


@cache
def texts_scatter() -> Mapping[str, Any]:
    """The figure as a specification without data: the page gives the points, their titles and its colours.

    A point has x, y, its text's number and whether the filters let it through. Every page of texts has this
    same figure, so it is made once, and nobody may change it.
    """
    brush = alt.selection_interval(name="brush", encodings=["x", "y"])
    scale = alt.Scale(zero=False, nice=True)
    base = alt.Chart(inline([{X: 0.0, Y: 0.0, "kept": True, "n": 0, "id": ""}]))
    drawn = base.mark_circle(size=26, opacity=0.55, color=PALETTE[1]).encode(
        x=alt.X(field=X, type="quantitative", scale=scale, axis=alt.Axis(tickCount=6)),
        y=alt.Y(field=Y, type="quantitative", scale=scale, axis=alt.Axis(tickCount=6)),
        opacity=alt.condition("datum.kept", alt.value(0.65), alt.value(0.12)),
        tooltip=[
            alt.Tooltip(field="id", type="nominal", title="text"),
            alt.Tooltip(field=X, type="quantitative"),
            alt.Tooltip(field=Y, type="quantitative"),
        ],
    )
    chart = framed([drawn.add_params(brush)], "").to_dict()
    # The page's own: its width, its title, the data that it is given.
    del chart["datasets"], chart["title"]
    return chart | {"width": "container", "height": 260, "autosize": {"type": "fit", "contains": "padding"}}
