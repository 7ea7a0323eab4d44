"""A training curve: the loss and the score on dev, epoch by epoch, a line a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import altair as alt

from attentest.charts.style import INK, PALETTE, framed, inline, nothing


@final
@dataclass(frozen=True, kw_only=True)
class Epoch:
    """What is known after one epoch of one seed, by name."""

    seed: int
    epoch: int
    chosen: bool  # whether these weights were kept
    numbers: Mapping[str, float]


def training_curve(epochs: Sequence[Epoch], *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """Lines over epochs; a ring marks the epoch whose weights were kept."""
    records = [
        {"seed": one.seed, "epoch": one.epoch, "chosen": one.chosen, "quantity": name, "value": value}
        for one in epochs
        for name, value in one.numbers.items()
    ]
    if not records:
        return nothing("The store does not tell how the models were trained.", title, subtitle)
    names = list(dict.fromkeys(str(record["quantity"]) for record in records))
    colour = alt.Color(
        field="quantity",
        type="nominal",
        scale=alt.Scale(domain=names, range=[PALETTE[1], PALETTE[0]][: len(names)]),
        legend=alt.Legend(title=None, symbolOpacity=1),
    )
    last = max(one.epoch for one in epochs)
    x = alt.X(
        field="epoch",
        type="quantitative",
        title="epoch",
        scale=alt.Scale(domain=[1, max(last, 2)]),
        axis=alt.Axis(tickMinStep=1, format="d", grid=False),
    )
    y = alt.Y(field="value", type="quantitative", title=None, scale=alt.Scale(zero=True, nice=True))
    base = alt.Chart(inline(records)).encode(x=x, y=y, color=colour, detail=alt.Detail(field="seed"))
    kept = base.transform_filter("datum.chosen").mark_point(size=70, strokeWidth=2, stroke=INK, filled=True)
    return framed(
        [base.mark_line(strokeWidth=1.6, opacity=0.75), base.mark_point(size=14, filled=True), kept],
        title,
        subtitle,
        "a line a seed; a ringed dot: the epoch whose weights were kept",
        height=200,
    )
