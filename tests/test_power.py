"""A power cut at any moment: a cell that is said to exist has all its bytes, and no written one is lost.

Every write, rename and fsync of a store is recorded. A disk keeps what was synced for sure, and of the rest
anything: names without their data, data without their names, or all of it. After each of the recorded steps
such disks are laid out anew, and a store is opened on them.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from attentest.store import disk, folder, store
from attentest.store.cell import Cell
from attentest.store.checking import check
from attentest.store.store import Store

CELLS = [Cell(stage="model", version=1, config={"seed": n}, inputs={"corpus": "0" * 64}) for n in range(3)]
FILES = {"model.safetensors": b"weights" * 99, "training.json": b"{}"}


class Folder:
    def __init__(self):
        self.names, self.synced = {}, {}


class File:
    synced = b""  # what is left of a file whose data never reached the disk


class Disk:
    """What a disk was told, and what of it must still be there after a power cut."""

    def __init__(self, root, monkeypatch):
        self.root, self.top, self.steps, self.returned = Path(root), Folder(), [], []
        for name in ("mkdir", "rename", "replace", "fsync"):
            monkeypatch.setattr(os, name, self._seen(name, getattr(os, name)))
        for module in (folder, store):
            monkeypatch.setattr(module, "put", self._put)

    def _seen(self, name, does):
        def act(*what, **more):
            result = does(*what, **more)
            getattr(self, f"_{name}")(*what[:2])
            self.steps.append(self.states())
            return result

        return act

    def _put(self, path, content, *, lasting):
        above, name = self._find(path)
        above.names[name] = File()
        disk.put(path, content, lasting=lasting)

    def _find(self, path):
        *above, name = Path(path).relative_to(self.root).parts
        node = self.top
        for each in above:
            node = node.names[each]
        return node, name

    def _mkdir(self, path, mode=0):
        above, name = self._find(path)
        above.names[name] = Folder()

    def _rename(self, source, target):
        node, name = self._find(source)
        above, new = self._find(target)
        above.names[new] = node.names.pop(name)

    _replace = _rename

    def _fsync(self, opened):
        path = Path(os.readlink(f"/proc/self/fd/{opened}"))
        above, name = (None, "") if path == self.root else self._find(path)
        node = self.top if above is None else above.names[name]
        if isinstance(node, Folder):
            node.synced = dict(node.names)
        else:
            node.synced = path.read_bytes()

    def states(self):
        """What may be found after a cut just now: of every folder its synced names, or those it has."""
        rng = np.random.default_rng(len(self.steps))
        keeps = [lambda: False, lambda: True, lambda: rng.random() < 0.5, lambda: rng.random() < 0.5]
        return [(laid_out(self.top, keep), list(self.returned)) for keep in keeps]


def laid_out(node, keep):
    if isinstance(node, File):
        return node.synced
    return {name: laid_out(each, keep) for name, each in (node.names if keep() else node.synced).items()}


def lay_out(tree, path):
    path.mkdir()
    for name, inner in tree.items():
        if isinstance(inner, dict):
            lay_out(inner, path / name)
        else:
            (path / name).write_bytes(inner)


def cut_off(tmp_path, monkeypatch):
    """Of every state after a cut: whether a cell in it is damaged, and whether one is lost."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("which file is synced is looked up in /proc, which only Linux has")
    root = tmp_path / "store"
    root.mkdir()
    with monkeypatch.context() as patched:
        recorded = Disk(root, patched)
        written = Store(root)
        for cell in CELLS:
            written.write(cell, FILES, {"seconds": 1.0})
            recorded.returned.append(cell.key)
            recorded.steps.append(recorded.states())
    verdicts = []
    for n, (tree, returned) in enumerate(state for states in recorded.steps for state in states):
        lay_out(tree, tmp_path / f"after-{n}")
        found = check(str(tmp_path / f"after-{n}"))
        lost = set(returned) - set(Store(tmp_path / f"after-{n}").done())
        verdicts.append((bool(found["damaged"] or found["lacking"] or found["without_weights"]), bool(lost)))
    return verdicts


def test_after_a_power_cut_every_cell_is_whole_and_none_is_lost(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTEST_FSYNC", "1")
    verdicts = cut_off(tmp_path, monkeypatch)
    assert len(verdicts) > 60 and set(verdicts) == {(False, False)}


def test_scratch_that_is_not_synced_is_damaged_and_lost_by_a_power_cut(tmp_path, monkeypatch):
    """The recorded disks do forget: without a sync these are found."""
    monkeypatch.setenv("ATTENTEST_FSYNC", "0")
    verdicts = cut_off(tmp_path, monkeypatch)
    assert any(damaged for damaged, _ in verdicts) and any(lost for _, lost in verdicts)
