"""What is stored stays readable, means the same and is made again: a store of an earlier commit says so.

`tests/pinned_store.py` says how the store was made. Exact are keys, stages, versions, columns with their
types, identifiers, counts, and the numbers on pages. Findings concluded from stored rows agree to nine
digits: another processor's vector instructions may round the last bits of a sum otherwise. Rows observed
anew, of models trained anew, agree within a relative tolerance of 1e-5.
"""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from attentest.bench.conclusion import conclude
from attentest.bench.plan import Planner
from attentest.experiments.observers import EXPERIMENTS
from attentest.store.cell import Cell
from attentest.store.store import Store
from attentest.store.tables import from_parquet, to_parquet
from attentest.studies.recipe import load_study
from tests import pinned_store

CHEAP = ("performance", "permutation", "uniform-baseline", "ablation")
RTOL = 1e-5
ATOL = (
    1e-6  # differences of probabilities near one: a few units of single precision, which processors differ in
)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    return pinned_store.unpack(tmp_path_factory.mktemp("pinned"))


@pytest.fixture(scope="module")
def store(url):
    return Store(url)


@pytest.fixture(scope="module")
def cells(store):
    return {key: store.cell(key) for key in store.done()}


@pytest.fixture(scope="module")
def planned(store):
    """Finding cells as today's code plans them, and every cell that they need."""
    planner = Planner(store, device="cpu")
    findings = [cell for study in pinned_store.STUDIES for cell in planner.study(load_study(study))]
    return findings, planner.cells


def of_stage(cells, stage):
    return {key: cell for key, cell in cells.items() if cell.stage == stage}


def test_every_experiment_of_the_catalogue_is_in_the_store(cells):
    for stage in ("observation", "finding"):
        assert {cell.config["experiment"] for cell in of_stage(cells, stage).values()} == {*EXPERIMENTS}


def test_keys_are_what_they_were(cells, planned):
    findings, every = planned
    assert {cell.key for cell in findings} == {*of_stage(cells, "finding")}
    assert {*every} == {*cells}
    for key, cell in every.items():
        was = cells[key]
        assert (cell.stage, cell.version) == (was.stage, was.version)
        assert json.loads(json.dumps(cell.as_json()))["inputs"] == was.as_json()["inputs"]
    for key, cell in cells.items():
        assert Cell.from_json(cell.as_json()).key == key


def test_stages_and_their_counts_are_what_they_were(cells):
    counts = {"corpus": 2, "model": 69, "reading": 14, "observation": 68, "finding": 34}
    assert Counter(cell.stage for cell in cells.values()) == counts


def test_files_are_whole_but_for_the_weights_left_out(store, cells):
    for key in cells:
        written = store.about(key)["files"]
        for name in written:
            if name not in pinned_store.LEFT_OUT:
                store.read(key, name)  # checked against its digest
        assert any(name not in pinned_store.LEFT_OUT for name in written)


def check_findings_are_concluded_again(store, findings):
    for cell in findings:
        again, stored = conclude(cell, store), from_parquet(store.read(cell.key, "findings.parquet"))
        pinned_store.same_findings(again, stored, cell.config["experiment"])
        assert from_parquet(to_parquet(again)).equals(again), cell.config["experiment"]


def is_in_the_contract(cell):
    """The contract of experiments compares these with the stored findings, from shuffled rows at that."""
    return cell.config["mode"] == "corrected" and cell.config["encoder"] != pinned_store.PART


def test_findings_of_stored_rows_are_the_stored_ones(store, cells):
    findings = [cell for cell in of_stage(cells, "finding").values() if not is_in_the_contract(cell)]
    assert len(findings) == 34 - len(EXPERIMENTS)
    check_findings_are_concluded_again(store, findings)


@pytest.mark.slow
def test_findings_of_all_stored_rows_are_the_stored_ones(store, cells):
    check_findings_are_concluded_again(store, of_stage(cells, "finding").values())


def same_rows(rows, stored):
    """Columns, types and identifiers exactly; numbers within the tolerance."""
    assert [*rows.columns] == [*stored.columns]
    assert rows.dtypes.tolist() == stored.dtypes.tolist()
    assert len(rows) == len(stored)
    for name in rows.columns:
        for ours, theirs in zip(rows[name], stored[name], strict=True):
            same_value(ours, theirs, name)


def same_value(ours, theirs, name):
    if isinstance(ours, np.ndarray | list):
        assert theirs is not None and len(ours) == len(theirs), name
        for one, other in zip(ours, theirs, strict=True):
            same_value(one, other, name)
    elif isinstance(ours, float | np.floating):
        assert ours == pytest.approx(theirs, rel=RTOL, abs=ATOL, nan_ok=True), name
    else:
        assert not isinstance(theirs, np.ndarray | list) and ours == theirs, name


def made_anew(url, folder, wanted, studies):
    """Observation cells of these experiments with all models trained, in a store that has only corpora."""
    fresh = pinned_store.corpora_of(url, folder)
    pinned_store.run_studies(fresh, [restricted(study, folder, wanted) for study in studies])
    return Store(fresh)


def restricted(study, folder, wanted):
    """The study with no experiment but these, and without its claims."""
    head, *steps = Path(study).read_text(encoding="utf-8").partition("[[claim]]")[0].split("[[experiment]]\n")
    own = [step for step in steps if any(f'name = "{name}"\n' in step for name in wanted)]
    path = Path(folder) / Path(study).name
    path.write_text("[[experiment]]\n".join([head, *own]), encoding="utf-8")
    return str(path)


def check_made_anew(fresh, store, wanted):
    done = [key for key in fresh.done() if fresh.cell(key).stage == "observation"]
    assert {fresh.cell(key).config["experiment"] for key in done} == {*wanted}
    for key in done:
        tables = [from_parquet(each.read(key, "rows.parquet")) for each in (fresh, store)]
        try:
            same_rows(*tables)
        except AssertionError as wrong:
            raise AssertionError(f"rows of {fresh.cell(key).config['experiment']}, {wrong}") from wrong


def test_rows_made_anew_are_the_stored_ones(url, store, tmp_path):
    fresh = made_anew(url, tmp_path, CHEAP, pinned_store.STUDIES[:1])
    check_made_anew(fresh, store, CHEAP)


@pytest.mark.slow
def test_rows_of_every_experiment_made_anew_are_the_stored_ones(url, store, tmp_path):
    fresh = made_anew(url, tmp_path, EXPERIMENTS, pinned_store.STUDIES)
    check_made_anew(fresh, store, EXPERIMENTS)
    assert {*fresh.done()} == {*store.done()}


@pytest.fixture
def undrawn(monkeypatch):
    """Drawings are left out, which take a third of the time: what they draw is in the data of the page."""
    pytest.importorskip("jinja2")
    drawing = pytest.importorskip("vl_convert")
    monkeypatch.setattr(drawing, "vegalite_to_svg", lambda *args, **kwargs: "<svg/>")


def check_pages(shown, written):
    assert [*shown] == [*written]
    for name, page in written.items():
        assert shown[name] == page, name


def test_pages_of_some_models_show_the_same_numbers(url, undrawn, tmp_path):
    part = pinned_store.part_of(url, tmp_path, pinned_store.PART)
    check_pages(pinned_store.pages_of(part), pinned_store.written_pages()["part"])


@pytest.mark.slow
def test_pages_of_every_model_show_the_same_numbers(url, undrawn):
    check_pages(pinned_store.pages_of(url), pinned_store.written_pages()["whole"])


# --- proof that the comparisons can fail

ROWS = pd.DataFrame(
    {"id": ["a", "b"], "n": [1, 2], "share": [0.5, float("nan")], "weights": [np.array([0.25, 0.75]), None]}
)


@pytest.mark.parametrize(
    "other",
    [
        ROWS.drop(columns="n"),
        ROWS[["n", "id", "share", "weights"]],
        ROWS.iloc[:1],
        ROWS.assign(n=[1.0, 2.0]),
        ROWS.assign(id=["a", "c"]),
        ROWS.assign(share=[0.5001, float("nan")]),
        ROWS.assign(share=[0.5, 0.5]),
        ROWS.assign(weights=[np.array([0.25, 0.7501]), None]),
        ROWS.assign(weights=[np.array([0.25]), None]),
        ROWS.assign(weights=[None, None]),
    ],
    ids=["lost", "moved", "fewer", "type", "id", "number", "defined", "in a list", "shorter", "no list"],
)
def test_rows_that_differ_are_not_the_same(other):
    same_rows(ROWS, ROWS.assign(share=[0.5 + 1e-7, float("nan")]))
    with pytest.raises(AssertionError):
        same_rows(other, ROWS)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda page: page.replace("<td>0.125</td>", "<td>0.126</td>"),
        lambda page: page.replace('id="removal"', 'id="removed"'),
        lambda page: page.replace("<td>0.125</td>", ""),
    ],
    ids=["number", "anchor", "cell"],
)
def test_a_page_that_shows_another_number_is_not_the_same(spoil):
    page = '<h2 id="removal">Removal</h2><table><tr><td>0.125</td><td>prose of 2019</td></tr></table>'
    shown = pinned_store.shown("point.html", page)
    assert shown == {"ids": ["removal"], "numbers": ["0.125"]}
    check_pages({"point.html": shown}, {"point.html": shown})
    reworded = pinned_store.shown("point.html", page.replace("prose of 2019", "words of 2020"))
    check_pages({"point.html": reworded}, {"point.html": shown})
    with pytest.raises(AssertionError):
        check_pages({"point.html": pinned_store.shown("point.html", spoil(page))}, {"point.html": shown})
