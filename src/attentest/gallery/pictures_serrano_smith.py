"""The figures of Serrano & Smith (2019): one weight removed, and many."""

from __future__ import annotations

from attentest.charts.catalogue import (
    djs_scatter,
    flip_tables,
    negative_gaps,
    removal_boxes,
    survival_curves,
)
from attentest.gallery.figure import Figure, Figures

SERRANO_SMITH: Figures = {
    "single-weight": (
        Figure(
            "djs",
            "The largest weight removed, or another",
            "Each dot a text: above zero, the output changes more without the item of the largest weight than"
            " without a random other one. A large weight does more wherever it lies (dashed), so what counts"
            " is the distance between the two lines.",
            lambda rows, view, title: djs_scatter(rows, title=title, subtitle=view.subtitle),
        ),
        Figure(
            "negative",
            "Where another item mattered more",
            "The texts below zero, by how much larger the largest weight was: attention is wrong where they"
            " lie far to the right.",
            lambda rows, view, title: negative_gaps(rows, title=title, subtitle=view.subtitle),
        ),
        Figure(
            "flips",
            "Which of the two flips the decision",
            "Blue: only the item on top of the ranking does; orange: only the random one. Where attention"
            " says what decides, blue outweighs orange, and its null.",
            lambda rows, view, title: flip_tables(view.findings, title=title, subtitle=view.subtitle),
        ),
    ),
    "removal": (
        Figure(
            "fraction",
            "How many items must go",
            "From the top of each ranking until the decision flips: the fewer, the better the ranking knows"
            " what decides. Orange: no ranking can do with less. With one logit, attention × gradient is"
            " nearly that by construction.",
            lambda rows, view, title: removal_boxes(
                rows, "fraction", published=view.published, title=title, subtitle=view.subtitle
            ),
        ),
        Figure(
            "mass",
            "How much attention goes with them",
            "The same in shares of all attention.",
            lambda rows, view, title: removal_boxes(
                rows, "mass", published=view.published, title=title, subtitle=view.subtitle
            ),
        ),
        Figure(
            "survival",
            "How many texts have not flipped yet",
            "All texts, also those that never flip: the sooner a curve falls, the better its ranking. At the"
            " very right everything is gone, and the bias alone decides.",
            lambda rows, view, title: survival_curves(
                rows, published=view.published, title=title, subtitle=view.subtitle
            ),
        ),
    ),
}
