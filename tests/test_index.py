"""The index tells what the cells tell, whatever became of either since; without it nothing is different."""

import json
import shutil
import uuid
from pathlib import Path

import pytest

from attentest.bench.conclusion import list_cells
from attentest.store import index
from attentest.store.cell import Cell
from attentest.store.store import Store
from tests.pinned_store import unpack


@pytest.fixture(autouse=True)
def _always(monkeypatch):
    monkeypatch.setattr(index, "WORTH", 1)


@pytest.fixture(scope="module")
def pinned(tmp_path_factory):
    return unpack(tmp_path_factory.mktemp("pinned"))


@pytest.fixture(params=["local", "memory"])
def held(request, tmp_path):
    """A store of some cells, on a disk and elsewhere."""
    store = Store(tmp_path / "store" if request.param == "local" else f"memory://{uuid.uuid4().hex}")
    for seed in range(5):
        store.write(a_cell(seed), {"rows.parquet": b"rows"}, {"seconds": 1.0})
    return store


def a_cell(seed):
    return Cell(stage="observation", version=1, config={"seed": seed, "é": "😀"})


def each(store):
    """The brute-force twin: every description, read and checked."""
    return {key: store.about(key) for key in store.done()}


def check_same(store):
    for _ in range(2):  # the second time from what the first has written
        told = Store(store.url).descriptions()
        assert dict(told) == each(store) and list(told) == store.done()
        assert store.find(index.INDEX) is not None


def test_the_index_tells_what_the_cells_tell(pinned, monkeypatch):
    store = Store(pinned)
    check_same(store)
    listed = list_cells(pinned)
    monkeypatch.setattr(Store, "about", None)  # nothing is read again
    assert list_cells(pinned) == listed and len(listed["cells"]) > 100


def test_what_changes_in_the_store_is_seen_at_once(held):
    check_same(held)
    held.write(a_cell(9), {"rows.parquet": b"rows"}, {})
    check_same(held)
    held.forget("cells", a_cell(0).key)
    check_same(held)
    key = a_cell(1).key
    content = json.loads(held.find("cells", key, "cell.json")) | {"seconds": 99.5}
    content.pop("checksum")
    held.files.pipe_file(f"{held.root}/cells/{key}/cell.json", json.dumps(content).encode())
    check_same(held)
    assert Store(held.url).descriptions()[key]["seconds"] == 99.5
    held.files.pipe_file(f"{held.root}/cells/{key}/cell.json", b"{}")
    found = Store(held.url)
    assert key not in found.descriptions() and list(found.damaged) == [key]


@pytest.mark.parametrize("way", ["emptied", "halved", "a bit flipped", "another table"])
def test_a_damaged_index_is_as_good_as_none(held, way):
    held.descriptions()
    content = held.find(index.INDEX)
    half = len(content) // 2
    changed = {
        "emptied": b"",
        "halved": content[:half],
        "a bit flipped": content[: half - 99] + bytes([content[half - 99] ^ 1]) + content[half - 98 :],
        "another table": held.find("cells", a_cell(0).key, "rows.parquet"),
    }
    held.replace(changed[way], index.INDEX)
    check_same(held)


def test_a_small_store_has_no_index_and_a_store_that_cannot_be_written_needs_none(held, monkeypatch):
    monkeypatch.setattr(index, "WORTH", 6)
    assert len(held.descriptions()) == 5 and held.find(index.INDEX) is None
    monkeypatch.setattr(index, "WORTH", 1)

    def refuse(*path, **more):
        raise PermissionError(13, "read only")

    monkeypatch.setattr(held.folder, "replace", refuse)
    assert len(held.descriptions()) == 5 and held.find(index.INDEX) is None


def test_an_index_of_another_store_says_nothing(pinned, tmp_path):
    Store(pinned).descriptions()
    other = Store(tmp_path / "other")
    other.write(a_cell(0), {}, {})
    shutil.copy(Path(pinned, index.INDEX), tmp_path / "other")
    check_same(other)
