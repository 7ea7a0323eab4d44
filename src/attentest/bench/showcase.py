"""The demo: a small study, and some texts with the attention they got, chosen to show something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from attentest.bench.corpora import stored_corpus
from attentest.bench.plan import Planner
from attentest.bench.study import Watcher
from attentest.bench.verbs import adapted, run_study
from attentest.store.cell import Cell
from attentest.store.store import Store
from attentest.store.tables import from_parquet
from attentest.studies.recipe import load_study

STUDIES = ("demo", "demo-retrained")
SHOWN = 2  # texts per model


def run_demo(
    store_url: str, *, seeds: int | None = None, device: str = "auto", watcher: Watcher | None = None
) -> dict[str, Any]:
    """Run the demo's studies and pick the texts to show."""
    results = [run_study(name, store_url, seeds=seeds, device=device, watcher=watcher) for name in STUDIES]
    store = Store(store_url)
    planner = Planner(store)
    texts = []
    for finding in planner.study(adapted(load_study(STUDIES[0]), None, seeds)):
        if finding.config["experiment"] == "permutation" and store.has(finding.key):
            observation = planner.cells[finding.inputs["seed 0"]]
            texts += _texts(finding, observation, store)
    return _together(results) | {"store": store_url, "texts": texts}


def _together(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One document of several studies: lists and numbers add up, the first one's names stand for all."""
    added = {
        name: sum((result[name] for result in results[1:]), start=results[0][name])
        for name, value in results[0].items()
        if isinstance(value, list | int | float)
    }
    return results[0] | added


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
