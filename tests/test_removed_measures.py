"""Measures that were removed: their names stay reserved, and stored findings are read without them."""

import shutil
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from attentest.bench.conclusion import conclude_all, findings_of
from attentest.compare.stored import Stored
from attentest.experiments.cards import CARDS, card
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.experiments.removed_measures import REMOVED, current
from attentest.gallery.export import export_findings
from attentest.statistics.record import to_frame
from attentest.store.cell import Cell
from attentest.store.importing import import_findings, is_findings
from attentest.store.store import Store
from attentest.store.tables import from_parquet, to_parquet
from tests import pinned_store

RESULTS = Path(__file__).parents[1] / "results"
FILES = [path for path in sorted(RESULTS.rglob("*.parquet")) if is_findings(path.read_bytes())]


def test_names_of_removed_measures_stay_reserved():
    assert not REMOVED & set(CARDS)
    assert {name.partition("/")[0] for name in REMOVED} <= set(CONCLUSIONS)


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_a_finding_of_an_earlier_version_has_a_card_or_was_removed(file):
    stored = pq.read_table(file, columns=["experiment", "measure"]).to_pandas()
    left = current(stored)
    assert len(left)
    for experiment, measure in left[["experiment", "measure"]].drop_duplicates().itertuples(index=False):
        assert card(experiment, measure)


@pytest.fixture
def earlier(tmp_path):
    """A store with a finding cell of an earlier version, which has a measure that was removed since.

    It holds no other finding: to conclude those of all experiments takes seconds.
    """
    store = Store(pinned_store.unpack(tmp_path))
    findings = [cell for cell in map(store.cell, sorted(store.done())) if cell.stage == "finding"]
    cell = next(cell for cell in findings if cell.config["experiment"] == "adversary")
    for other in findings:
        if other.key != cell.key:
            store.forget("cells", other.key)
    old = Cell(stage="finding", version=cell.version - 1, config=cell.config, inputs=cell.inputs)
    table = from_parquet(store.read(cell.key, "findings.parquet"))
    more = table[table["measure"] == "bound-gap@0.01"].assign(measure="emax-jsd-uniform@0.01")
    store.write(old, {"findings.parquet": to_parquet(pd.concat([table, more], ignore_index=True))}, {})
    return store, old, table


def test_it_is_read_without_them_and_concluded_the_same(earlier):
    store, old, table = earlier
    own = from_parquet(store.read(old.key, "findings.parquet"))
    assert current(own).equals(table) and current(table) is not own and len(own) > len(table)
    assert "emax-jsd-uniform@0.01" not in set(findings_of([old], store)["measure"])
    shown = {each.cell.key: each for each in Stored(store).every}
    assert old.key not in shown, "there is a newer version"
    assert old.key not in conclude_all(store.url)["changed"]


def test_a_number_that_changed_is_still_told(earlier):
    store, old, table = earlier
    worse = Cell(stage="finding", version=old.version - 1, config=old.config, inputs=old.inputs)
    store.write(worse, {"findings.parquet": to_parquet(table.assign(estimate=table["estimate"] + 1))}, {})
    assert worse.key in conclude_all(store.url)["changed"]


def test_an_export_hands_on_what_is_stored(earlier, tmp_path):
    store, old, _ = earlier
    for key in [key for key in store.done() if store.cell(key).config == dict(old.config) and key != old.key]:
        shutil.rmtree(tmp_path / "cells" / key)
    export_findings(store.url, tmp_path / "shared.parquet")
    again = Store(str(tmp_path / "again"))
    import_findings(tmp_path / "shared.parquet", again.url)
    assert again.read(old.key, "findings.parquet") == store.read(old.key, "findings.parquet")


def test_a_table_without_findings_is_read_as_one():
    """As of heat maps of texts of which the corpus has none."""
    empty = from_parquet(to_parquet(to_frame([])))
    assert current(empty).empty and set(current(empty).columns) >= {"experiment", "measure"}
