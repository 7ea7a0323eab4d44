"""The figures of information by rank, trained otherwise."""

from __future__ import annotations

import altair as alt
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.information import OVERALL, TAUS, other_groups
from attentest.charts.points import points


def ablation_taus(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """Agreement of attention and information in the model, its siblings and the controls (WE-2 to WE-4)."""
    taus = {name: TAUS[name] for name in ("tau", "tau-joint")}
    groups = OVERALL | other_groups(findings)
    return points(findings, taus, groups, "τ of information and attention", title, subtitle, (0.0, 1.0))


def ablation_losses(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """What each sibling loses of the model's agreement, seed by seed (WE-2 to WE-4)."""
    lost = {"tau-lost": "τ lost", "tau-lost-shared": "τ lost over the ranks that both have"}
    axis = "τ of the model less τ of the other"
    return points(findings, lost, other_groups(findings), axis, title, subtitle, (0.0,))


def ablation_flatness(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """How flat the attention of each model is, and its largest weight (WE-4, WE-5)."""
    flat = {"attention-entropy": "entropy of attention, normalised", "max-attention": "largest weight"}
    return points(findings, flat, OVERALL | other_groups(findings), "share", title, subtitle, (0.0, 1.0))


def ablation_scores(findings: pd.DataFrame, *, title: str = "", subtitle: str = "") -> alt.LayerChart:
    """How well each model answers, and how far output and attention are from the model's own (WE-3)."""
    asked = {
        "accuracy": "accuracy",
        "output-tvd": "output apart (total variation)",
        "attention-jsd": "attention apart (JSD, nats)",
    }
    return points(
        findings, asked, OVERALL | other_groups(findings), "share, or nats", title, subtitle, (0.0, 1.0)
    )


FIGURES: tuple[Figure, ...] = (
    Figure(
        "taus",
        "Agreement in models trained otherwise",
        "Each is measured by its own attention and its own states. Black bars: orders that are luck.",
        lambda rows, view, title: ablation_taus(view.findings, title=title, subtitle=view.subtitle),
    ),
    Figure(
        "lost",
        "What each loses",
        "Right of zero, attention orders states less well than in the normal model of the same seed.",
        lambda rows, view, title: ablation_losses(view.findings, title=title, subtitle=view.subtitle),
    ),
    Figure(
        "apart",
        "How well each answers, and how far it is from the normal model",
        "An adversary answers the same and attends elsewhere. Black bars: the commonest answer, and no"
        " difference.",
        lambda rows, view, title: ablation_scores(view.findings, title=title, subtitle=view.subtitle),
    ),
    Figure(
        "flatness",
        "How flat the attention of each is",
        "A temperature below 1 should skew it, with noise or without. Black bars: uniform attention.",
        lambda rows, view, title: ablation_flatness(view.findings, title=title, subtitle=view.subtitle),
    ),
)
