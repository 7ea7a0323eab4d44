"""What it costs attention to move within a frozen model, and with a model of its own (ME-5)."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.style import FAINT, INK, Records, framed, inline, nothing, require
from attentest.experiments.frozen_adversary.conclude import FREE, FROZEN, KINDS, UNFROZEN
from attentest.experiments.shared.numbered import numbered

SAID = {
    FROZEN: "attention alone is trained",
    FREE: "free weights for each text",
    UNFROZEN: "a model from scratch",
}
COLOURS = ("#d15a00", "#43406b", "#0072b2")


def frozen_curves(
    rows: pd.DataFrame, findings: pd.DataFrame, *, title: str = "", subtitle: str = ""
) -> alt.LayerChart:
    """Change of accuracy against divergence of attention over lambda, a curve a kind of adversary (ME-5)."""
    require(findings, "measure", "group", "estimate", "low", "high", "null")
    require(rows, "seed", "subject")
    points = [point for kind in KINDS for point in _curve(findings, kind)]
    if not points:
        return nothing("No text has an adversary to compare with.", title, subtitle)
    x = alt.X(
        field="x",
        type="quantitative",
        title="mean JSD of attention from the base's",
        scale=alt.Scale(domain=[0, 0.7], nice=False),
    )
    y, low = (
        alt.Y(field=name, type="quantitative", title="accuracy less the base's", scale=alt.Scale(zero=True))
        for name in ("y", "low")
    )
    legend = alt.Legend(title=None, symbolOpacity=1, columns=3)
    colour = alt.Color(
        field="kind",
        type="nominal",
        scale=alt.Scale(domain=list(SAID.values()), range=list(COLOURS)),
        legend=legend,
    )
    base = alt.Chart(inline(points)).encode(x=x, color=colour)
    labels = alt.Chart(inline([point for point in points if point["label"]]))
    layers = [
        *_luck(findings),
        base.mark_rule(strokeWidth=1.5, opacity=0.5).encode(y=low, y2="high"),
        base.mark_line(strokeWidth=2, point={"filled": True, "size": 50}).encode(
            y=y, order=alt.Order(field="lambda", type="quantitative")
        ),
        labels.mark_text(align="left", dx=5, dy=9, fontSize=9, color=FAINT).encode(x=x, y=y, text="label:N"),
    ]
    texts = rows[rows["subject"] == "trained"]
    seeds = texts["seed"].nunique()
    n = f"n = {len(texts):,}" + (f" over {seeds} seeds" if seeds > 1 else "")
    reads = "upright: 95 % intervals; dashed: by how much two seeds of the base differ"
    return framed(layers, title, subtitle, n, reads, height=320)


def _curve(findings: pd.DataFrame, kind: str) -> Records:
    """From the base itself, which is where it is, along lambda."""
    start: dict[str, Any] = {"x": 0.0, "y": 0.0, "low": 0.0, "high": 0.0, "lambda": -1.0, "label": ""}
    found: Records = [{**start, "kind": SAID[kind]}]
    for group, strength in numbered(findings.get("group", ()), kind).items():
        across, up = (_row(findings, measure, group) for measure in ("attention-jsd", "accuracy-change"))
        if across and up:
            known = {end: up[end] if math.isfinite(up[end]) else up["estimate"] for end in ("low", "high")}
            found.append(
                {
                    "kind": SAID[kind],
                    "x": across["estimate"],
                    "y": up["estimate"],
                    **known,
                    "lambda": strength,
                    "label": f"λ {strength:g}",
                }
            )
    return found if len(found) > 1 else []


def _row(findings: pd.DataFrame, measure: str, group: str) -> dict[str, Any]:
    found = findings[(findings["measure"] == measure) & (findings["group"] == group)].to_dict("records")
    if not found or not math.isfinite(found[0]["estimate"]):
        return {}
    return {str(name): value for name, value in found[0].items()}


def _luck(findings: pd.DataFrame) -> list[alt.Chart]:
    """Where a change begins that another seed would not bring about."""
    known = findings.loc[findings["measure"] == "accuracy-change", "null"].dropna()
    if known.empty:
        return []
    rule = alt.Chart(inline([{"y": float(known.iloc[0])}])).mark_rule(color=INK, strokeDash=[4, 3])
    return [rule.encode(y=alt.Y(field="y", type="quantitative"))]


FIGURES: tuple[Figure, ...] = (
    Figure(
        "curves",
        "Attention moved, alone and not",
        "Adversaries with more and more reward for attending elsewhere. Where the curve of frozen models"
        " falls and that of models from scratch does not, what attention carried has moved with it.",
        lambda rows, view, title: frozen_curves(rows, view.findings, title=title, subtitle=view.subtitle),
    ),
)
