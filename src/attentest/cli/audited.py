"""How `attentest audit` shows its result: the verdict, a sentence a criterion, and where the page is."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

STYLES: Final = {"supported": "green", "not supported": "red", "undecided": "yellow"}
WIDEST = 100  # columns: longer lines are hard to read
NOT_AGAIN: Final = ("as_json",)  # options that say nothing of what is measured


def show_audit(document: dict[str, Any], console: Console) -> None:
    """The headline, the criteria of each question, what a reader must know, and where the rest is."""
    console.width = min(console.width, WIDEST)
    said = document["headline"]
    console.print(Text(said["sentence"], style="bold"))
    console.print(Text(said["advice"]))
    for question, asks in document["questions"].items():
        console.print()
        console.print(Text(asks, style="bold"))
        console.print(_criteria([one for one in document["criteria"] if one["question"] == question]))
    console.print()
    for sentence in _about(document):
        console.print(Text(sentence, style="dim"))
    written = document["out"]
    console.print(Text(f"Written: {', '.join(written)}" if written else "--out audit.html writes the page."))


def _criteria(criteria: list[dict[str, Any]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=len("not applicable"))
    table.add_column()
    for one in criteria:
        verdict = Text(one["verdict"], style=STYLES.get(one["verdict"], "dim"))
        table.add_row(verdict, Text(one["plain"]))
    return table


def _about(document: dict[str, Any]) -> Iterator[str]:
    """What was audited and how far it reaches; notes on the data; how much was not measured."""
    yield f"{document['model']}: {document['attention']}"
    yield f"{document['texts']} of {document['of']} texts, budget {document['budget']}. {document['scope']}"
    yield from document["notes"]
    if document["chosen"]:
        yield document["chosen"]["sentence"]
    rates = {one["rates"] for one in document["criteria"] if one["error_rates"] is None and one["main"] == 0}
    yield from sorted(rates)
    left = len(document["left_out"])
    if left:
        were = "thing was" if left == 1 else "things were"
        yield f"{left} {were} not measured; the page and --json say why."


def command_again(context: typer.Context) -> str:
    """The command with the options that were given; files and folders by their own names."""
    words = ["attentest", str(context.info_name)]
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        if parameter.name in NOT_AGAIN or value in (None, [], (), parameter.default):
            continue
        option = max(parameter.opts, key=len) if parameter.param_type_name == "option" else ""
        for one in value if isinstance(value, list | tuple) else [value]:
            words += [option] if option else []
            words += [] if one is True else [_without_folder(one)]
    return shlex.join(words)


def _without_folder(value: Any) -> str:
    """A path by its last part: where a file lies is nobody's business."""
    written = str(value)
    local = isinstance(value, Path) or os.path.isabs(written) or os.path.exists(written)
    return os.path.basename(os.path.abspath(written)) if local else written
