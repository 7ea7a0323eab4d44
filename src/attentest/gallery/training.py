"""How the models of a grid point were trained: what each epoch brought, seed by seed."""

from __future__ import annotations

import json
from typing import Any

from attentest.charts.training import Epoch
from attentest.compare.points import GridPoint
from attentest.compare.stored import StoredFinding


def epochs(point: GridPoint) -> list[Epoch]:
    """Every epoch of every seed that the store still tells of; none where it travelled without."""
    widest = max(point.findings, key=lambda finding: len(finding.cell.inputs))
    return [epoch for seed, key in _models(widest).items() for epoch in _history(point, seed, key)]


def _models(finding: StoredFinding) -> dict[int, str]:
    """The trained model of each seed, by its key."""
    cells = finding.stored.cells
    return {
        int(role.removeprefix("seed ")): cells[key].inputs["model"]
        for role, key in finding.cell.inputs.items()
        if key in cells and "model" in cells[key].inputs
    }


def _history(point: GridPoint, seed: int, key: str) -> list[Epoch]:
    store = point.findings[0].stored.store
    if not store.holds(key, "training.json"):
        return []
    told = json.loads(store.read(key, "training.json"))
    return [
        Epoch(seed=seed, epoch=one["epoch"], chosen=one["epoch"] == told.get("chosen"), numbers=_numbers(one))
        for one in told["history"]
        if "epoch" in one
    ]


def _numbers(epoch: dict[str, Any]) -> dict[str, float]:
    said = {"training loss": epoch.get("loss"), "dev accuracy": (epoch.get("dev") or {}).get("accuracy")}
    return {name: value for name, value in said.items() if isinstance(value, float)}
