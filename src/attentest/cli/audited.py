"""How `attentest audit` shows its result: the verdict, a sentence a criterion, and where the page is."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

STYLES: Final = {"supported": "green", "not supported": "red", "undecided": "yellow"}
WIDEST = 100  # columns: longer lines are hard to read
POSITIONAL: Final = ("model",)
NOT_AGAIN: Final = ("as_json",)  # what says nothing of what is measured


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
        asked = f"{one['asks']} " if one["main"] is None else ""  # a reason alone does not say what it is of
        table.add_row(verdict, Text(asked + one["plain"]))
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


def command_again(command: Callable[..., None], asked: Mapping[str, Any]) -> str:
    """The command with the arguments that are not its defaults; files and folders by their own names."""
    words = ["attentest", command.__name__]
    for name, parameter in signature(command).parameters.items():
        value = asked[name]
        if name in NOT_AGAIN or value in (None, [], parameter.default):
            continue
        for one in value if isinstance(value, list) else [value]:
            words += [] if name in POSITIONAL else [f"--{name.replace('_', '-')}"]
            words += [] if one is True else [_without_folder(one)]
    return shlex.join(words)


def _without_folder(value: Any) -> str:
    """A path by its last part: where a file lies is nobody's business."""
    written = str(value)
    local = isinstance(value, Path) or os.path.isabs(written) or os.path.exists(written)
    return os.path.basename(os.path.abspath(written)) if local else written
