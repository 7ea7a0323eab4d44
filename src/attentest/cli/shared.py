"""What the commands have in common: the options that several take, and how a result is printed."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console


def _named(store: str) -> str:
    """A store must have a name: `--store $UNSET` would strew cells over the working directory."""
    if not store.strip():
        raise typer.BadParameter("an empty name; give a folder, as in --store results", param_hint="--store")
    return store


StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="ATTENTEST_STORE",
        callback=_named,
        help="Where results are kept: a folder or a URL.",
    ),
]
DataOption = Annotated[
    str | None, typer.Option("--data-dir", help="Where corpora are looked for (default $ATTENTEST_DATA).")
]
TextOption = Annotated[
    bool, typer.Option("--include-text", help="Let credentialed texts be written into the store.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
DeviceOption = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
DEFAULT_STORE = "attentest-store"


def print_document(
    document: dict[str, Any], as_json: bool, show: Callable[[dict[str, Any], Console], None]
) -> None:
    """The same result for a program or for a person."""
    if as_json:
        print(json.dumps(_each(document, _finite), allow_nan=False))
    else:
        show(_each(document, _harmless), Console(markup=False))
        warn_of_damage(document)


def warn_of_damage(document: dict[str, Any]) -> None:
    """Cells that a result does without because they are damaged, one a line, beside the result."""
    for damage in document.get("damaged", ()):
        said = f"damaged, and left out: cell {damage['cell'][:12]} ({damage['file']}: {damage['why']})"
        print(f"{said}; `attentest store heal` computes it again.", file=sys.stderr)


def open_page(path: str) -> None:
    """Show a page in a browser, where there is a person at a screen; else its path was printed."""
    import webbrowser

    screen = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    if screen and sys.stdout.isatty():
        webbrowser.open(Path(path).absolute().as_uri())


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """A document with every leaf, and every name, changed."""
    if isinstance(value, dict):
        return {change(key): _each(inner, change) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_each(inner, change) for inner in value]
    return change(value)


def _finite(leaf: Any) -> Any:
    """JSON has no NaN; a number that is not there is null."""
    return None if isinstance(leaf, float) and not math.isfinite(leaf) else leaf


def _harmless(leaf: Any) -> Any:
    """Labels, titles and paths are untrusted: a person sees nothing of theirs that steers a terminal."""
    from attentest.notebook import harmless

    return "\n".join(map(harmless, leaf.split("\n"))) if isinstance(leaf, str) else leaf
