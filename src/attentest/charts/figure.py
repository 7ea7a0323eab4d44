"""One kind of figure on the pages, and what it is drawn from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import altair as alt
import pandas as pd


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """What a figure must know of the grid point beside the rows."""

    tolerance: float
    opponent: str  # which adversary is drawn: the optimum, or where there is none the search
    subtitle: str
    by_class: dict[str, Any]
    findings: pd.DataFrame  # what was concluded from the rows
    published: bool  # whether that was done with the published code's errors


Draw = Callable[[pd.DataFrame, View, str], alt.LayerChart]


@final
@dataclass(frozen=True)
class Figure:
    """One kind of figure: its file's name, its title, what it shows, who draws it, and what it redraws."""

    name: str
    title: str
    says: str
    draw: Draw
    redraws: str = ""  # the published figure; empty where the figure is ours alone


Figures = Mapping[str, tuple[Figure, ...]]  # of each experiment
