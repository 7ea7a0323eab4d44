"""Which figures a page shows of each experiment, and what to look for in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from attentest.figures.charts import (
    adversary_violins,
    epsilon_curve,
    jsd_histogram,
    permutation_violins,
    search_against_exact,
    tau_by_length,
    tau_differences,
    tau_histogram,
    to_svg,
)
from attentest.findings.density import finite
from attentest.refusal import Refusal
from attentest.report.points import GridPoint

COLOURED = 3  # classes: of more, the histograms would hide each other


@dataclass(frozen=True, kw_only=True)
class View:
    """What a figure must know of the grid point beside the rows."""

    tolerance: float
    opponent: str  # which adversary is drawn: the optimum, or where there is none the search
    subtitle: str
    by_class: dict[str, Any]


Draw = Callable[[pd.DataFrame, View, str], alt.LayerChart]


@dataclass(frozen=True)
class Figure:
    """One kind of figure: its file's name, its title, what it shows, and who draws it."""

    name: str
    title: str
    says: str
    draw: Draw


@dataclass(frozen=True)
class Picture:
    """A figure of a page: the file and what it shows, or why there is none."""

    figure: Figure
    file: str
    svg: str
    missing: str = ""


FIGURES: dict[str, tuple[Figure, ...]] = {
    "importance": (
        Figure(
            "tau-gradient",
            "Attention and gradients",
            "Rank agreement, text by text. Attention is a factor of the gradient, so even values at random"
            " places (dashed) agree with it: what counts is the distance between the two.",
            lambda rows, view, title: tau_histogram(
                rows, "gradient", title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
        Figure(
            "tau-loo",
            "Attention and leaving words out",
            "The same against the change of output when a word is left out.",
            lambda rows, view, title: tau_histogram(
                rows, "loo", title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
        Figure(
            "tau-length-gradient",
            "Gradients, by length of text",
            "Means by length: a correlation over few words is noisy, over many small.",
            lambda rows, view, title: tau_by_length(rows, "gradient", title=title, subtitle=view.subtitle),
        ),
        Figure(
            "tau-length-loo",
            "Leaving words out, by length of text",
            "The same for leave-one-out importance.",
            lambda rows, view, title: tau_by_length(rows, "loo", title=title, subtitle=view.subtitle),
        ),
        Figure(
            "tau-differences",
            "Do the two importances agree better with each other?",
            "Right of zero, gradients and leaving words out agree more with each other than one of them does"
            " with attention.",
            lambda rows, view, title: tau_differences(rows, title=title, subtitle=view.subtitle),
        ),
    ),
    "permutation": (
        Figure(
            "permutation",
            "Shuffled attention",
            "How far the output moves, by the largest weight. Peaked attention whose output stays at zero"
            " does not matter.",
            lambda rows, view, title: permutation_violins(
                rows, title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
    ),
    "adversary": (
        Figure(
            "jsd",
            "How far attention can move at the same output",
            "0 is the model's own attention, ln 2 = 0.69 one that shares no word with it. Dashed, where the"
            " optimum is known: the same with the weights on other words.",
            lambda rows, view, title: jsd_histogram(
                rows, view.opponent, view.tolerance, title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
        Figure(
            "epsilon",
            "As the output may move further",
            "The mean of the optimum over the tolerance, beside models that learnt nothing.",
            lambda rows, view, title: epsilon_curve(rows, title=title, subtitle=view.subtitle),
        ),
        Figure(
            "jsd-violins",
            "By the largest weight",
            "Peaked attention leaves most room to move; where it does not, the words it is on matter.",
            lambda rows, view, title: adversary_violins(
                rows, view.opponent, view.tolerance, title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
        Figure(
            "search",
            "What the published search finds",
            "Each dot a text; below the diagonal the search stopped short of the optimum.",
            lambda rows, view, title: search_against_exact(
                rows, view.tolerance, title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
    ),
}


def pictures(experiment: str, point: GridPoint, rows: pd.DataFrame, stem: str) -> Iterator[Picture]:
    """Every figure of the experiment, drawn; one whose rows lack what it shows says so."""
    view = _view(point, rows)
    for figure in FIGURES.get(experiment, ()):
        file = f"figures/{stem}-{figure.name}.svg"
        try:
            yield Picture(figure, file, to_svg(figure.draw(rows, view, figure.title)))
        except Refusal as refusal:
            yield Picture(figure, "", "", missing=str(refusal))


def _view(point: GridPoint, rows: pd.DataFrame) -> View:
    exact = f"exact@{point.tolerance:g}"
    optimum = exact not in rows or len(finite(rows[exact])) > 0
    labels = point.labels
    return View(
        tolerance=point.tolerance,
        opponent="exact" if optimum else "last",
        subtitle=f"{point.corpus}: {point.model}",
        by_class={"classes": labels, "pooled": labels is None or len(labels) > COLOURED},
    )
