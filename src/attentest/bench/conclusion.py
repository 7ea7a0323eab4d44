"""What can be said from the store alone: no torch, no model, the same findings to the bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from attentest.claims.claims import AXES
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.experiments.removed_measures import current
from attentest.statistics.record import to_frame
from attentest.store.cell import Cell
from attentest.store.checking import named, without_damaged
from attentest.store.observed import observed
from attentest.store.provenance import Provenance
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
            table = current(from_parquet(store.read(cell.key, "findings.parquet")))
            tables.append(table.assign(**about, cell=cell.key)[[*about, *table.columns, "cell"]])
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def varied(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a finding's models that a grid may vary beside its axes."""
    return {name: config["model"].get(name) for name in ("vectors", "embedding")}


def conclude_all(store_url: str) -> dict[str, Any]:
    """Compute every finding again from the stored rows and say whether it is what is stored.

    Findings that were planned but never written are written, where their observations are there; but not
    where the models of some seeds were trained on another device than the others.
    """
    return without_damaged(Store(store_url).existing(), _conclude_all)


def _conclude_all(store: Store) -> dict[str, Any]:
    told = store.descriptions()
    planned = {**store.planned(), **{key: Cell.from_json(about) for key, about in told.items()}}
    findings = [cell for _, cell in sorted(planned.items()) if cell.stage == "finding"]
    provenance = Provenance.of(store)
    concluded: dict[str, list[str]] = {
        name: [] for name in ("same", "changed", "written", "waiting", "mixed")
    }
    for cell in findings:
        concluded[_concluded(cell, store, provenance)].append(cell.key)
    table = findings_of([cell for cell in findings if store.has(cell.key)], store)
    labels = {cell.key: label for cell in findings if (label := provenance.label(cell.key))}
    return {
        **concluded,
        "same": len(concluded["same"]),
        "labels": labels,
        "damaged": named(store),
        "findings": table.to_dict("records"),
    }


def _concluded(cell: Cell, store: Store, provenance: Provenance) -> str:
    """What became of one finding that was concluded again."""
    if not all(store.is_whole(key) for key in cell.inputs.values()):
        return "waiting"
    if not store.is_whole(cell.key) and provenance.is_mixed(cell):
        return "mixed"
    again = conclude(cell, store)
    if not store.is_whole(cell.key):
        store.write(cell, {"findings.parquet": to_parquet(again)}, {})
        return "written"
    stored = store.read(cell.key, "findings.parquet")
    same = stored == to_parquet(again) or current(from_parquet(stored)).equals(again)
    return "same" if same else "changed"


def list_cells(store_url: str) -> dict[str, Any]:
    """Every cell of the store, with where its models were trained, and what failed."""
    store = Store(store_url).existing()
    told = store.descriptions()
    provenance = Provenance(told.get)
    fields = ("stage", "config", "written", "seconds", "device")
    cells = [
        {
            "cell": key,
            **{name: about.get(name) for name in fields},
            "trained_on": provenance.trained_on(key),
            "label": provenance.label(key),
        }
        for key, about in told.items()
    ]
    failures = [{"cell": key, "error": said["error"]} for key, said in store.failures().items()]
    planned = [key for key in store.plans() if key not in told]
    return {
        "store": store.url,
        "cells": cells,
        "failed": failures,
        "planned": planned,
        "damaged": named(store),
    }
