"""Findings as points with their interval and their null: scores of several models (WP-1, WP-3, PR)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from attentest.charts.style import FAINT, INK, PALETTE, Records, framed, inline, nothing, require
from attentest.experiments.deception.conclude import PENALISED
from attentest.experiments.guided.conclude import GUIDED_BY

NUMBERS = ("estimate", "low", "high", "null")
LANE, GAP = 15, 18  # points of height for a measure, and between models
CONTROLS = {"untrained": "never trained", "shuffled labels": "trained on shuffled labels"}
READS = "dots: estimates, lines: 95 % intervals, black bars: the null"
GUIDES = {
    "uniform": "by uniform weights",
    "own": "by weights of its own",
    "base": "by the base model's weights",
    "adversary": "by a trained adversary's weights",
    "untrained": "by an untrained model's weights",
    "shuffled labels": "by weights learnt from shuffled labels",
}


def uniform_scores(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """How well the model does with its attention, and trained anew with all weights alike (WP-1)."""
    groups = {"trained": "its own attention", "uniform": "uniform attention", **CONTROLS}
    scores = {"f1": "F1", "accuracy": "accuracy", "auc": "ROC-AUC"}
    return points(findings, scores, groups, "score, the higher the better", title, subtitle)


def uniform_losses(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """What uniform attention costs, beside what another seed would (WP-1)."""
    lost = {"f1-lost": "F1", "accuracy-lost": "accuracy", "auc-lost": "ROC-AUC"}
    axis = "score lost, right of zero: attention was needed"
    return points(findings, lost, {"overall": "own less uniform"}, axis, title, subtitle, (0.0,))


def guide_scores(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """How well a token-wise MLP does under each model's weights, beside the models themselves (WP-3)."""
    groups = {"trained": "the base model itself", "trained adversary": "its adversary itself", **_guides()}
    scores = {"f1": "F1", "accuracy": "accuracy"}
    return points(findings, scores, groups, "score, the higher the better", title, subtitle)


def guide_gains(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """What each guide is worth beyond uniform weights, beside an untrained model's weights (WP-3)."""
    gains = {"f1-beyond-uniform": "F1", "accuracy-beyond-uniform": "accuracy"}
    axis = "score beyond uniform weights, right of zero: better"
    return points(findings, gains, _guides(), axis, title, subtitle, (0.0,))


def _guides() -> dict[str, str]:
    return {GUIDED_BY + name: said for name, said in GUIDES.items()}


def deception_scores(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """Attention on the impermissible words, and answers with and without it, by penalty (PR)."""
    asked = {
        "mass": "attention on the impermissible words",
        "accuracy": "accuracy",
        "accuracy-zeroed": "accuracy, that attention zeroed",
        "accuracy-renormalised": "accuracy, zeroed and renormalised",
    }
    swept = {group for group in findings.get("group", ()) if group.startswith(PENALISED) and "," not in group}
    by_penalty = sorted(swept, key=lambda group: float(group.removeprefix(PENALISED)))
    groups = {
        "overall": "no penalty",
        **{group: f"penalty λ = {group.removeprefix(PENALISED)}" for group in by_penalty},
        "anonymised": "without the words",
        **CONTROLS,
    }
    return points(findings, asked, groups, "share", title, subtitle, (0.0, 1.0))


def points(
    findings: pd.DataFrame,
    measures: Mapping[str, str],
    groups: Mapping[str, str],
    axis: str,
    title: str,
    subtitle: str,
    within: Sequence[float] = (),
) -> alt.LayerChart:
    """A lane for each of the groups there are, in it a colour for each measure; both go by their words.

    The axis reaches as far as the numbers do, and over the numbers `within`.
    """
    require(findings, "measure", "group", *NUMBERS)
    found = [
        row
        for row in findings.to_dict("records")
        if row["measure"] in measures and row["group"] in groups and math.isfinite(row["estimate"])
    ]
    if not found:
        return nothing("No text has an answer that can be scored.", title, subtitle)
    records: Records = [
        {
            "group": groups[row["group"]],
            "measure": measures[row["measure"]],
            **{name: row[name] if math.isfinite(row[name]) else None for name in NUMBERS},
        }
        for row in found
    ]
    lanes = [said for said in groups.values() if any(record["group"] == said for record in records)]
    height = len(lanes) * (LANE * len(measures) + GAP)
    layers = _layers(records, lanes, list(measures.values()), axis, within)
    return framed(layers, title, subtitle, _counted(found), READS, height=height)


def _layers(
    records: Records, lanes: Sequence[str], measures: Sequence[str], axis: str, within: Sequence[float]
) -> list[alt.Chart]:
    ends = [
        *within,
        *(value for record in records for name in NUMBERS if (value := record[name]) is not None),
    ]
    x = alt.Scale(domain=[min(ends), max(ends)], nice=True, zero=False)
    colour = alt.Color(
        field="measure",
        type="nominal",
        scale=alt.Scale(domain=list(measures), range=list(PALETTE[: len(measures)])),
        legend=alt.Legend(title=None, symbolOpacity=1, columns=3 if len(measures) < 4 else 2),
    )
    spread = GAP / (GAP + LANE * len(measures))
    base = alt.Chart(inline(records)).encode(
        y=alt.Y(
            field="group",
            type="ordinal",
            sort=list(lanes),
            title=None,
            axis=alt.Axis(grid=False, ticks=False, domain=False, labelLimit=260, labelPadding=10),
            scale=alt.Scale(paddingInner=spread, paddingOuter=spread / 2),
        ),
        yOffset=alt.YOffset(field="measure", type="nominal", sort=list(measures)),
    )
    low, null, estimate = (
        alt.X(field=name, type="quantitative", scale=x, title=axis, axis=alt.Axis(format="~g", tickCount=6))
        for name in ("low", "null", "estimate")
    )
    zero = alt.Chart(inline([{"low": 0.0}])).mark_rule(color=FAINT, strokeDash=[2, 3]).encode(x=low)
    return [
        *([zero] if 0.0 in within else []),
        base.mark_rule(strokeWidth=2, opacity=0.7).encode(x=low, x2="high", color=colour),
        base.mark_tick(color=INK, thickness=2, size=LANE - 2).encode(x=null),
        base.mark_point(filled=True, size=55, opacity=1, stroke=INK, strokeWidth=0.5).encode(
            x=estimate, color=colour
        ),
    ]


def _counted(found: Sequence[Mapping[Any, Any]]) -> str:
    """How many texts the points are about, and from how many seeds: a range where they differ."""
    n, seeds = ({int(row[name]) for row in found} for name in ("n", "seeds"))
    said = f"n = {min(n):,}" + (f" to {max(n):,}" if len(n) > 1 else "")
    return said + (f" over {max(seeds)} seeds" if max(seeds) > 1 else "")
