"""Heat maps and tables for a terminal. Text from corpora is untrusted: control signs are cut out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from attentest import notebook
from attentest.gallery.heatmaps import MANY, NOT_THERE, WARM, Strip, heaviest, known_weights, prominent
from attentest.notebook import harmless, number
from attentest.statistics.record import ONE_TRAINING, TEXTS


def _shade(weight: float, top: float) -> str:
    # The root keeps small weights visible; the scale ends at the text's own maximum, which is printed.
    if not math.isfinite(weight):
        return "black on grey70"
    share = math.sqrt(min(max(weight, 0.0) / top, 1.0)) if top > 0 else 0.0
    red, green, blue = (round(255 - share * (255 - channel)) for channel in WARM)
    return f"black on rgb({red},{green},{blue})"


def heat_map(
    tokens: Sequence[str],
    weights: Sequence[float],
    marked: Sequence[int] = (),
    *,
    most: int = MANY,
    top: float | None = None,
    shown: Sequence[int] | None = None,
) -> Text:
    """The tokens on a ground as warm as their weight; marked ones (a rationale) are underlined.

    Strips that are to be compared share their warmest weight `top` and the places `shown`; without them
    a text goes by its own. What has no weight is grey.
    """
    top = heaviest(weights) if top is None else top
    shown = prominent(weights, most=most) if shown is None else shown
    text = Text()
    previous = -1
    for place in shown:
        if place != previous + 1:
            text.append(" … ", style="dim")
        style = _shade(weights[place], top) + (" underline bold" if place in set(marked) else "")
        text.append(f" {harmless(tokens[place])} ", style=style)
        previous = place
    if shown and shown[-1] != len(tokens) - 1:
        text.append(" … ", style="dim")
    return text


def strip(
    title: str,
    note: str,
    tokens: Sequence[str],
    weights: Sequence[float],
    marked: Sequence[int] = (),
    query: Sequence[str] | None = None,
) -> RenderableType:
    """One example: what is said about it, its query, and its heat map."""
    lines: list[RenderableType] = [Text(harmless(title), style="bold"), Text(note, style="dim")]
    if query:
        lines.append(Text("asked: " + " ".join(map(harmless, query)), style="italic"))
    lines.append(heat_map(tokens, weights, marked))
    return Group(*lines)


def pair_terminal(
    tokens: Sequence[str],
    rows: Sequence[Strip],
    *,
    title: str = "",
    query: Sequence[str] | None = None,
    top: float | None = None,
    most: int = MANY,
) -> RenderableType:
    """Attentions over one text, one below the other: the words that are heavy in any of them."""
    known = known_weights(tokens, rows)
    top = heaviest(*known) if top is None else top
    shown = prominent(*known, most=most)
    lines = [Text(harmless(title), style="bold")] if title else []
    if query:
        lines.append(Text("asked: " + " ".join(map(harmless, query)), style="italic"))
    for strip in rows:
        lines.append(Text(", ".join([harmless(strip.name), *strip.told]), style="bold dim"))
        lines.append(
            Text(NOT_THERE, style="dim")
            if strip.weights is None
            else heat_map(tokens, strip.weights, top=top, shown=shown)
        )
    lines.append(Text(f"maximum weight: {top:.4g}", style="dim"))
    return Group(*lines)


def findings_table(findings: pd.DataFrame, title: str) -> RenderableType:
    """Estimate, interval, null, n and what was left out: a finding is never printed without them.

    One block a model, so that everything fits a terminal of eighty columns.
    """
    blocks: list[RenderableType] = [Text(harmless(title), style="bold")]
    for (corpus, model), rows in findings.groupby(["corpus", _model(findings)], sort=False):
        table = Table(header_style="dim", box=None, pad_edge=False)
        table.add_column("", min_width=24)
        for heading, width in (("estimate", 8), ("95 % interval", 16), ("null", 6), ("n", 6), ("seeds", 5)):
            table.add_column(heading, justify="right", no_wrap=True, min_width=width)
        blocks += [Text(), Text(harmless(f"{corpus}: {model}"), style="bold"), table]
        for row in rows.to_dict("records"):
            group = "" if row["group"] == "overall" else f", {row['group']}"
            table.add_row(
                "  " + harmless(row["measure"].replace("-", " ") + group),
                number(row["estimate"]),
                f"{number(row['low'])} .. {number(row['high'])}",
                number(row["null"]),
                str(row["n"]),
                str(row["seeds"]),
            )
            if row["excluded"]:
                left_out = f"    {row['excluded']} texts left out ({row['why']})"
                blocks.append(Text(harmless(left_out), style="dim"))
        if (rows["interval"] == TEXTS).any():
            blocks.append(Text(f"  95 % intervals {ONE_TRAINING}", style="dim"))
    return Group(*blocks)


def _model(findings: pd.DataFrame) -> pd.Series:
    """A grid point in words; softmax goes without saying, and so do vectors that no two models differ in."""
    projection = findings["projection"].map(lambda name: "" if name == "softmax" else f" + {name}")
    model = (findings["encoder"] + " + " + findings["attention"] + projection).rename("model")
    if not notebook.vectors_vary(_records(findings)):
        return model
    made = zip(findings["vectors"], findings["embedding"], strict=True)
    said = [f", {notebook.word_vectors(vectors, width)}" for vectors, width in made]
    return (model + pd.Series(said, index=findings.index)).rename("model")


def _records(findings: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in findings.to_dict("records")]


def plain_table(headings: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> Table:
    """Rows under headings."""
    table = Table(
        title=title or None, title_justify="left", header_style="bold", box=None, padding=(0, 2, 0, 0)
    )
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(harmless(str(value)) for value in row))
    return table
