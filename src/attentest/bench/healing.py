"""Healing a store: what is damaged is set aside and computed again, from its own description or plan."""

from __future__ import annotations

from typing import Any

from attentest.bench.engines import started
from attentest.bench.plan import Planner
from attentest.bench.study import Watcher, run_cells
from attentest.store.about import Damage
from attentest.store.checking import damages, lacking_rows, named, without_damaged
from attentest.store.store import GONE, Store


def heal(
    store_url: str,
    *,
    lacking: bool = False,
    engine: str = "local",
    device: str = "auto",
    watcher: Watcher | None = None,
) -> dict[str, Any]:
    """Look at every file, set damaged cells aside, and compute them again; with `lacking` also
    those that lack more than the weights of a model.

    Neither a cell without a readable description nor its plan can be known by its key alone: the study that
    needs it plans it, and computes it.
    """

    def healed(store: Store) -> dict[str, Any]:
        for damage in damages(store):
            store.leave_out(damage, at_once=True)
        for entry in lacking_rows(store) if lacking else ():
            store.leave_out(Damage(entry["cell"], entry["files"][0], GONE), at_once=True)
        known, aside = store.planned(), store.set_aside()
        targets = [known[key] for key in sorted(aside & known.keys())]
        outcome = run_cells(targets, Planner(store, device=here), engine=ready, watcher=watcher)
        return {
            "store": store.url,
            "damaged": named(store),
            "computed": outcome.done,
            "failed": [{"cell": key, "error": error} for key, error in outcome.failed.items()],
            "unknown": sorted(aside - known.keys()),
        }

    store = Store(store_url).existing()
    with started(engine, store, device) as (ready, here):
        return without_damaged(store, healed, at_once=True)
