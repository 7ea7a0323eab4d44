"""Damage to any file of a store, in every way, is named and healed, and stops nothing else."""

import functools
import json
import os
import shutil
import time
from itertools import product
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attentest.bench.conclusion import conclude_all, list_cells
from attentest.bench.healing import heal
from attentest.bench.verbs import run_study
from attentest.cli.main import app, run
from attentest.refusal import Refusal
from attentest.store.cell import Cell
from attentest.store.checking import check, prune
from attentest.store.store import COPYING, Store
from tests.toy_study import data_files, of_stage, toml

WAYS = {
    "emptied": lambda path: path.write_bytes(b""),
    "halved": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "a bit flipped": lambda path: path.write_bytes(flipped(path.read_bytes())),
    "deleted": Path.unlink,
    "{}": lambda path: path.write_bytes(b"{}"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}
FILES = [
    *(("corpus", name) for name in ("cell.json", "corpus.json", "examples.parquet")),
    *(("model", name) for name in ("cell.json", "config.json", "model.safetensors", "training.json")),
    ("model", "vocabulary.json"),
    *((stage, "cell.json") for stage in ("reading", "observation", "finding")),
    *(("reading", "readings.parquet"), ("observation", "rows.parquet"), ("finding", "findings.parquet")),
]
EVERY = list(product(FILES, WAYS))
PAIRWISE = [(file, [*WAYS][n % len(WAYS)]) for n, file in enumerate(FILES)]  # every file, and every way


def flipped(content):
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A finished study, and the path of its recipe."""
    folder = tmp_path_factory.mktemp("sound")
    url = str(folder / "store")
    recipe = toml(folder)
    assert run_study(recipe, url, engine="inline", device="cpu")["failed"] == []
    return url, recipe


@pytest.fixture(scope="module")
def numbers(sound):
    return conclude_all(sound[0])["findings"]


@pytest.fixture
def copied(sound, tmp_path):
    shutil.copytree(sound[0], tmp_path / "store")
    return str(tmp_path / "store")


def damage(url, stage, name, way):
    key = of_stage(url, stage)[0]
    folder = Path(url, "cells", key)
    WAYS[way](folder / name)
    rest(folder)
    return key


def rest(folder):
    """As if the last change had been some minutes ago: nobody is just copying it."""
    before = time.time() - COPYING - 60
    for path in (*folder.iterdir(), folder):
        os.utime(path, (before, before))


def run_again(recipe, url):
    said = run_study(recipe, url, engine="inline", device="cpu")
    assert said["failed"] == []
    return said


def test_ways_and_files_are_all_met_in_the_quick_cases(sound):
    assert {way for _, way in PAIRWISE} == set(WAYS) and {file for file, _ in PAIRWISE} == set(FILES)
    store = Store(sound[0])
    there = {(store.about(key)["stage"], name) for key in store.done() for name in store.about(key)["files"]}
    assert there == {file for file in FILES if file[1] != "cell.json"}


@pytest.mark.parametrize(
    ("file", "way"),
    [pytest.param(*case, marks=() if case in PAIRWISE else pytest.mark.slow) for case in EVERY],
    ids=lambda value: value if isinstance(value, str) else "/".join(value),
)
def test_damage_is_named_left_out_and_healed(sound, numbers, copied, file, way):
    """No verb raises, no number changes, and in the end every file is what it was."""
    url, recipe = sound
    key = damage(copied, *file, way)
    is_gone = way == "deleted" and file[1] != "cell.json"

    found = check(copied)
    named = [entry["cell"] for entry in found["damaged" if not is_gone else "lacking"]]
    assert named == ([key] if file[1] != "model.safetensors" or not is_gone else [])
    listed = list_cells(copied)
    assert len(listed["cells"]) >= len(Store(url).done()) - 1
    concluded = conclude_all(copied)
    assert concluded["changed"] == []
    assert all(any(same(row, other) for other in numbers) for row in concluded["findings"])

    said = run_again(recipe, copied)
    assert {row["measure"] for row in said["findings"]} == {row["measure"] for row in numbers}
    heal(copied, lacking=True, engine="inline", device="cpu")
    if file[1] != "model.safetensors" or not is_gone:  # a store may travel without weights
        assert data_files(copied) == data_files(url)
    assert check(copied)["damaged"] == []


def same(row, other):
    return all(row[n] == other[n] or (row[n] != row[n] and other[n] != other[n]) for n in row)


@pytest.mark.parametrize("way", ["halved", "{}", "a folder"])
def test_a_study_heals_what_is_not_whole_without_being_told(sound, copied, way):
    """The finding it asks for is there; what that was made from is put right all the same."""
    for stage, name in (("observation", "rows.parquet"), ("model", "cell.json")):
        damage(copied, stage, name, way)
    said = run_again(sound[1], copied)
    assert len(said["damaged"]) == 2 and said["computed"] >= 2
    assert data_files(copied) == data_files(sound[0])


def test_damage_that_is_met_while_computing_is_healed_on_the_way(sound, copied):
    """The reading has its size, so that only who reads it can tell; the observation needs it."""
    broken = damage(copied, "reading", "readings.parquet", "a bit flipped")
    for stage in ("observation", "finding"):
        for key in of_stage(copied, stage):
            shutil.rmtree(Path(copied, "cells", key))
    said = run_again(sound[1], copied)
    assert [entry["cell"] for entry in said["damaged"]] == [broken]
    assert data_files(copied) == data_files(sound[0])


def test_what_is_just_being_copied_is_left_out_but_stays_in_its_place(copied):
    key = damage(copied, "finding", "cell.json", "halved")
    os.utime(Path(copied, "cells", key, "cell.json"))
    assert [entry["cell"] for entry in list_cells(copied)["damaged"]] == [key]
    assert Path(copied, "cells", key).is_dir() and not Path(copied, "damaged").exists()


def test_a_damaged_cell_of_which_nothing_is_known_is_named_by_its_key(copied):
    key = damage(copied, "observation", "cell.json", "emptied")
    shutil.rmtree(Path(copied, "plans"))
    assert heal(copied, engine="inline", device="cpu")["unknown"] == [key]


@pytest.mark.parametrize("way", WAYS)
def test_damaged_plans_and_notes_stop_nothing(sound, copied, way):
    store = Store(copied)
    planned = Cell(stage="model", version=1, config={"seed": 99}, inputs={"corpus": "0" * 64})
    store.plan(planned)
    store.fail(planned.key, "ZeroDivisionError: division", "Traceback ...")
    own = of_stage(copied, "finding")[0]
    for path in ("plans", own), ("plans", planned.key), ("failures", planned.key):
        WAYS[way](Path(copied, path[0], f"{path[1]}.json"))
    found = check(copied)
    assert found["damaged"] == [] and (way == "deleted" or own in found["plans"])
    assert way == "a bit flipped" or list_cells(copied)["failed"] == []
    assert conclude_all(copied)["changed"] == []
    shutil.rmtree(Path(copied, "cells", own))
    run_again(sound[1], copied)
    assert data_files(copied) == data_files(sound[0])


def test_every_change_to_a_description_is_seen(sound):
    """Whichever byte of `cell.json` changes, it is refused; none passes for another description."""
    store = Store(sound[0])
    key = of_stage(sound[0], "observation")[0]
    content = store.find("cells", key, "cell.json")
    from_disk = store.about(key)
    for place in range(0, len(content), 7):
        store.find = functools.partial(changed, content, place)
        try:
            passed = store.about(key)
        except Refusal as refusal:
            assert refusal.cell == key
        else:  # the name of the checksum is the one thing that may change: then there is none
            assert {n: v for n, v in passed.items() if n in from_disk and n != "checksum"} == {
                n: v for n, v in from_disk.items() if n != "checksum"
            }


def changed(content, place, *path):
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def test_a_report_leaves_a_damaged_cell_out_and_says_so(copied, tmp_path, capsys, monkeypatch):
    pytest.importorskip("altair")
    monkeypatch.setattr("attentest.gallery.site.recipes", lambda more, held: {})  # pages of studies take long
    key = damage(copied, "observation", "rows.parquet", "zeroed")
    gone = damage(copied, "model", "training.json", "deleted")
    assert run(["report", "--store", copied, "--out", str(tmp_path / "site"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [entry["cell"] for entry in said["damaged"]] == [key]
    assert said["lacking"] == [{"cell": gone, "files": ["training.json"]}]


def test_the_terminal_names_what_is_damaged(copied):
    key = damage(copied, "finding", "cell.json", "{}")
    told = CliRunner().invoke(app, ["list", "--store", copied])
    assert told.exit_code == 0
    assert f"damaged, and left out: cell {key[:12]} (cell.json" in told.stderr
    assert Path(copied, "damaged").is_dir()


def test_check_ends_with_status_1_where_something_is_damaged(copied, capsys):
    assert run(["store", "check", "--store", copied]) == 0
    damage(copied, "finding", "findings.parquet", "a bit flipped")
    assert run(["store", "check", "--store", copied]) == 1
    assert "findings.parquet: its digest is another" in capsys.readouterr().err
    assert run(["store", "heal", "--store", copied, "--engine", "inline"]) == 0
    assert run(["store", "check", "--store", copied]) == 0


# --- pruning


def put(store, stage, version, inputs, **config):
    cell = Cell(stage=stage, version=version, config=config, inputs=inputs)
    store.write(cell, {"rows.parquet": b"rows"}, {})
    return cell.key


def test_what_a_newer_version_made_again_is_listed_and_removed_only_when_told(store):
    model = put(store, "model", 1, {}, seed=0)
    old = put(store, "observation", 1, {"model": model}, experiment="permutation")
    new = put(store, "observation", 2, {"model": model}, experiment="permutation")
    old_finding = put(store, "finding", 1, {"seed 0": old}, experiment="permutation")
    new_finding = put(store, "finding", 1, {"seed 0": new}, experiment="permutation")
    other = put(store, "observation", 1, {"model": model}, experiment="importance")
    for prefix, key in (("partial", old), ("partial", "f" * 64)):
        store.replace(b"state", prefix, key, "state.safetensors")
    waiting = Cell(stage="model", version=1, config={"seed": 1})
    store.plan(waiting)
    store.replace(b"state", "partial", waiting.key, "state.safetensors")

    listed = prune(store.url)
    assert sorted(listed["superseded"]) == sorted([old, old_finding])
    assert sorted(listed["partial"]) == sorted([old, "f" * 64])
    assert store.has(old) and listed["removed"] is False and listed["bytes"] > 0
    removed = prune(store.url, yes=True)
    assert removed == listed | {"removed": True}
    assert store.done() == sorted([model, new, new_finding, other])
    assert [*store.folder.names("partial")] == [waiting.key]
    assert prune(store.url)["bytes"] == 0


def test_an_old_version_from_which_something_current_was_made_is_kept(store):
    old = put(store, "observation", 1, {}, experiment="permutation")
    put(store, "observation", 2, {}, experiment="permutation")
    put(store, "finding", 1, {"seed 0": old, "seed 1": old}, experiment="permutation")
    assert prune(store.url)["superseded"] == {}


def test_damaged_cells_are_pruned_once_they_were_computed_again(copied):
    damage(copied, "finding", "findings.parquet", "zeroed")
    assert conclude_all(copied)["damaged"]
    Path(copied, "damaged", "notes.txt").write_text("of somebody")
    healed = prune(copied)["damaged"]
    assert len(healed) == 1 and prune(copied, yes=True)["damaged"] == healed
    assert [path.name for path in Path(copied, "damaged").iterdir()] == ["notes.txt"]
