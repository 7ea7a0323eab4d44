"""The demo: a small study of readable reviews, or the three of the long one, with some of their texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from attentest.bench.corpora import stored_corpus
from attentest.bench.plan import Planner
from attentest.bench.study import Watcher, run_cells
from attentest.bench.verbs import adapted, remember_study, told
from attentest.bench.work import best_device
from attentest.store.cell import Cell
from attentest.store.checking import without_damaged
from attentest.store.store import Store
from attentest.store.tables import from_parquet
from attentest.studies.recipe import load_study

SHORT = ("demo-reviews",)
STUDIES = ("demo", "demo-retrained", "demo-sparse")  # of the long demo
SHOWN = 2  # texts per model


def run_demo(
    store_url: str,
    *,
    full: bool = False,
    seeds: int | None = None,
    device: str = "auto",
    watcher: Watcher | None = None,
) -> dict[str, Any]:
    """Run the demo's studies in one go and pick the texts to show; they stay in the store's memory."""
    here, names = best_device(device), STUDIES if full else SHORT

    def demo(store: Store) -> dict[str, Any]:
        return _demo(store, names, seeds, here, watcher)

    return without_damaged(Store(store_url), demo, at_once=True)


def _demo(
    store: Store, names: Sequence[str], seeds: int | None, device: str, watcher: Watcher | None
) -> dict[str, Any]:
    planner = Planner(store, device=device)
    studies = [adapted(load_study(name), None, seeds) for name in names]
    asked = [(study, planner.study(study)) for study in studies]
    for name in names:
        remember_study(store, name)
    outcome = run_cells(
        [cell for _, cells in asked for cell in cells],
        planner,
        engine="local",
        watcher=watcher,
    )
    texts = []
    for finding in asked[0][1]:
        if finding.config["experiment"] == "permutation" and store.has(finding.key):
            observation = planner.cells[finding.observations[0]]
            texts += _texts(finding, observation, store)
    about = {
        "study": studies[0].study,
        "title": studies[0].title,
        "device": planner.device,
        "cells": len(planner.cells),
        "skipped": [],
    }
    return about | told(asked, planner, outcome) | {"store": store.url, "texts": texts}


def _texts(finding: Cell, observation: Cell, store: Store) -> list[dict[str, Any]]:
    """The texts whose output permutation moves most, and least, among those the model gets right."""
    corpus, _ = stored_corpus(store, observation.inputs["corpus"])
    readings = from_parquet(store.read(observation.inputs["reading"], "readings.parquet")).set_index("id")
    rows = from_parquet(store.read(observation.key, "rows.parquet"))
    trained = rows[(rows["subject"] == "trained") & (rows["label"] == rows["predicted"])]
    ranked = trained.sort_values(["median_change", "id"], ascending=[False, True])
    chosen = pd.concat([ranked.head(SHOWN // 2), ranked.dropna().tail(SHOWN - SHOWN // 2)])
    examples = {example.id: example for example in corpus.test}
    return [
        {
            "corpus": finding.config["corpus"],
            "encoder": finding.config["encoder"],
            "attention": finding.config["attention"],
            "id": row["id"],
            "label": row["label"],
            "predicted": row["predicted"],
            "median_change": row["median_change"],
            "tokens": list(examples[row["id"]].tokens),
            "query": list(examples[row["id"]].query or ()),
            "rationale": list(examples[row["id"]].rationale or ()),
            "weights": np.asarray(readings.loc[row["id"], "weights"]).astype(float).round(6).tolist(),
        }
        for row in chosen.to_dict("records")
    ]
