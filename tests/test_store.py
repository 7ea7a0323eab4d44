"""The store returns what it was given, whole or not at all, on a disk and on any other fsspec road."""

import errno
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import uuid

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attentest.bench.verbs import train_one
from attentest.refusal import Refusal
from attentest.store.cell import Cell, canonical, short
from attentest.store.folder import STALE
from attentest.store.store import Store
from attentest.store.tables import from_parquet, to_parquet

FILES = {"model.safetensors": b"\x00weights\xff", "training.json": b"{}"}
ROADS = ("local", "memory")


def opened(road, folder):
    store = Store(folder if road == "local" else f"memory://{uuid.uuid4().hex}")
    assert store.local == (road == "local")  # both roads are to be taken, each by its own tests
    return store


@pytest.fixture(params=ROADS)
def either(request, tmp_path):
    return opened(request.param, tmp_path / "store")


def a_cell(**config):
    return Cell(stage="model", version=1, config=config, inputs={"corpus": "0" * 64})


def damage(store, key, name, content=b"other"):
    store.files.makedirs(f"{store.root}/cells/{key}", exist_ok=True)
    store.files.pipe_file(f"{store.root}/cells/{key}/{name}", content)


def lose(store, key, name):
    store.files.rm(f"{store.root}/cells/{key}/{name}")


def half_made(store):
    return list(store.folder.names("making"))


# --- keys


def test_a_key_is_the_sha256_of_canonical_json():
    cell = Cell(stage="model", version=3, config={"b": [2, "é"], "a": 1}, inputs={"corpus": "k"})
    spelled = '{"config":{"a":1,"b":[2,"é"]},"inputs":{"corpus":"k"},"stage":"model","version":3}'
    assert cell.key == hashlib.sha256(spelled.encode()).hexdigest()
    assert short(cell.key) == cell.key[:12]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
configs = st.dictionaries(st.text(), json_values, max_size=4)


def backwards(value):
    if isinstance(value, dict):
        return {name: backwards(value[name]) for name in reversed(value)}
    return [backwards(inner) for inner in value] if isinstance(value, list) else value


@given(configs)
def test_keys_are_blind_to_the_order_of_fields(config):
    one = Cell(stage="reading", version=1, config=config, inputs={"a": "1", "b": "2"})
    other = Cell(stage="reading", version=1, config=backwards(config), inputs={"b": "2", "a": "1"})
    assert one.key == other.key


@pytest.mark.parametrize(
    "change",
    [
        {"stage": "reading"},
        {"version": 2},
        {"config": {"seed": 1}},
        {"inputs": {"corpus": "k", "guide": "g"}},
    ],
)
def test_whatever_a_cell_is_made_from_changes_its_key(change):
    made_from = {"stage": "model", "version": 1, "config": {"seed": 0}, "inputs": {"corpus": "k"}}
    assert Cell(**{**made_from, **change}).key != Cell(**made_from).key


def test_where_stays_out_of_the_key_and_in_the_plan():
    here = Cell(stage="corpus", version=1, config={"name": "sst"}, where={"data_dir": "here"})
    there = Cell(stage="corpus", version=1, config={"name": "sst"}, where={"data_dir": "there"})
    assert here.key == there.key and here == there
    assert here.as_json()["where"] == {"data_dir": "here"}


@given(configs)
def test_a_cell_comes_back_from_its_plan(config):
    cell = Cell(stage="finding", version=2, config=config, inputs={"seed 0": "k"}, where={"data_dir": "d"})
    again = Cell.from_json(json.loads(json.dumps(cell.as_json())))
    assert again.key == cell.key and again.where == cell.where


def test_what_is_no_number_has_no_key():
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical({"rate": float("nan")})


# --- cells


def test_a_cell_exists_iff_its_own_description_does(either):
    cell = a_cell(seed=0)
    assert not either.has(cell.key) and either.done() == []
    either.write(cell, FILES, {"seconds": 1.5})
    assert either.has(cell.key) and either.is_whole(cell.key) and either.done() == [cell.key]
    assert either.about(cell.key)["seconds"] == 1.5
    assert either.cell(cell.key) == cell
    lose(either, cell.key, "cell.json")
    assert not either.has(cell.key) and not either.is_whole(cell.key) and either.done() == []


def test_a_half_written_folder_does_not_count_and_is_replaced(either):
    cell = a_cell(seed=0)
    damage(either, cell.key, "model.safetensors", b"the first half of")
    assert not either.has(cell.key) and either.done() == []
    either.write(cell, FILES, {})
    assert {name: either.read(cell.key, name) for name in FILES} == FILES
    assert half_made(either) == []


def test_losing_the_race_is_harmless(either):
    cell = a_cell(seed=0)
    either.write(cell, FILES, {"winner": 1})
    Store(either.url).write(cell, FILES, {"winner": 2})
    assert either.about(cell.key)["winner"] == 1
    assert {name: either.read(cell.key, name) for name in FILES} == FILES
    assert half_made(either) == []


def test_many_writers_at_once_make_one_cell(store):
    cell, start = a_cell(seed=0), threading.Barrier(8)
    damage(store, cell.key, "model.safetensors", b"half")  # they must not trip over what is to be replaced

    def write():
        start.wait()
        Store(store.url).write(cell, FILES, {})
        finished.append(True)

    finished = []
    writers = [threading.Thread(target=write) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(finished) == 8
    assert {name: store.read(cell.key, name) for name in FILES} == FILES
    assert half_made(store) == []


@pytest.mark.parametrize("name", ["model.safetensors", "cell.json"])
def test_a_damaged_file_is_refused(either, name):
    cell = a_cell(seed=0)
    either.write(cell, FILES, {})
    damage(either, cell.key, name)
    with pytest.raises(Refusal, match=f"{name} that is not what was written.*store heal"):
        either.read(cell.key, "model.safetensors")


def test_what_is_not_there_is_refused(either):
    with pytest.raises(Refusal, match=r"no cells/abc/rows\.parquet"):
        either.read("abc", "rows.parquet")
    with pytest.raises(Refusal, match=r"no plans/abc\.json"):
        either.cell("abc")
    assert either.find("plans", "abc.json") is None


def test_a_cell_that_travelled_without_weights_is_done_but_not_whole_and_is_remade_whole(either):
    cell = a_cell(seed=0)
    either.write(cell, FILES, {"made": "first"})
    lose(either, cell.key, "model.safetensors")
    assert either.has(cell.key) and not either.is_whole(cell.key)
    assert not either.holds(cell.key, "model.safetensors")
    assert either.read(cell.key, "training.json") == FILES["training.json"]
    either.write(cell, FILES, {"made": "second"})
    assert either.is_whole(cell.key) and either.about(cell.key)["made"] == "second"
    assert {name: either.read(cell.key, name) for name in FILES} == FILES
    assert half_made(either) == []


names = st.text("ab.-_", min_size=1, max_size=8).filter(lambda name: name.strip(".") and name != "cell.json")


@pytest.mark.parametrize("road", ROADS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(config=configs, files=st.dictionaries(names, st.binary(), max_size=3), note=json_values)
def test_the_store_returns_what_it_was_given(tmp_path_factory, road, config, files, note):
    store, cell = opened(road, tmp_path_factory.mktemp("store")), a_cell(**{"seed": 0}, given=config)
    store.write(cell, files, {"note": note})
    assert store.is_whole(cell.key)
    assert {name: store.read(cell.key, name) for name in store.about(cell.key)["files"]} == files
    assert store.about(cell.key)["note"] == note
    assert store.cell(cell.key) == cell and store.cell(cell.key).key == cell.key


# --- plans, failures, unfinished work


def test_a_plan_is_kept_and_a_moved_file_changes_it(either):
    plan = {"stage": "corpus", "version": 1, "config": {"name": "sst"}}
    cell = Cell(**plan, where={"data_dir": "here"})
    either.plan(cell)
    either.plan(cell)
    assert either.plans() == [cell.key] and either.cell(cell.key).where == {"data_dir": "here"}
    assert not either.has(cell.key)
    either.plan(Cell(**plan, where={"data_dir": "there"}))
    assert either.cell(cell.key).where == {"data_dir": "there"}


def test_failures_are_kept_until_the_cell_succeeds(either):
    cell = a_cell(seed=0)
    either.fail(cell.key, "ZeroDivisionError: again", "Traceback ...")
    either.fail(cell.key, "ZeroDivisionError: division", "Traceback ...")
    either.replace(b"state", "partial", cell.key, "state.safetensors")
    kept = either.failures()
    assert list(kept) == [cell.key]
    assert kept[cell.key]["error"] == "ZeroDivisionError: division"
    assert kept[cell.key]["traceback"] == "Traceback ..."
    either.write(cell, FILES, {})
    assert either.failures() == {}
    assert either.find("partial", cell.key, "state.safetensors") is None


@pytest.mark.parametrize("road", ROADS)
@settings(max_examples=10, deadline=None)
@given(st.lists(st.binary(max_size=64), min_size=1, max_size=4))
def test_the_last_replacement_is_what_is_found(tmp_path_factory, road, contents):
    store = opened(road, tmp_path_factory.mktemp("store"))
    for content in contents:
        store.replace(content, "partial", "key", "state")
        assert store.find("partial", "key", "state") == content
    assert half_made(store) == []
    store.forget("partial", "key")
    store.forget("partial", "key")
    assert store.find("partial", "key", "state") is None


def test_sweeping_removes_only_stale_leftovers(store):
    store.write(a_cell(seed=0), FILES, {})
    leftovers = store.root + "/making"
    long_ago = time.time() - STALE - 60
    for age, when in {"old": long_ago, "new": time.time()}.items():
        os.mkdir(f"{leftovers}/{age}-folder")
        for path in (f"{leftovers}/{age}-folder/model.safetensors", f"{leftovers}/{age}-file"):
            with open(path, "wb") as file:
                file.write(b"half")
        os.utime(f"{leftovers}/{age}-folder", (when, when))
        os.utime(f"{leftovers}/{age}-file", (when, when))
    os.utime(f"{store.root}/cells/{a_cell(seed=0).key}", (long_ago, long_ago))
    store.sweep()
    assert sorted(half_made(store)) == ["new-file", "new-folder"]
    assert store.is_whole(a_cell(seed=0).key)


def test_sweeping_forgets_notes_on_cells_that_are_done(either):
    done, undone = a_cell(seed=0), a_cell(seed=1)
    either.write(done, FILES, {})
    for cell in (done, undone):  # as if the writer had been killed between writing and forgetting
        either.fail(cell.key, "killed", "")
        either.replace(b"state", "partial", cell.key, "state.safetensors")
    either.sweep()
    assert list(either.failures()) == [undone.key]
    assert list(either.folder.names("partial")) == [undone.key]


def test_a_prefix_resolves_to_the_one_key_that_begins_so(either):
    done, planned = a_cell(seed=0), a_cell(seed=1)
    either.write(done, FILES, {})
    either.plan(done)
    either.plan(planned)
    assert done.key[0] != planned.key[0]
    for cell in (done, planned):
        assert either.resolve(cell.key[:1]) == either.resolve(cell.key) == cell.key
    beginning = {cell.key[:1] for cell in (done, planned)}
    nobody = next(digit for digit in "0123456789abcdef" if digit not in beginning)
    for prefix in (nobody, ""):
        with pytest.raises(Refusal, match="no such key"):
            either.resolve(prefix)
    third = next(cell for n in range(2, 99) if (cell := a_cell(seed=n)).key[0] == done.key[0])
    either.plan(third)
    with pytest.raises(Refusal, match="2 keys that begin so"):
        either.resolve(done.key[:1])


# --- disks that do not take it


@pytest.mark.parametrize("url", ["nosuch://place", "adl://place", "zip://.", "zip://no.zip"])
def test_a_place_that_cannot_be_opened_is_refused(url):
    with pytest.raises(Refusal, match="a place that cannot be opened"):
        Store(url)


def test_a_file_where_the_store_should_be_is_refused(tmp_path):
    (tmp_path / "store").write_text("not a folder")
    store = Store(tmp_path / "store")
    assert store.done() == [] and store.plans() == []
    with pytest.raises(Refusal, match="a folder that can be written"):
        store.write(a_cell(seed=0), FILES, {})
    with pytest.raises(Refusal, match="a folder that can be written"):
        store.plan(a_cell(seed=0))


def test_an_error_that_is_not_the_disks_is_shown_as_it_is(monkeypatch):
    store = opened("memory", None)

    def broken(path, value):
        raise OSError(errno.EIO, "the cable")

    monkeypatch.setattr(store.files, "pipe_file", broken)
    with pytest.raises(OSError, match="the cable"):
        store.plan(a_cell(seed=0))


def check_nothing_is_half_written(store, cell):
    assert not store.has(cell.key) and list(store.folder.names("cells")) == []
    assert half_made(store) == []


TOO_LARGE = """
import resource, sys
from attentest.store.cell import Cell
from attentest.store.store import Store
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
cell = Cell(stage="model", version=1, config={"seed": 0}, inputs={"corpus": "0" * 64})
store = Store(sys.argv[1])
for attempt in (
    lambda: store.write(cell, {"small": b"x", "large": b"x" * 20_000}, {}),
    lambda: store.replace(b"x" * 20_000, "partial", cell.key, "state.safetensors"),
):
    try:
        attempt()
    except ValueError as refusal:
        print(type(refusal).__name__, refusal)
"""


def test_a_file_the_disk_will_not_take_is_refused_and_leaves_nothing_behind(store):
    done = subprocess.run(
        [sys.executable, "-c", TOO_LARGE, store.url], capture_output=True, text=True, check=True
    )
    sentences = done.stdout.splitlines()
    assert len(sentences) == 2 and all("File too large" in sentence for sentence in sentences)
    assert all(s.startswith("Refusal ") and "Free some space" in s for s in sentences)
    check_nothing_is_half_written(store, a_cell(seed=0))
    assert store.find("partial", a_cell(seed=0).key, "state.safetensors") is None


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own of one megabyte, where we may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk, and not in every container")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_refused_and_leaves_nothing_behind(small_disk):
    store, cell = Store(small_disk / "store"), a_cell(seed=0)
    with pytest.raises(Refusal, match="No space left on device"):
        store.write(cell, {"small": b"x", "large": bytes(2 << 20)}, {})
    check_nothing_is_half_written(store, cell)
    with pytest.raises(Refusal, match="No space left on device"):
        store.replace(bytes(2 << 20), "partial", cell.key, "state.safetensors")
    assert half_made(store) == [] and store.find("partial", cell.key, "state.safetensors") is None
    store.write(cell, FILES, {})  # what fits is still taken
    assert store.is_whole(cell.key)


def test_training_onto_a_full_disk_ends_in_one_sentence(small_disk):
    (small_disk / "ballast").write_bytes(bytes((1 << 20) - (96 << 10)))  # the corpus fits, the model does not
    store = Store(small_disk / "store")
    with pytest.raises(Refusal, match="No space left on device") as refused:
        train_one("planted-keyword", {"encoder": "average", "epochs": 0}, store.url, device="cpu")
    assert "\n" not in str(refused.value)
    assert [store.about(key)["stage"] for key in store.done()] == ["corpus"]
    assert list(store.folder.names("cells")) == store.done() and half_made(store) == []
    assert store.failures() == {}


def check_it_is_read_only(store, cell):
    for attempt in (lambda: store.write(cell, FILES, {}), lambda: store.plan(cell)):
        with pytest.raises(Refusal, match="a folder that can be written and has room") as refused:
            attempt()
        assert "\n" not in str(refused.value)
    check_nothing_is_half_written(store, cell)


def test_a_read_only_folder_is_refused(tmp_path):
    store = Store(tmp_path)
    tmp_path.chmod(0o555)
    if os.access(tmp_path, os.W_OK):
        tmp_path.chmod(0o755)
        pytest.skip("root may write everywhere; the read-only disk stands in for this")
    check_it_is_read_only(store, a_cell(seed=0))
    tmp_path.chmod(0o755)


def test_a_read_only_disk_is_refused_but_can_be_read(small_disk):
    store, done = Store(small_disk / "store"), a_cell(seed=1)
    store.write(done, FILES, {})
    store.fail(done.key, "as if the writer had been killed before forgetting this", "")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    store.sweep()
    assert store.read(done.key, "training.json") == FILES["training.json"]
    with pytest.raises(Refusal, match="Read-only file system"):
        store.write(a_cell(seed=0), FILES, {})
    assert store.done() == list(store.folder.names("cells")) == [done.key]
    assert half_made(store) == []


# --- tables

rows = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.text(),
            "n": st.integers(-(2**63), 2**63 - 1),
            "change": st.floats(),
            "right": st.booleans(),
            "weights": st.lists(st.floats(allow_nan=False), max_size=4),
        }
    ),
    min_size=1,
    max_size=5,
)


@given(rows)
def test_rows_come_back_from_parquet_and_give_the_same_bytes_again(given_rows):
    content = to_parquet(given_rows)
    back = from_parquet(content)
    assert list(back.columns) == list(given_rows[0])
    for name in ("id", "n", "right"):
        assert back[name].tolist() == [row[name] for row in given_rows]
    np.testing.assert_array_equal(back["change"], [row["change"] for row in given_rows])
    assert [list(weights) for weights in back["weights"]] == [row["weights"] for row in given_rows]
    assert to_parquet(given_rows) == content
    assert to_parquet(from_parquet(to_parquet(back))) == to_parquet(back)


def test_a_table_comes_back_without_its_index():
    table = pd.DataFrame({"measure": ["a", "b"], "estimate": [0.5, np.nan]}, index=[7, 9])
    pd.testing.assert_frame_equal(from_parquet(to_parquet(table)), table.reset_index(drop=True))


def test_a_column_that_only_later_rows_have_is_kept():
    back = from_parquet(to_parquet([{"id": "a"}, {"id": "b", "change": 0.5}]))
    np.testing.assert_array_equal(back["change"], [np.nan, 0.5])
