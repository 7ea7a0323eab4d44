"""The figures of dispersion of influence."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from attentest.charts.figure import Figure
from attentest.charts.lanes import Lane, drawn_lanes
from attentest.charts.style import (
    PALETTE,
    require,
    trained,
)
from attentest.evidence.importances.names import IN_WORDS
from attentest.experiments.importance.conclude import NULLS

TARGETS = {"inputs": "words", "hidden": "hidden states"}


def inputs_and_states(
    rows: pd.DataFrame, importance: str = "gradient", *, title: str = "", subtitle: str = ""
) -> alt.LayerChart:
    """Whether attention ranks words or hidden states, over all tokens and over those with weight (ME-4)."""
    columns = {
        (target, where): f"tau_{target}_{importance}{where}"
        for where in ("", "_support")
        for target in TARGETS
    }
    require(rows, "subject", *columns.values())
    texts = trained(rows)
    lanes = [
        Lane(
            f"{TARGETS[target]}{', where attention has weight' if where else ''}",
            texts[column] if len(texts) else pd.Series(dtype=float),
            _null(texts, target, importance, where),
            PALETTE[list(TARGETS).index(target)],
        )
        for (target, where), column in columns.items()
    ]
    axis = f"Kendall's τ-b of attention and {IN_WORDS[importance]}"
    return drawn_lanes(
        lanes, texts, axis, (-1.0, 1.0), "weights that do not match the words", title, subtitle
    )


def _null(texts: pd.DataFrame, target: str, importance: str, where: str) -> pd.Series | None:
    """The larger of the two nulls; rows of the first edition have one; the gradient of words has none."""
    named = f"{target}_{importance}{where}"
    known = [texts[f"{null}_tau_{named}"] for null in NULLS if f"{null}_tau_{named}" in texts]
    if known:
        return max(known, key=lambda null: np.nan_to_num(null.mean(), nan=-2.0))
    column = f"null_tau_{importance}{where}"
    return None if (target, importance) == ("inputs", "gradient") or column not in texts else texts[column]


FIGURES: tuple[Figure, ...] = (
    Figure(
        "gradient",
        "Words or hidden states, by gradients",
        "How well attention ranks what gradients find important, text by text: words above, hidden states"
        " below. A state's gradient carries its weight as a factor; diamonds show what that alone does.",
        lambda rows, view, title: inputs_and_states(rows, title=title, subtitle=view.subtitle),
        redraws="ME-4, Figure 1: inputs and hidden states by gradients",
    ),
    Figure(
        "loo",
        "Words or hidden states, by leaving out",
        "The same where a word is left out of the text, or a state out of the sum.",
        lambda rows, view, title: inputs_and_states(rows, "loo", title=title, subtitle=view.subtitle),
        redraws="ME-4, Figure 4: inputs and hidden states by leaving out",
    ),
)
