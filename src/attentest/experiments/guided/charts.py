"""The figures of guided by others' weights."""

from __future__ import annotations

import altair as alt
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.points import points
from attentest.experiments.guided.conclude import GUIDED_BY

GUIDES = {
    "uniform": "by uniform weights",
    "own": "by weights of its own",
    "base": "by the base model's weights",
    "adversary": "by a trained adversary's weights",
    "untrained": "by an untrained model's weights",
    "shuffled labels": "by weights learnt from shuffled labels",
}


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


FIGURES: tuple[Figure, ...] = (
    Figure(
        "scores",
        "An MLP under others' weights",
        "A model that sees one token at a time, its words weighed by each guide in turn. Black bars: the"
        " best answer that never looks at the text.",
        lambda rows, view, title: guide_scores(view.findings, title=title, subtitle=view.subtitle),
    ),
    Figure(
        "gains",
        "What each guide is worth",
        "Right of zero, its weights say more about the words than uniform ones. Black bars: the weights"
        " of an untrained model.",
        lambda rows, view, title: guide_gains(view.findings, title=title, subtitle=view.subtitle),
    ),
)
