"""Heat maps and tables for a terminal. Text from corpora is untrusted: control signs are cut out."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

WARM = (209, 90, 0)  # the papers' orange, at weight one
MANY = 60  # tokens shown of a long text; the heaviest are always among them


def harmless(token: str) -> str:
    """The token without anything that could steer a terminal: no controls, no direction marks."""
    return "".join(
        sign if unicodedata.category(sign)[0] != "C" else "\N{REPLACEMENT CHARACTER}" for sign in token
    )


def _shade(weight: float, heaviest: float) -> str:
    # The root keeps small weights visible; the scale ends at the text's own maximum, which is printed.
    share = math.sqrt(max(weight, 0.0) / heaviest) if heaviest > 0 else 0.0
    red, green, blue = (round(255 - share * (255 - channel)) for channel in WARM)
    return f"black on rgb({red},{green},{blue})"


def heat_map(
    tokens: Sequence[str], weights: Sequence[float], marked: Sequence[int] = (), *, most: int = MANY
) -> Text:
    """The tokens on a ground as warm as their weight; marked ones (a rationale) are underlined."""
    heaviest = max(weights, default=0.0)
    shown = sorted(sorted(range(len(tokens)), key=lambda place: -weights[place])[:most])
    text = Text()
    previous = -1
    for place in shown:
        if place != previous + 1:
            text.append(" … ", style="dim")
        style = _shade(weights[place], heaviest) + (" underline bold" if place in set(marked) else "")
        text.append(f" {harmless(tokens[place])} ", style=style)
        previous = place
    if shown and shown[-1] != len(tokens) - 1:
        text.append(" … ", style="dim")
    return text


def strip(
    title: str,
    tokens: Sequence[str],
    weights: Sequence[float],
    marked: Sequence[int] = (),
    query: Sequence[str] | None = None,
) -> RenderableType:
    """One example: what is said about it, its query, and its heat map."""
    lines: list[RenderableType] = [Text(title, style="bold")]
    if query:
        lines.append(Text("asked: " + " ".join(map(harmless, query)), style="italic"))
    lines.append(heat_map(tokens, weights, marked))
    return Group(*lines)


def number(value: float) -> str:
    """Three decimals, or a dash where there is no number."""
    return "–" if value is None or math.isnan(value) else f"{value:.3f}"


def findings_table(findings: pd.DataFrame, title: str) -> Table:
    """Estimate, interval, null, n and what was left out: a finding is never printed without them."""
    table = Table(title=title, title_justify="left", header_style="bold")
    for heading in ("corpus", "model", "measure", "group"):
        table.add_column(heading, overflow="fold")
    for heading in ("estimate", "95 % interval", "null", "n", "seeds", "left out"):
        table.add_column(heading, justify="right")
    for row in findings.to_dict("records"):
        model = f"{row['encoder']} + {row['attention']}"
        if row["projection"] != "softmax":
            model += f" + {row['projection']}"
        table.add_row(
            row["corpus"],
            model,
            row["measure"],
            harmless(row["group"]),
            number(row["estimate"]),
            f"{number(row['low'])} .. {number(row['high'])}",
            number(row["null"]),
            str(row["n"]),
            str(row["seeds"]),
            f"{row['excluded']} ({row['why']})" if row["excluded"] else "0",
        )
    return table


def plain_table(headings: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> Table:
    """Rows under headings."""
    table = Table(title=title or None, title_justify="left", header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(harmless(str(value)) for value in row))
    return table
