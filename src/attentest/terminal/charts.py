"""Histograms for a terminal: columns of block signs, side by side on one scale."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from attentest.notebook import harmless

BLOCKS = " ▁▂▃▄▅▆▇█"
HEIGHT = 6  # lines
APART = "    "


def columns(shares: Sequence[float], top: float, height: int = HEIGHT) -> list[str]:
    """The shares as columns, from the highest line to the lowest; `top` fills the whole height.

    What is not nothing shows: a share too small for an eighth of a line gets one.
    """
    full = len(BLOCKS) - 1
    eighths = [max(round(height * full * share / top), 1) if share > 0 and top > 0 else 0 for share in shares]
    return [
        "".join(BLOCKS[min(max(eighth - full * line, 0), full)] for eighth in eighths)
        for line in reversed(range(height))
    ]


def paired_histograms(
    left: Sequence[float],
    right: Sequence[float],
    *,
    headings: tuple[str, str],
    notes: tuple[str, str],
    ends: tuple[str, str, str],
) -> RenderableType:
    """Two histograms over the same bins; `ends` are what the axis says at its ends and its middle."""
    top = max([*left, *right], default=0.0)
    width = len(left)
    axis = _axis(width, *ends)
    lines = [
        _pair(headings[0], headings[1], width, "bold"),
        *(
            _pair(a, b, width, "rgb(209,90,0)")
            for a, b in zip(columns(left, top), columns(right, top), strict=True)
        ),
        _pair("─" * width, "─" * width, width, "dim"),
        _pair(axis, axis, width, "dim"),
        _pair(notes[0], notes[1], width, "dim"),
    ]
    return Group(*lines)


def _pair(left: str, right: str, width: int, style: str) -> Text:
    text = Text("  ")
    text.append(harmless(left).ljust(width), style=style)
    text.append(APART)
    text.append(harmless(right).ljust(width), style="grey50" if style.startswith("rgb") else style)
    return text


def _axis(width: int, low: str, middle: str, high: str) -> str:
    half = (width - len(middle)) // 2
    return (low.ljust(half) + middle).ljust(width - len(high)) + high
