"""What can be said from the store alone: no torch, no model, the same findings to the bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from attentest.findings.claims import AXES
from attentest.findings.conclusions import CONCLUSIONS
from attentest.findings.record import to_frame
from attentest.store.cell import Cell
from attentest.store.observed import observed
from attentest.store.store import Store
from attentest.store.tables import from_parquet, to_parquet


def conclude(cell: Cell, store: Store) -> pd.DataFrame:
    """The findings of a finding cell, from the rows of its observations, one per seed."""
    conclude_rows = CONCLUSIONS[cell.config["experiment"]].conclude
    rows = observed(cell, store)
    return to_frame(conclude_rows(rows, mode=cell.config["mode"], rng=generator(cell.key)))


def generator(key: str) -> np.random.Generator:
    """The randomness of a cell: from its key, so that doing it again draws the same."""
    return np.random.default_rng(int(key[:32], 16))


def findings_of(cells: Sequence[Cell], store: Store) -> pd.DataFrame:
    """The findings of some cells in one table, with the grid point each is about."""
    tables = []
    for cell in cells:
        if store.has(cell.key):
            about = {name: cell.config[name] for name in AXES} | varied(cell.config)
            table = from_parquet(store.read(cell.key, "findings.parquet"))
            tables.append(table.assign(**about, cell=cell.key)[[*about, *table.columns, "cell"]])
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def varied(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a finding's models that a grid may vary beside its axes."""
    return {name: config["model"].get(name) for name in ("vectors", "embedding")}


def conclude_all(store_url: str) -> dict[str, Any]:
    """Compute every finding again from the stored rows and say whether it is what is stored.

    Findings that were planned but never written are written, where their observations are there.
    """
    store = Store(store_url).existing()
    planned = {*store.done(), *store.plans()}
    findings = [cell for key in sorted(planned) if (cell := store.cell(key)).stage == "finding"]
    same, changed, written, waiting = [], [], [], []
    for cell in findings:
        if not all(store.is_whole(key) for key in cell.inputs.values()):
            waiting.append(cell.key)
            continue
        content = to_parquet(conclude(cell, store))
        if not store.is_whole(cell.key):
            store.write(cell, {"findings.parquet": content}, {})
            written.append(cell.key)
        elif content == store.read(cell.key, "findings.parquet"):
            same.append(cell.key)
        else:
            changed.append(cell.key)
    table = findings_of([cell for cell in findings if store.has(cell.key)], store)
    return {
        "same": len(same),
        "changed": changed,
        "written": written,
        "waiting": waiting,
        "findings": table.to_dict("records"),
    }


def list_cells(store_url: str) -> dict[str, Any]:
    """Every cell of the store, and what failed."""
    store = Store(store_url).existing()
    cells = []
    for key in store.done():
        about = store.about(key)
        fields = ("stage", "config", "written", "seconds")
        cells.append({"cell": key, **{name: about.get(name) for name in fields}})
    failures = [{"cell": key, "error": said["error"]} for key, said in store.failures().items()]
    planned = [key for key in store.plans() if not store.has(key)]
    return {"store": store.url, "cells": cells, "failed": failures, "planned": planned}
