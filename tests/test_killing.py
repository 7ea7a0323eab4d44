"""A study killed at random moments ends with the bytes of an undisturbed one, and does nothing twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from attentest.bench.checkpoint import StoreCheckpoint
from attentest.bench.verbs import run_study
from attentest.store.store import Store
from tests.processes import children, is_gone
from tests.toy_study import LONG, data_files, descriptions


@pytest.fixture(autouse=True)
def _needs_proc():
    if not Path("/proc/self/stat").exists():
        pytest.skip("a process's children are looked up in /proc, which only Linux has")


@pytest.fixture
def start():
    """Starts Python in a process of its own; what is left at the end is killed."""
    started = []

    def begin(*arguments):
        started.append(
            subprocess.Popen(
                [sys.executable, *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | {"ATTENTEST_CHECKPOINT_SECONDS": "0"},  # as good as every step is kept
                text=True,
            )
        )
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


class Victim:
    """A study that is started again whenever it is no longer there."""

    def __init__(self, start, path, url):
        self.start, self.store, self.process = start, Store(url), None
        self.command = ["-m", "attentest", "study", path, "--store", url, "--device", "cpu", "--json"]

    def begin(self):
        if self.process is not None and self.process.poll() is not None:
            self.process.communicate()  # it has ended by itself, done or after three deaths of its worker
            self.process = None
        if self.process is None:
            self.process = self.start(*self.command, "--workers", "1")

    def positions(self):
        """Epoch and step of the last save of each training: if one fails, the next begins."""
        found = {key: StoreCheckpoint(self.store, key).load() for key in self.store.folder.names("partial")}
        return {key: (at[1]["epoch"], at[1]["step"]) for key, at in found.items() if at is not None}

    def next_save(self):
        """The first training that saves from now on, with its position; none if the study ends before."""
        before = self.positions()
        while self.process.poll() is None:
            for key, now in self.positions().items():
                if now != before.get(key):
                    return {key: now}
            time.sleep(0.005)
        return {}

    def kill_run(self):
        """Kill the run, and wait until the workers it leaves behind are gone too."""
        orphans = children(self.process.pid)
        self.process.kill()
        self.process.communicate()
        self.process = None
        while not all(is_gone(pid) for pid in orphans):
            time.sleep(0.01)

    def kill_worker(self):
        for pid in children(self.process.pid):
            os.kill(pid, signal.SIGKILL)

    def finish(self):
        """How the run that is left ends; if three deaths of its worker made it fail, how one more does."""
        for _ in range(2):
            self.begin()
            said, _ = self.process.communicate()
            status, self.process = self.process.returncode, None
            if status == 0:
                break
        return status, json.loads(said)


def check_after_a_kill(store, finished):
    """No half-made cell is ever seen, and what was finished before stays as it was written."""
    assert sorted(store.folder.names("cells")) == store.done()
    now = descriptions(store.url)
    assert now | finished == now
    return now


def check_killing(start, folder, rng, *, kills, epochs):
    path = folder / "long.toml"
    path.write_text(LONG.format(epochs=epochs, seeds=1))
    victim = Victim(start, str(path), str(folder / "killed"))
    finished, reached, positions = {}, {}, set()
    for _ in range(kills):
        victim.begin()
        if rng.random() < 0.8:
            for key, resumed in victim.next_save().items():
                # Begun again from nothing, it would be back among the first steps.
                assert resumed > reached.get(key, (0, 0))
                reached[key] = resumed
                positions.add((key, resumed))
            time.sleep(rng.uniform(0, 0.3))
        else:
            time.sleep(
                rng.uniform(0, 2)
            )  # while it imports, plans or hands out, and not only while it trains
        if rng.random() < 0.5:
            victim.kill_run()
        else:
            victim.kill_worker()
        finished = check_after_a_kill(victim.store, finished)
        for key, kept in victim.positions().items():
            assert kept >= reached.get(key, (0, 0))
            reached[key] = kept
            positions.add((key, kept))
    status, said = victim.finish()
    assert status == 0 and said["failed"] == [] and said["done"] == said["cells"]
    check_after_a_kill(victim.store, finished)
    assert victim.store.failures() == {} and list(victim.store.folder.names("partial")) == []

    undisturbed = str(folder / "undisturbed")
    said = run_study(str(path), undisturbed, device="cpu", engine="inline")
    assert not said["failed"] and len(said["findings"]) > 2
    assert data_files(victim.store.url) == data_files(undisturbed)
    assert len(positions) > kills // 2  # the kills did hit the training, again and again


def test_a_study_killed_at_random_moments_ends_with_the_same_bytes(start, tmp_path, rng):
    check_killing(start, tmp_path, rng, kills=2, epochs=8)


@pytest.mark.slow
def test_a_study_killed_thirty_times_ends_with_the_same_bytes(start, tmp_path):
    check_killing(start, tmp_path, np.random.default_rng(1), kills=30, epochs=120)


class Interrupter:
    """Presses Ctrl-C as soon as a worker says how far it is."""

    def planned(self, cells):
        pass

    def heard(self, event):
        if event.kind == "progress":
            raise KeyboardInterrupt


def test_an_interrupted_run_keeps_every_step_its_workers_took(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTEST_CHECKPOINT_SECONDS", "10000")  # nothing else is kept
    path, store = tmp_path / "long.toml", Store(tmp_path / "store")
    path.write_text(LONG.format(epochs=1000, seeds=1))
    before = children(os.getpid())  # a browser of other tests, say
    with pytest.raises(KeyboardInterrupt):
        run_study(str(path), store.url, device="cpu", workers=1, watcher=Interrupter())
    assert set(children(os.getpid())) <= set(before) and store.failures() == {}
    (training,) = store.folder.names("partial")
    _, notes = StoreCheckpoint(store, training).load()
    assert (notes["epoch"], notes["step"]) > (1, 0) and not store.has(training)


WRITER = """
import itertools, sys
from attentest.store.cell import Cell
from attentest.store.store import Store
store = Store(sys.argv[1])
for number in itertools.count():
    cell = Cell(stage="model", version=1, config={"number": number, "of": sys.argv[2]})
    store.write(cell, {"model.safetensors": bytes(1 << 20), "training.json": b"{}"}, {})
    store.replace(number.to_bytes(8, "big") * (1 << 14), "partial", "key", "state.safetensors")
    print(number, flush=True)
"""


def test_a_writer_killed_at_any_moment_leaves_only_whole_cells(start, store, rng):
    for attempt in range(10):
        writer = start("-c", WRITER, store.url, str(attempt))
        assert writer.stdout.readline() == "0\n"
        time.sleep(rng.uniform(0, 0.05))
        writer.kill()
        written = 1 + sum(1 for _ in writer.stdout)
        done = [key for key in store.done() if store.cell(key).config["of"] == str(attempt)]
        assert written <= len(done) <= written + 1  # the last may be written and not yet told of
        assert sorted(store.folder.names("cells")) == store.done()
        assert all(store.is_whole(key) for key in done)
        assert store.read(done[-1], "model.safetensors") == bytes(1 << 20)
        kept = store.find("partial", "key", "state.safetensors")
        assert len(kept) == 8 << 14 and len(set(np.frombuffer(kept, dtype=">u8"))) == 1
