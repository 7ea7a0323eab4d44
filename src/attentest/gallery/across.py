"""Figures over all models of a store, from their findings alone: what no page of one model can show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import altair as alt

from attentest.charts.context import ModelPoint, context_scatter
from attentest.compare.points import GridPoint
from attentest.gallery.pictures import Picture, picture
from attentest.studies.recipe import Study

Draw = Callable[[Sequence[GridPoint], str], alt.LayerChart]


@final
@dataclass(frozen=True)
class Across:
    """One kind of figure over models: the experiment it is drawn from, its words, and who draws it."""

    experiment: str
    name: str
    title: str
    says: str
    draw: Draw


def _context(points: Sequence[GridPoint], title: str) -> alt.LayerChart:
    return context_scatter([*map(_placed, points)], title=title, subtitle="every model of the store")


def _placed(point: GridPoint) -> ModelPoint:
    finding = point.of("dispersion")
    assert finding is not None
    spread, tau = (
        finding.row(measure, "overall") for measure in ("entropy-influence", "tau-inputs-gradient")
    )
    nan = float("nan")
    return ModelPoint(
        corpus=point.corpus,
        model=point.model,
        spread=spread["estimate"] if spread else nan,
        excess=tau["estimate"] - tau["null"] if tau else nan,
        low=tau["low"] - tau["null"] if tau else nan,
        high=tau["high"] - tau["null"] if tau else nan,
    )


ACROSS = (
    Across(
        "dispersion",
        "context",
        "Does context make tau unfair?",
        "To the right, hidden states are about more words; further up, attention agrees better with the"
        " gradients of words than in untrained models. If rank correlation were unfair to models with"
        " context, points would fall to the right.",
        _context,
    ),
)


def across(study: Study, points: Sequence[GridPoint]) -> Iterator[Picture]:
    """The figures of the experiments that the study runs, where any model has been asked."""
    run = {step.name for step in study.experiment}
    for figure in ACROSS:
        asked = [point for point in points if point.of(figure.experiment) is not None]
        if figure.experiment in run and asked:
            file = f"figures/across-{figure.name}.svg"
            yield picture(file, figure.title, figure.says, figure.draw(asked, figure.title))
