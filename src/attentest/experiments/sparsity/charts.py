"""The figures of sparser and sparser attention."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.lanes import Lane, drawn_lanes
from attentest.charts.style import (
    FAINT,
    PALETTE,
    Records,
    framed,
    inline,
    nothing,
    require,
)
from attentest.evidence.importances.names import IN_WORDS
from attentest.experiments.shared.numbered import number_in
from attentest.experiments.sparsity.conclude import LAMBDA, SOFTMAX, TWIN

COLOURS = alt.Scale(domain=list(IN_WORDS.values()), range=list(PALETTE[:2]))


NUMBERS = ("estimate", "std", "low", "high", "null")


def agreement_by_lambda(
    rows: pd.DataFrame,
    findings: pd.DataFrame,
    where: str = "",
    *,
    title: str = "",
    subtitle: str = "",
) -> alt.LayerChart:
    """Attention's rank correlation with both importances against lambda, mean and std over texts (ME-3).

    `where` is empty for all tokens or `-on-support`. Sparser is further right: x is -log10(1 - lambda).
    """
    points: Records = [
        {
            **point,
            "importance": said,
            "bottom": max(-1.0, point["estimate"] - point["std"]),
            "top": min(1.0, point["estimate"] + point["std"]),
        }
        for name, said in IN_WORDS.items()
        for point in _swept(rows, findings, f"tau-{name}{where}")
    ]
    if not points:
        return nothing("No text has a correlation to show.", title, subtitle)
    x = alt.X(
        field="x",
        type="quantitative",
        title="-log10(1 - λ): sparser to the right, 0 is sparsemax",
        scale=alt.Scale(nice=False, padding=12),
    )
    middle, bottom, null = (
        alt.Y(field=name, type="quantitative", title="Kendall's τ-b with attention")
        for name in ("estimate", "bottom", "null")
    )
    legend = alt.Legend(title=None, symbolOpacity=1, columns=2)
    colour = alt.Color(field="importance", type="nominal", scale=COLOURS, legend=legend)
    base = alt.Chart(inline(points)).encode(x=x, color=colour)
    layers = [
        base.mark_area(opacity=0.15).encode(y=bottom, y2="top"),
        base.mark_line(strokeDash=[4, 3], strokeWidth=1.2).encode(y=null),
        base.mark_rule(strokeWidth=2, opacity=0.7).encode(
            y=alt.Y(field="low", type="quantitative"), y2="high"
        ),
        base.mark_line(strokeWidth=2, point={"filled": True, "size": 45}).encode(y=middle),
    ]
    reads = "bands: one standard deviation of texts; upright: 95 % intervals of the mean; dashed: the null"
    return framed(layers, title, subtitle, _counted(rows), reads, height=320)


def entropy_by_realised(
    rows: pd.DataFrame, findings: pd.DataFrame, *, title: str = "", subtitle: str = ""
) -> alt.LayerChart:
    """How spread importance is against how sparse attention really is, a point a lambda (ME-2).

    Diamonds are the untrained models with the same projections.
    """
    points: Records = []
    for name, said in IN_WORDS.items():
        sparse = {point["lambda"]: point for point in _swept(rows, findings, "support-share")}
        for point in _swept(rows, findings, f"entropy-{name}"):
            if point["lambda"] in sparse:
                own = {"importance": said, "label": f"λ {point['lambda']:g}"}
                across = sparse[point["lambda"]]
                points.append({**own, "x": across["estimate"], "y": point["estimate"], "kind": "trained"})
                if point["null"] is not None and across["null"] is not None:
                    points.append({**own, "x": across["null"], "y": point["null"], "kind": "never trained"})
    if not points:
        return nothing("No text has an entropy to show.", title, subtitle)
    ends = alt.Scale(domain=[0, 1.02], nice=False)
    x = alt.X(field="x", type="quantitative", title="share of tokens that attention weighs", scale=ends)
    y = alt.Y(
        field="y",
        type="quantitative",
        title="normalised entropy of importance",
        scale=alt.Scale(zero=False, nice=True),
    )
    legend = alt.Legend(title=None, symbolOpacity=1, columns=2)
    kinds = alt.Scale(domain=["trained", "never trained"], range=["circle", "diamond"])
    base = alt.Chart(inline(points)).encode(x=x, y=y)
    labels = alt.Chart(inline([point for point in points if point["kind"] == "trained"]))
    layers = [
        base.mark_point(size=60, strokeWidth=1.8, opacity=0.9).encode(
            color=alt.Color(field="importance", type="nominal", scale=COLOURS, legend=legend),
            shape=alt.Shape(field="kind", type="nominal", scale=kinds, legend=legend),
        ),
        labels.mark_text(align="left", dx=6, dy=-7, fontSize=9, color=FAINT).encode(x=x, y=y, text="label:N"),
    ]
    reads = "λ is a temperature that training may undo: to the left, attention is sparser in fact"
    return framed(layers, title, subtitle, _counted(rows), reads, height=340)


def _swept(rows: pd.DataFrame, findings: pd.DataFrame, measure: str) -> Records:
    """The models of the sweep in the order of lambda, with a measure's numbers; the subject may be one."""
    require(findings, "measure", "group", *NUMBERS)
    require(rows, "subject", "seed", "lambda")
    found = []
    for row in findings.to_dict("records"):
        number = _lambda(rows, row["group"])
        if row["measure"] == measure and math.isfinite(number) and math.isfinite(row["estimate"]):
            known: dict[str, Any] = {
                name: row[name] if math.isfinite(row[name]) else None for name in NUMBERS
            }
            found.append({**known, "lambda": number, "x": -math.log10(1 - number)})
    return sorted(found, key=lambda point: point["lambda"])


def _lambda(rows: pd.DataFrame, group: str) -> float:
    """Of a model of the sweep by its group's name; NaN for any other group."""
    if group.startswith(LAMBDA):
        return number_in(group, LAMBDA)
    if group != "overall" or rows.empty:
        return math.nan
    return float(rows.loc[rows["subject"] == "trained", "lambda"].iloc[0])


def _counted(rows: pd.DataFrame) -> str:
    texts = rows[rows["subject"] == "trained"]
    seeds = texts["seed"].nunique()
    return f"n = {len(texts):,} for each model" + (f" over {seeds} seeds" if seeds > 1 else "")


def sparsity_entropies(
    rows: pd.DataFrame, importance: str = "gradient", *, title: str = "", subtitle: str = ""
) -> alt.LayerChart:
    """How spread importance is over the words of a text, a lane a projection, sparser ones below (ME-2)."""
    column = f"entropy_{importance}"
    require(rows, "subject", "lambda", column)
    lanes = [
        Lane(said, _of(rows, name, column), _of(rows, twin, column), PALETTE[0 if name == "trained" else 1])
        for name, (said, twin) in _models(rows).items()
    ]
    axis = f"normalised entropy of the {IN_WORDS[importance]} of words"
    return drawn_lanes(
        lanes, rows, axis, (0.0, 1.0), "untrained models with the same projection", title, subtitle
    )


def _models(rows: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """The models of a sweep by their subjects, the least sparse first: what each is called, and its twin."""
    known = rows.drop_duplicates("subject") if len(rows) else rows.reindex(columns=["subject", "lambda"])
    found = []
    for subject, number in zip(known["subject"], known["lambda"].astype(float), strict=True):
        twin = TWIN.strip() if subject == "trained" else TWIN + subject
        if subject in ("trained", SOFTMAX) or subject.startswith(LAMBDA):
            said = "the model itself" if math.isnan(number) else f"λ = {number:g}"
            found.append((number if number == number else -math.inf, subject, said, twin))
    named = {SOFTMAX: "softmax"}
    return {subject: (named.get(subject, said), twin) for _, subject, said, twin in sorted(found)}


def _of(rows: pd.DataFrame, subject: str, column: str) -> pd.Series:
    return rows.loc[rows["subject"] == subject, column] if len(rows) else pd.Series(dtype=float)


FIGURES: tuple[Figure, ...] = (
    Figure(
        "entropy-gradient",
        "Does sparser attention make importance sparser?",
        "How spread the gradient importance of words is, a lane a model, sparser attention further down."
        " Diamonds: the same projections without training.",
        lambda rows, view, title: sparsity_entropies(rows, title=title, subtitle=view.subtitle),
        redraws="ME-2, Figure 2: entropy of gradient importance by sparsity",
    ),
    Figure(
        "entropy-loo",
        "The same by leaving out",
        "How spread leave-one-out importance is.",
        lambda rows, view, title: sparsity_entropies(rows, "loo", title=title, subtitle=view.subtitle),
        redraws="ME-2, Figure 2: entropy of leave-one-out importance by sparsity",
    ),
    Figure(
        "realised",
        "Against how sparse attention really is",
        "Scores have a free scale, so a training may undo lambda: here the models stand where their"
        " attention came to rest.",
        lambda rows, view, title: entropy_by_realised(
            rows, view.findings, title=title, subtitle=view.subtitle
        ),
    ),
    Figure(
        "tau",
        "Does sparser attention agree better with importance?",
        "Rank correlation with both importances over all words. Zeros of sparse attention tie, which by"
        " itself moves it: see the next figure.",
        lambda rows, view, title: agreement_by_lambda(
            rows, view.findings, title=title, subtitle=view.subtitle
        ),
        redraws="ME-3: agreement with importance by sparsity",
    ),
    Figure(
        "tau-on-support",
        "And among the words that have weight?",
        "The same without the words that attention leaves out.",
        lambda rows, view, title: agreement_by_lambda(
            rows, view.findings, "-on-support", title=title, subtitle=view.subtitle
        ),
    ),
)
