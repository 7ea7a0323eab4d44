"""The rows behind a finding, of all its seeds."""

from __future__ import annotations

import pandas as pd

from attentest.store.cell import Cell
from attentest.store.store import Store
from attentest.store.tables import from_parquet

ROWS = "rows.parquet"
BY_SEED = (
    "by_seed.parquet"  # of an imported finding, whose rows are elsewhere: measure, group, seed, estimate
)


def observed(finding: Cell, store: Store) -> pd.DataFrame:
    """What the observations of a finding saw, one after the other, with the column `seed`."""
    rows = [
        from_parquet(store.read(key, ROWS)).assign(seed=seed) for seed, key in finding.observations.items()
    ]
    return pd.concat(rows, ignore_index=True)


def can_be_observed(finding: Cell, store: Store) -> bool:
    """Whether the rows of every seed are here: a store may travel with its findings alone."""
    return bool(finding.inputs) and all(store.holds(key, ROWS) for key in finding.inputs.values())
