"""The short demo on one screen: what the model looks at, another attention, and how good the tests are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from attentest.gallery.heatmaps import heaviest
from attentest.notebook import harmless, number
from attentest.terminal.tables import heat_map

Document = dict[str, Any]
NAMED = 3  # words whose weight is printed
WIDTH = 80


def show_first_look(document: Document, console: Console) -> None:
    """Three things, and the page with the rest."""
    look = document["first_look"]
    top = heaviest(look["weights"], look["other_weights"])
    right = "rightly" if look["predicted"] == look["label"] else f"but it is {look['label']}"
    good = (
        "" if look["accuracy"] is None else f" (right on {look['accuracy']:.0%} of {look['texts']} reviews)"
    )
    _line("1. What the model says, and where it looks", console, "bold")
    console.print(heat_map(look["tokens"], look["weights"], look["rationale"], top=top), width=WIDTH)
    _line(f"It says {look['predicted']}, {right}{good}.", console)
    _line(f"Most weight: {_most(look['tokens'], look['weights'])}.", console, "dim")
    _line("2. The same answer from a very different attention", console, "bold")
    console.print(heat_map(look["tokens"], look["other_weights"], look["rationale"], top=top), width=WIDTH)
    _line(f"Most weight: {_most(look['tokens'], look['other_weights'])}.", console, "dim")
    moved = f"The answer moves by at most {look['moves']:g}, attention by {number(look['jsd'])}"
    _line(f"{moved} of at most 0.693 (JSD).", console)
    _line("3. Could the tests have told? On models whose truth is known:", console, "bold")
    _line(f"{'':34}{'here':>6}{'null':>7}  the test's errors", console, "dim")
    for test in look["tests"]:
        estimate, null = number(test["estimate"]), number(test["null"])
        _line(f"{test['short'][:33]:34}{estimate:>6}{null:>7}  {test['power']}", console)
    _line(f"So: {look['says']}.", console)
    _where(document, console)


def _where(document: Document, console: Console) -> None:
    site = document["site"]
    said = f"Open {site['index']}" if site else f"No pages: {document['site_missing']}"
    _line(f"{said}   (longer: attentest demo --full)", console, "bold")


def _line(said: str, console: Console, style: str = "") -> None:
    console.print(
        Text(harmless(said), style=style), highlight=False, soft_wrap=len(said) <= WIDTH, width=WIDTH
    )


def _most(tokens: Sequence[str], weights: Sequence[float]) -> str:
    """The heaviest words with their weights: a heat map for whoever sees no colours."""
    places = sorted(range(len(weights)), key=lambda place: -weights[place])[:NAMED]
    return ", ".join(f"{tokens[place]} {weights[place]:.2f}" for place in places if weights[place] > 0)
