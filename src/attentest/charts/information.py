"""Information by rank of attention (WE-1), and what becomes of its order in other models (WE-2 to WE-4)."""

from __future__ import annotations

import math

import altair as alt
import pandas as pd

from attentest.charts.points import points
from attentest.charts.style import INK, PALETTE, Records, framed, inline, nothing, require
from attentest.statistics.group_means import CONTROLS

KINDS = {
    "mi": ("told about the output", PALETTE[1]),
    "floor": ("told where outputs are dealt at random", INK),
    "joint": ("told, one codebook for all ranks", PALETTE[6]),
    "dealt": ("told where tokens are dealt to ranks at random", PALETTE[7]),
}
TAUS = {
    "tau": "τ, a codebook for each rank",
    "tau-joint": "τ, one codebook for all ranks",
    "tau-above-floor": "τ, above the floor",
    "tau-knn": "τ, without clusters",
    "tau-scipy": "τ, weighted by rank",
}
OVERALL = {"overall": "the model itself"}


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
        name, _, rank = row["measure"].partition("@")
        for kind, value in zip(kinds, (row["estimate"], row["null"]), strict=True):
            if name == measure and math.isfinite(value):
                found.append({"kind": KINDS[kind][0], "rank": int(rank), "told": value})
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


def ablation_taus(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """Agreement of attention and information in the model, its siblings and the controls (WE-2 to WE-4)."""
    taus = {name: TAUS[name] for name in ("tau", "tau-joint")}
    groups = OVERALL | _others(findings)
    return points(findings, taus, groups, "τ of information and attention", title, subtitle, (0.0, 1.0))


def ablation_losses(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """What each sibling loses of the model's agreement, seed by seed (WE-2 to WE-4)."""
    lost = {"tau-lost": "τ lost", "tau-lost-shared": "τ lost over the ranks that both have"}
    axis = "τ of the model less τ of the other"
    return points(findings, lost, _others(findings), axis, title, subtitle, (0.0,))


def ablation_flatness(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """How flat the attention of each model is, and its largest weight (WE-4, WE-5)."""
    flat = {"attention-entropy": "entropy of attention, normalised", "max-attention": "largest weight"}
    return points(findings, flat, OVERALL | _others(findings), "share", title, subtitle, (0.0, 1.0))


def ablation_scores(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """How well each model answers, and how far output and attention are from the model's own (WE-3)."""
    asked = {
        "accuracy": "accuracy",
        "output-tvd": "output apart (total variation)",
        "attention-jsd": "attention apart (JSD, nats)",
    }
    return points(findings, asked, OVERALL | _others(findings), "share, or nats", title, subtitle, (0.0, 1.0))


def sensitivity_taus(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """Agreement of attention and information under each alternative to what the paper leaves open."""
    groups = {"overall": "as it is by default"} | _others(findings)
    axis = "τ of information and attention"
    return points(findings, {"tau": TAUS["tau"]}, groups, axis, title, subtitle, (0.0, 1.0))


def _others(findings: pd.DataFrame) -> dict[str, str]:
    """All groups but the model itself, in the order in which they were concluded."""
    return {group: group for group in dict.fromkeys(findings.get("group", ())) if group != "overall"}
