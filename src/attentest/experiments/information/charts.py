"""The figures of information by rank."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.information import KINDS, OVERALL, TAUS
from attentest.charts.points import points
from attentest.charts.style import Records, framed, inline, nothing, require
from attentest.statistics.group_means import CONTROLS
from attentest.statistics.named import Named


def information_curves(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """What each rank tells about the output, beside its floor and what a token of any rank tells (WE-1)."""
    require(findings, "measure", "group", "estimate", "null", "n", "seeds")
    own = findings[findings["group"] == "overall"] if len(findings) else findings
    told = [*_curve(own, "mi", ("mi", "floor")), *_curve(own, "mi-joint", ("joint", "dealt"))]
    if not told:
        return nothing("No text is long enough to be ranked, or all answers are alike.", title, subtitle)
    names = [name for name, _ in KINDS.values()]
    colour = alt.Color(
        field="kind",
        type="nominal",
        scale=alt.Scale(domain=names, range=[colour for _, colour in KINDS.values()]),
        legend=alt.Legend(title=None, columns=2, symbolStrokeWidth=3),
    )
    ranks = max(record["rank"] for record in told)
    line = (
        alt.Chart(inline(told))
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=30, filled=True))
        .encode(
            x=alt.X(
                field="rank",
                type="quantitative",
                title="rank of attention, the largest weight first",
                scale=alt.Scale(domain=[1, max(ranks, 2)], nice=False),
                axis=alt.Axis(format="d", tickMinStep=1, grid=False),
            ),
            y=alt.Y(field="told", type="quantitative", title="information about the output (nats)"),
            color=colour,
        )
    )
    first = own[own["measure"] == "mi@1"].iloc[0]
    seeds = int(first["seeds"])
    note = f"n = {int(first['n']):,}" + (f" over {seeds} seeds" if seeds > 1 else "")
    return framed([line], title, subtitle, f"{note}; {_tau(own)}", height=300)


def _curve(findings: pd.DataFrame, measure: str, kinds: tuple[str, str]) -> Records:
    """A measure at every rank, and its null there."""
    found: Records = []
    for row in findings.to_dict("records"):
        named = Named.of(row["measure"])
        for kind, value in zip(kinds, (row["estimate"], row["null"]), strict=True):
            if named.name == measure and math.isfinite(value):
                found.append({"kind": KINDS[kind][0], "rank": int(named.setting), "told": value})
    return found


def _tau(findings: pd.DataFrame) -> str:
    taken = findings.set_index("measure")["estimate"]
    said = [f"τ = {taken['tau']:.2f}"] if "tau" in taken else []
    said += [f"luck reaches {taken['tau-null-95']:.2f} once in twenty"] if "tau-null-95" in taken else []
    return ", ".join(said)


def information_orders(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """Agreement of attention and information, told in five ways, beside orders that are luck (WE-1)."""
    groups = OVERALL | {name: name for name in CONTROLS}
    return points(findings, TAUS, groups, "τ of information and attention", title, subtitle, (0.0, 1.0))


FIGURES: tuple[Figure, ...] = (
    Figure(
        "curves",
        "What each rank tells about the output",
        "Where attention knows what matters, the curve falls. Black: what small clusters tell of outputs"
        " that are dealt at random. Blue and gray: by one codebook, and where tokens are dealt to ranks.",
        lambda rows, view, title: information_curves(view.findings, title=title, subtitle=view.subtitle),
    ),
    Figure(
        "orders",
        "Do attention and information agree?",
        "1: every rank tells more than those below it. Black bars: orders that are luck, on average; some"
        " reach far higher, since few ranks weigh much.",
        lambda rows, view, title: information_orders(view.findings, title=title, subtitle=view.subtitle),
    ),
)
