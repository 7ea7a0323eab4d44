"""What `study --plan` says of each cell: its corpus, model and experiment, and how long it will take."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from attentest.store.cell import Cell
from attentest.store.store import Store

Kind = tuple[object, ...]
SETTINGS = {"encoder": "bilstm", "attention": "additive", "projection": "softmax"}  # as ModelConfig has them


def planned(missing: Mapping[str, Cell], store: Store) -> Iterator[dict[str, Any]]:
    """Each missing cell in words, and which missing ones it `needs` first.

    `seconds` is the mean of done cells of its kind, or NaN.
    """
    known = {key: store.cell(key) for key in store.done()}
    cells = {**known, **missing}
    spent = _spent(known, cells, store)
    for key, cell in missing.items():
        yield {
            "cell": key,
            "stage": cell.stage,
            **_about(cell, cells),
            "needs": sorted(each for each in cell.inputs.values() if each in missing),
            "seconds": next((spent[kind] for kind in _kinds(cell, cells) if kind in spent), math.nan),
        }


def _about(cell: Cell, cells: Mapping[str, Cell]) -> dict[str, Any]:
    """Corpus, model, seed and experiment, as far as the cell has them; else None."""
    model = _model(cell, cells)
    corpus = cell.config.get("corpus") or cell.where.get("corpus")
    if cell.stage == "corpus":
        corpus = cell.config["name"]
    settings = None if model is None else {**SETTINGS, **model}
    return {
        "corpus": corpus or _corpus(cell, cells),
        "model": None if settings is None else " + ".join(_named(settings)),
        "variant": "" if settings is None else _variant(settings),
        "seed": None if settings is None or cell.stage == "finding" else int(settings.get("seed", 0)),
        "experiment": cell.config.get("experiment"),
    }


def _named(settings: Mapping[str, Any]) -> list[str]:
    axes = [str(settings[axis]) for axis in SETTINGS]
    return axes if axes[-1] != "softmax" else axes[:-1]


def _variant(settings: Mapping[str, Any]) -> str:
    """What sets a sibling apart from the model itself, where that is a matter of its training."""
    if settings.get("epochs") == 0:
        return "untrained"
    if settings.get("labels", "gold") != "gold":
        return "shuffled labels"
    loss = str(settings.get("loss", "task"))
    return "" if loss == "task" else loss.partition("(")[0]


def _model(cell: Cell, cells: Mapping[str, Cell]) -> Mapping[str, Any] | None:
    if cell.stage == "model":
        return cell.config
    if cell.stage == "finding":
        return {axis: cell.config[axis] for axis in SETTINGS}
    below = cells.get(cell.inputs.get("model", ""))
    return None if below is None else below.config


def _corpus(cell: Cell, cells: Mapping[str, Cell]) -> str | None:
    below = cells.get(cell.inputs.get("corpus", ""))
    return None if below is None else str(below.config.get("name"))


def _spent(known: Mapping[str, Cell], cells: Mapping[str, Cell], store: Store) -> dict[Kind, float]:
    """The mean time of the done cells of every kind."""
    times: dict[Kind, list[float]] = defaultdict(list)
    for key, cell in known.items():
        seconds = store.about(key).get("seconds")
        if seconds is not None:
            for kind in _kinds(cell, cells):
                times[kind].append(float(seconds))
    return {kind: math.fsum(some) / len(some) for kind, some in times.items()}


def _kinds(cell: Cell, cells: Mapping[str, Cell]) -> list[Kind]:
    """What is alike: the same work on the same corpus first, then on any."""
    about = _about(cell, cells)
    same = (cell.stage, about["experiment"], about["model"], about["variant"] == "untrained")
    return [(*same, about["corpus"]), same]
