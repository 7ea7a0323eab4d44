"""Models as points: how far words reach into each other's states, and what attention agrees with there.

Kendall's tau is said to be unfair to models with context, whose states are about many words. If it is, the
agreement of attention with the gradients of words falls as influence spreads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import altair as alt
from scipy import stats

from attentest.charts.style import FAINT, PALETTE, Records, framed, inline, nothing
from attentest.notebook import harmless

FEW = 3  # models: of fewer, a correlation says nothing


@final
@dataclass(frozen=True, kw_only=True)
class ModelPoint:
    """One model on the plane: the entropy of influence, and the excess of tau with its interval."""

    corpus: str
    model: str
    spread: float
    excess: float
    low: float
    high: float


def context_scatter(models: Sequence[ModelPoint], *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """The excess of tau over that of untrained models against the entropy of influence, a point a model."""
    there = [one for one in models if math.isfinite(one.spread) and math.isfinite(one.excess)]
    if not there:
        return nothing("No model has both numbers.", title, subtitle)
    points: Records = [
        {
            "corpus": harmless(one.corpus),
            "model": harmless(one.model),
            "x": one.spread,
            "y": one.excess,
            "low": one.low if math.isfinite(one.low) else one.excess,
            "high": one.high if math.isfinite(one.high) else one.excess,
        }
        for one in there
    ]
    x = alt.X(
        field="x",
        type="quantitative",
        title="normalised entropy of words' influence on a state",
        scale=alt.Scale(domain=[0, 1], nice=False),
    )
    y, low = (
        alt.Y(field=name, type="quantitative", title="τ of attention and gradient, less untrained models'")
        for name in ("y", "low")
    )
    corpora = list(dict.fromkeys(point["corpus"] for point in points))
    colour = alt.Color(
        field="corpus",
        type="nominal",
        scale=alt.Scale(domain=corpora, range=[PALETTE[n % len(PALETTE)] for n in range(len(corpora))]),
        legend=alt.Legend(title=None, symbolOpacity=1, columns=4),
    )
    base = alt.Chart(inline(points)).encode(x=x, color=colour)
    zero = alt.Chart(inline([{"y": 0.0}])).mark_rule(color=FAINT, strokeDash=[2, 3])
    layers = [
        zero.encode(y=y),
        base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(y=low, y2="high"),
        base.mark_point(filled=True, size=60, opacity=1).encode(y=y, tooltip=["model:N", "corpus:N"]),
        base.mark_text(align="left", dx=7, fontSize=9).encode(y=y, text="model:N", color=alt.value(FAINT)),
    ]
    return framed(layers, title, subtitle, _correlated(points), "upright: 95 % intervals of tau", height=340)


def _correlated(points: Records) -> str:
    x, y = ([point[axis] for point in points] for axis in ("x", "y"))
    said = f"{len(points)} models"
    if len(points) < FEW or len(set(x)) == 1 or len(set(y)) == 1:
        return said
    return f"{said}; Spearman's ρ = {stats.spearmanr(x, y)[0]:.2f}"
