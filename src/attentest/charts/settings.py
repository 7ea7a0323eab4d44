"""Agreement of attention and information over the settings of a study: boxes by seed, flatness (WE-1, 5)."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from attentest.charts.style import FAINT, INK, PALETTE, Records, framed, inline, nothing, require
from attentest.notebook import harmless
from attentest.statistics.record import Finding

COLUMNS = ("corpus", "encoder", "attention", "seed", "tau", "entropy")
NONE = "No text is ranked in any setting."


def tau_boxes(settings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """Tau by attention and encoder, a box over seeds: one corpus, one panel of the paper's figure (WE-1)."""
    there = _defined(settings)
    if there.empty:
        return nothing(NONE, title, subtitle)
    encoders = list(dict.fromkeys(there["encoder"]))
    base = alt.Chart(inline(_records(there))).encode(
        x=alt.X(field="attention", type="nominal", title="attention", sort=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset(field="encoder", type="nominal", sort=encoders),
        color=_colour("encoder", encoders),
    )
    y = alt.Y(
        field="tau",
        type="quantitative",
        title="τ of information and attention",
        scale=alt.Scale(domain=[min(0.0, float(there["tau"].min())), 1.0], nice=True),
    )
    boxes = base.mark_boxplot(size=18, extent="min-max", median={"color": INK}, opacity=0.6).encode(y=y)
    dots = base.mark_circle(size=22, opacity=0.9, stroke=INK, strokeWidth=0.4).encode(y=y)
    return framed([boxes, dots], title, subtitle, _counted(settings, there))


def flatness_scatter(
    settings: pd.DataFrame, finding: Finding | None, *, title: str = "", subtitle: str = ""
) -> alt.LayerChart:
    """Each training at its flatness and its tau, with Spearman's correlation over the settings (WE-5)."""
    there = _defined(settings)
    if there.empty:
        return nothing(NONE, title, subtitle)
    attentions = list(dict.fromkeys(there["attention"]))
    said = "" if finding is None else _said(finding)
    dots = (
        alt.Chart(inline(_records(there)))
        .mark_point(filled=True, size=55, opacity=0.75)
        .encode(
            x=alt.X(
                field="entropy",
                type="quantitative",
                title="mean normalised entropy of attention: flatter to the right",
                scale=alt.Scale(domain=[0, 1], nice=False),
            ),
            y=alt.Y(
                field="tau",
                type="quantitative",
                title="τ of information and attention",
                scale=alt.Scale(domain=[-1, 1], nice=False),
            ),
            color=_colour("attention", attentions),
            shape=alt.Shape(field="encoder", type="nominal", legend=alt.Legend(title=None)),
            tooltip=["corpus:N", "encoder:N", "attention:N", "seed:N", alt.Tooltip("tau:Q", format=".2f")],
        )
    )
    zero = alt.Chart(inline([{"tau": 0.0}])).mark_rule(color=FAINT, strokeDash=[2, 3]).encode(y="tau:Q")
    return framed([zero, dots], title, subtitle, _counted(settings, there), said, height=320)


def _said(finding: Finding) -> str:
    if not math.isfinite(finding.estimate):
        return "too few settings for a correlation"
    return f"Spearman's ρ = {finding.estimate:.2f}, 95 % from {finding.low:.2f} to {finding.high:.2f}"


def _defined(settings: pd.DataFrame) -> pd.DataFrame:
    require(settings, *COLUMNS)
    return settings.dropna(subset=["tau", "entropy"]) if len(settings) else settings


def _records(settings: pd.DataFrame) -> Records:
    found = settings[list(COLUMNS)].to_dict("records")
    named = ("corpus", "encoder", "attention")
    return [{str(k): v for k, v in row.items()} | {k: harmless(row[k]) for k in named} for row in found]


def _colour(name: str, values: list[str]) -> alt.Color:
    scale = alt.Scale(domain=values, range=[PALETTE[n % len(PALETTE)] for n in range(len(values))])
    return alt.Color(field=name, type="nominal", scale=scale, legend=alt.Legend(title=None, symbolOpacity=1))


def _counted(settings: pd.DataFrame, there: pd.DataFrame) -> str:
    seeds = there["seed"].nunique()
    said = f"{len(there):,} trainings" + (f" over {seeds} seeds" if seeds > 1 else "")
    left = len(settings) - len(there)
    return said + (f"; {left:,} undefined and left out" if left else "")
