"""Attention of other seeds and of adversaries beside the base model's, text by text (WP-2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import altair as alt
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.style import (
    FAINT,
    MOST_POINTS,
    Records,
    classed,
    counted,
    framed,
    inline,
    nothing,
    require,
)
from attentest.charts.violins import by_largest_weight

Moved = Literal["seeds", "exact", "search"]
MOVED = {
    "seeds": "JSD from the base's attention, median over other seeds",
    "exact": "JSD of the exact adversary from the base's attention",
    "search": "JSD of the published search's adversary from the base's",
}
CHANGED = {
    "seeds": "change of output, mean over other seeds",
    "exact": "change of output under it",
    "search": "change of output under it",
}


def apart_violins(
    rows: pd.DataFrame,
    moved: Moved = "seeds",
    *,
    title: str = "",
    subtitle: str = "",
    classes: Sequence[str] | None = None,
    pooled: bool = False,
) -> alt.LayerChart:
    """How far attention moves, by the base's largest weight and predicted class (WP-2).

    What seeds do is in the rows of the base itself in seed-variance; adversaries have rows of their own in
    trained-adversary.
    """
    texts = _of_base(rows, moved)
    x = alt.X(
        field="x",
        type="quantitative",
        title=MOVED[moved],
        scale=alt.Scale(domain=[-0.05, 0.7], nice=False),
        axis=alt.Axis(values=[tenth / 10 for tenth in range(8)]),
    )
    null = "permuted" if moved == "seeds" else ""
    return by_largest_weight(texts, "jsd", x, _why(moved), title, subtitle, classes, pooled, null)


def apart_scatter(
    rows: pd.DataFrame,
    moved: Moved = "seeds",
    *,
    title: str = "",
    subtitle: str = "",
    classes: Sequence[str] | None = None,
    pooled: bool = False,
) -> alt.LayerChart:
    """How far attention moves against how far the output does, a dot a text (WP-2)."""
    texts = _of_base(rows, moved)
    x = alt.X(
        field="x",
        type="quantitative",
        title=MOVED[moved],
        scale=alt.Scale(domain=[-0.05, 0.7], nice=False),
    )
    y = alt.Y(
        field="y",
        type="quantitative",
        title=CHANGED[moved],
        scale=alt.Scale(domain=[-0.05, 1.05], nice=False),
    )
    return _scatter(texts, "jsd", "tvd", x, y, _why(moved), title, subtitle, classes, pooled)


def beyond_seeds(
    rows: pd.DataFrame,
    *,
    title: str = "",
    subtitle: str = "",
    classes: Sequence[str] | None = None,
    pooled: bool = False,
) -> alt.LayerChart:
    """How far the exact adversary moves attention against how far other seeds do anyway (WP-2)."""
    texts = _of_base(rows, "seeds")
    ends = alt.Scale(domain=[-0.05, 0.7], nice=False)
    x = alt.X(field="x", type="quantitative", title=MOVED["seeds"], scale=ends)
    y = alt.Y(field="y", type="quantitative", title=MOVED["exact"], scale=ends)
    return _scatter(texts, "jsd", "exact", x, y, _why("exact"), title, subtitle, classes, pooled, even=True)


def _of_base(rows: pd.DataFrame, moved: Moved) -> pd.DataFrame:
    """The rows to draw; class and largest weight are the base's, whoever moved its attention."""
    require(rows, "subject", "base_predicted", "base_max_attention", "jsd", "tvd")
    if rows.empty:
        return rows
    texts = rows[rows["subject"] == ("trained" if moved == "seeds" else moved)].reset_index(drop=True)
    return texts.assign(predicted=texts["base_predicted"], max_attention=texts["base_max_attention"])


def _why(moved: Moved) -> str:
    who = {"seeds": "other seeds", "exact": "an exact adversary", "search": "a searched adversary"}[moved]
    return f"No text has {who} to compare with."


def _scatter(
    texts: pd.DataFrame,
    across: str,
    up: str,
    x: alt.X,
    y: alt.Y,
    why: str,
    title: str,
    subtitle: str,
    classes: Sequence[str] | None,
    pooled: bool,
    even: bool = False,
) -> alt.LayerChart:
    """A dot a text, in the colour of the predicted class; where both axes are alike, a line of equals."""
    require(texts, across, up)
    if texts.empty:
        return nothing(why, title, subtitle)
    numbers = texts[[across, up]].apply(pd.to_numeric, errors="coerce")
    groups = classed(texts, classes, pooled)
    pairs = pd.DataFrame({"x": numbers[across], "y": numbers[up], "group": groups.of}).dropna()
    if pairs.empty:
        return nothing(why, title, subtitle)
    drawn = pairs.sample(min(len(pairs), MOST_POINTS), random_state=0)  # in no order, so none lies on top
    shown: Records = [{str(name): value for name, value in row.items()} for row in drawn.to_dict("records")]
    dots = alt.Chart(inline(shown)).mark_circle(size=18, opacity=0.4, clip=True, aria=False)
    note = counted(pairs["x"].reindex(texts.index), texts)
    note += f", {len(drawn):,} of them drawn" if len(drawn) < len(pairs) else ""
    layers = [dots.encode(x=x, y=y, color=groups.colour)]
    if even:
        equal: Records = [{"x": end, "y": end} for end in (-0.05, 0.7)]
        diagonal = alt.Chart(inline(equal)).mark_line(color=FAINT, strokeDash=[4, 3], strokeWidth=1)
        layers.insert(0, diagonal.encode(x=x, y=y))
        note += f"; {(pairs['y'] > pairs['x']).mean():.1%} above the line of equals"
    return framed(layers, title, subtitle, note, width=400, height=340)


FIGURES: tuple[Figure, ...] = (
    Figure(
        "seeds",
        "Attention of other seeds",
        "How far it lies from the base model's, by the base's largest weight. Diamonds: the base's own"
        " weights in random order. Seeds that lie as far as these agree on nothing.",
        lambda rows, view, title: apart_violins(
            rows, "seeds", title=title, subtitle=view.subtitle, **view.by_class
        ),
        redraws="WP-2: violins of the JSD between seeds by largest weight",
    ),
    Figure(
        "output",
        "And their output",
        "Each dot a text: to the right, other seeds attend elsewhere; further up, they answer otherwise.",
        lambda rows, view, title: apart_scatter(
            rows, "seeds", title=title, subtitle=view.subtitle, **view.by_class
        ),
        redraws="WP-2: JSD between seeds against the change of output",
    ),
    Figure(
        "beyond",
        "An adversary, or just another seed?",
        "Above the line the exact adversary moves attention further than other seeds do: only there is"
        " it evidence against attention.",
        lambda rows, view, title: beyond_seeds(rows, title=title, subtitle=view.subtitle, **view.by_class),
    ),
)
