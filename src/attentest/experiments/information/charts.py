"""The figures of information by rank."""

from __future__ import annotations

from attentest.charts.figure import Figure
from attentest.charts.information import information_curves, information_orders

FIGURES: tuple[Figure, ...] = (
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
)
