"""The figures of Wen et al. (2022): information by rank, and what becomes of its order."""

from __future__ import annotations

from attentest.charts.catalogue import (
    ablation_flatness,
    ablation_losses,
    ablation_scores,
    ablation_taus,
    information_curves,
    information_orders,
    sensitivity_taus,
)
from attentest.gallery.figure import Figure, Figures

WEN: Figures = {
    "information": (
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
    ),
    "information-ablation": (
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
    ),
    "information-sensitivity": (
        Figure(
            "taus",
            "Agreement, measured otherwise",
            "One change at a time of what the paper leaves open. Where dots scatter more than intervals, the"
            " choice decides. Black bars: orders that are luck.",
            lambda rows, view, title: sensitivity_taus(view.findings, title=title, subtitle=view.subtitle),
        ),
    ),
}
