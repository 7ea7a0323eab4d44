"""What `attentest store` says of a store's health, in a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console

Document = dict[str, Any]


def show_check(document: Document, console: Console) -> None:
    """How much was looked at, and what is not here; whatever is damaged is said beside it."""
    damaged, bytes_ = len(document["damaged"]), document["bytes"] / 1e6
    _say(f"{document['cells']} cells of {bytes_:,.1f} MB looked at, {damaged} of them damaged.", console)
    for entry in document["lacking"]:
        _say(f"not here: {', '.join(entry['files'])} of cell {entry['cell'][:12]}", console)
    if document["without_weights"]:
        _say(f"{document['without_weights']} models travelled without their weights.", console)
    for name, what in (("set_aside", "set aside"), ("plans", "a plan that cannot be read")):
        for key in document[name]:
            _say(f"{what}: {key[:12]}", console)


def show_healing(document: Document, console: Console) -> None:
    """What was computed again, and what could not be."""
    found = len(document["damaged"])
    _say(f"{found} damaged cells set aside, {document['computed']} cells computed.", console)
    for failure in document["failed"]:
        _say(f"failed: {failure['cell'][:12]} {failure['error']}", console)
    for key in document["unknown"]:
        _say(f"known by its key alone; the study that needs it computes it: {key[:12]}", console)


def show_pruning(document: Document, console: Console) -> None:
    """Each kind with its names and sizes."""
    kinds = {
        "partial": "unfinished work that nothing goes on with",
        "damaged": "damaged, and computed again since",
        "superseded": "made again by a newer version",
    }
    for kind, says in kinds.items():
        for name, size in document[kind].items():
            _say(f"{says}: {name} ({size / 1e6:.2f} MB)", console)
    megabytes = f"{document['bytes'] / 1e6:,.1f} MB"
    _say(f"{megabytes} removed." if document["removed"] else f"{megabytes}; --yes removes them.", console)


def show_packing(document: Document, console: Console) -> None:
    """Where it is and how large."""
    _say(f"{document['cells']} cells in {document['file']}, {document['bytes'] / 1e6:.2f} MB.", console)


def _say(said: str, console: Console) -> None:
    console.print(said, markup=False, highlight=False, soft_wrap=True)
