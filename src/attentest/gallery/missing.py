"""Why a cell of the overview is empty: it failed, its corpus is not here, or nobody has run it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attentest.claims.claims import AXES
from attentest.compare.absence import PRESENT
from attentest.store.cell import Cell
from attentest.store.store import Store


def failed(store: Store) -> list[dict[str, str]]:
    """Each grid point and experiment that was planned and could not be finished, with what went wrong."""
    errors = {key: str(about["error"]) for key, about in store.failures().items()}
    if not errors:
        return []
    planned = store.planned()
    return [
        {axis: str(cell.config[axis]) for axis in AXES}
        | {"experiment": str(cell.config["experiment"]), "error": error.splitlines()[0] if error else ""}
        for key, cell in planned.items()
        if cell.stage == "finding" and not store.has(key)
        for error in [next(_errors(key, planned, errors), None)]
        if error is not None
    ]


def absent(shelf: Mapping[str, str]) -> dict[str, str]:
    """The corpora that cannot be read here, and how they are to be had."""
    return {name: status for name, status in shelf.items() if status not in PRESENT}


def _errors(key: str, planned: Mapping[str, Cell], errors: Mapping[str, str]) -> Iterator[Any]:
    """What went wrong in the cell or in anything it is made from."""
    if key in errors:
        yield errors[key]
    cell = planned.get(key)
    for below in cell.inputs.values() if cell else ():
        yield from _errors(below, planned, errors)
