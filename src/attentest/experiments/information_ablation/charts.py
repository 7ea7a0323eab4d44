"""The figures of information by rank, trained otherwise."""

from __future__ import annotations

from attentest.charts.figure import Figure
from attentest.charts.information import ablation_flatness, ablation_losses, ablation_scores, ablation_taus

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
