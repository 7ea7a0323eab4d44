"""The figures of permutation."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.style import (
    trained,
)
from attentest.charts.violins import by_largest_weight


def permutation_violins(
    rows: pd.DataFrame,
    *,
    title: str = "",
    subtitle: str = "",
    classes: Sequence[str] | None = None,
    pooled: bool = False,
) -> alt.LayerChart:
    """How the output moves when attention is shuffled over the tokens, by largest weight (JW-4)."""
    x = alt.X(
        field="x",
        type="quantitative",
        title="median change of output over permutations of attention",
        scale=alt.Scale(domain=[-0.05, 1.05], nice=False),
    )
    why = "No text has a median change of output: a text of one token cannot be permuted."
    return by_largest_weight(trained(rows), "median_change", x, why, title, subtitle, classes, pooled)


FIGURES: tuple[Figure, ...] = (
    Figure(
        "permutation",
        "Shuffled attention",
        "How far the output moves, by the largest weight. Peaked attention whose output stays at zero"
        " does not matter.",
        lambda rows, view, title: permutation_violins(
            rows, title=title, subtitle=view.subtitle, **view.by_class
        ),
        redraws="JW-4: violins of the median output change by largest weight",
    ),
)
