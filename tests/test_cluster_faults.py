"""Whatever befalls a Ray cluster, a study ends with the bytes of an undisturbed local one."""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from attentest.bench.checkpoint import StoreCheckpoint
from attentest.bench.verbs import run_study
from attentest.store.store import Store
from tests.clusters import (
    LOOKING,
    Driver,
    cluster_of,
    end_all_with,
    full_object_stores,
    kill,
    running_with,
    wait_until,
)
from tests.toy_study import LONG, data_files, toml

pytestmark = [
    # Found, not imported: the cluster has processes of its own.
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra ray"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc"),
]


class Faults:
    """Things that happen to a study on a cluster, while it trains."""

    def __init__(self, nodes, driver, rng, plan):
        self.nodes, self.driver, self.rng, self.store = nodes, driver, rng, driver.store
        self.plan, self.seeds = plan, 0
        self.one_seed_more()

    def one_seed_more(self):
        self.seeds += 1
        self.plan(self.seeds)

    def training(self):
        """Wait until a training has saved since now; a study that is all done gets another seed."""
        while True:
            self.driver.begin()
            saved = self._next_save()
            if saved is not True:
                return saved is not None
            if self.store.failures() == {}:
                self.one_seed_more()

    def _next_save(self):
        """What is saved from now on, or that the study has ended."""
        before = self.saves()
        return wait_until(lambda: self.saves() - before or self._has_ended())

    def _has_ended(self):
        return self.driver.process.poll() is not None

    def saves(self):
        found = {key: StoreCheckpoint(self.store, key).load() for key in self.store.folder.names("partial")}
        return {(key, at[1]["epoch"], at[1]["step"]) for key, at in found.items() if at is not None}

    def _half_made(self):
        return {name for name in self.store.folder.names("making") if not name.startswith("probe-")}

    def one_node(self):
        return self.nodes.nodes[self.rng.integers(len(self.nodes.nodes))]

    def worker_killed(self):
        for pid in self.nodes.workers(self.one_node()):
            kill(pid)

    @contextlib.contextmanager
    def paused(self):
        """Cells stand still: what is slow to do to a cluster is done to one that is still at work."""
        workers = [pid for node in self.nodes.nodes for pid in self.nodes.workers(node)]
        for pid in workers:
            kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in workers:
                kill(pid, signal.SIGCONT)

    def node_added(self):
        with self.paused():
            if len(self.nodes.nodes) > 2:
                self.nodes.remove(self.one_node())
            self.nodes.add()

    def node_removed(self):
        with self.paused():
            node = self.one_node()
            if len(self.nodes.nodes) < 2:
                self.nodes.add()
            self.nodes.remove(node)

    def node_removed_while_it_writes(self):
        """Its worker is stopped with a file half made, and is lost with it."""
        node = wait_until(lambda: self._has_ended() or self._stopped_writing(self.one_node()))
        if node in (None, True):
            return
        if len(self.nodes.nodes) < 2:
            self.nodes.add()
        self.nodes.remove(node)

    def _stopped_writing(self, node):
        """The node, if its worker stops with a file half made that nobody finishes."""
        workers = self.nodes.workers(node)
        if not (workers and wait_until(self._half_made, 1)):
            return None
        for pid in workers:
            kill(pid, signal.SIGSTOP)
        before = self._half_made()
        time.sleep(0.3)  # others finish theirs
        held = before & self._half_made()
        for pid in () if held else workers:
            kill(pid, signal.SIGCONT)
        return node if held else None

    def driver_killed(self):
        self.driver.kill()

    def object_store_full(self):
        with contextlib.ExitStack() as full:
            with self.paused():
                full.enter_context(full_object_stores(self.nodes))
            self._next_save()


def check(folder, nodes, faults, rng, *, epochs):
    path = folder / "long.toml"
    driver = Driver(str(path), Store(folder / "store"), nodes, folder / "heard")
    happening = Faults(
        nodes, driver, rng, lambda seeds: path.write_text(LONG.format(epochs=epochs, seeds=seeds))
    )
    hit, begun = 0, time.monotonic()
    try:
        for name in faults:
            hit += happening.training()
            time.sleep(rng.uniform(0, 0.2))
            getattr(happening, name)()
            print(f"{time.monotonic() - begun:6.1f} s: {name}, {sorted(at[1:] for at in happening.saves())}")
            assert sorted(driver.store.folder.names("cells")) == driver.store.done()
        said = driver.finish()
    finally:
        if driver.process is not None:
            driver.process.kill()
            driver.process.communicate()
    assert said["failed"] == [] and said["done"] == said["cells"]
    print(f"{time.monotonic() - begun:6.1f} s: done; {hit} of {len(faults)} faults while a model trained")
    driver.check_nothing_done_twice()
    assert driver.store.failures() == {} and [*driver.store.folder.names("partial")] == []
    for seeds in range(happening.seeds, 0, -1):  # it has the findings of fewer seeds, too
        happening.plan(seeds)
        run_study(str(path), str(folder / "undisturbed"), engine="inline", device="cpu")
    assert data_files(driver.store.url) == data_files(folder / "undisturbed")
    assert hit > len(faults) // 2  # trainings were under way, again and again
    return driver.events()


@pytest.fixture(scope="module")
def nodes():
    with cluster_of(2) as nodes:
        yield nodes
    assert running_with(nodes.folder) == []


def ran(nodes, *arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        env=nodes.environment | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_worker_and_a_node_are_lost_and_the_bytes_are_those_of_a_local_run(nodes, tmp_path, rng):
    events = check(tmp_path, nodes, ["worker_killed", "node_removed_while_it_writes"], rng, epochs=16)
    assert sum(kind == "retried" for kind, _ in events) >= 2


FAULTS = ["worker_killed", "node_added", "node_removed", "node_removed_while_it_writes", "driver_killed"]
FAULTS += ["object_store_full"]


@pytest.mark.slow
def test_thirty_faults_leave_the_bytes_of_a_local_run(nodes, tmp_path):
    rng = np.random.default_rng(1)
    faults = [*FAULTS, *(FAULTS[n] for n in rng.integers(len(FAULTS), size=24))]
    check(tmp_path, nodes, [faults[n] for n in rng.permutation(30)], rng, epochs=60)


def test_ctrl_c_keeps_every_step_that_workers_took_on_a_cluster(nodes, tmp_path):
    path, store = tmp_path / "long.toml", Store(tmp_path / "store")
    path.write_text(LONG.format(epochs=1000, seeds=1))
    driver = Driver(str(path), store, nodes, tmp_path / "heard")
    ended = ran(
        nodes, *driver.command[1:], INTERRUPTED="1", ATTENTEST_CHECKPOINT_SECONDS="10000"
    )  # nothing else is kept
    if "An unexpected system state has occurred" in ended.stderr:
        pytest.skip("Ray ended its own process when it was asked to cancel a task")
    assert "KeyboardInterrupt" in ended.stderr and store.failures() == {}
    (training,) = store.folder.names("partial")
    _, notes = StoreCheckpoint(store, training).load()
    assert (notes["epoch"], notes["step"]) > (1, 0) and not store.has(training)
    assert [*store.folder.names("making")] == []


def test_a_cluster_that_is_started_here_does_a_study_and_ends_with_it(tmp_path):
    """One JSON document on standard output, whatever Ray has to say, of a store that is named from here."""
    environment = os.environ | {"RAY_TMPDIR": tempfile.mkdtemp(prefix="ray-", dir="/tmp")}
    options = ["--engine", "ray", "--workers", "1", "--device", "cpu", "--store", "store", "--json"]
    ended = subprocess.run(
        [sys.executable, "-m", "attentest", "study", toml(tmp_path), *options],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    ended_too = wait_until(lambda: not running_with(environment["RAY_TMPDIR"]))
    end_all_with(environment["RAY_TMPDIR"])
    shutil.rmtree(environment["RAY_TMPDIR"])
    said = json.loads(ended.stdout)
    assert ended.returncode == 0 and said["done"] == said["cells"] and ended_too
    run_study(toml(tmp_path), str(tmp_path / "local"), engine="inline", device="cpu")
    assert data_files(tmp_path / "store") == data_files(tmp_path / "local")


def test_a_node_that_does_not_see_the_store_is_refused_before_any_work(nodes, tmp_path):
    """Each process has a memory of its own, so what was written there is nowhere else."""
    options = ["--engine", "ray", "--ray-address", nodes.address, "--store", "memory://store", "--json"]
    ended = ran(nodes, "-m", "attentest", "study", toml(tmp_path), *options)
    error = json.loads(ended.stdout)["error"]
    assert ended.returncode == 2 and error["what"].startswith("node ")
    assert error["got"] == "store memory://store with a place without what was just written"


def test_a_gpu_is_shared_by_observations_and_a_fleet_has_one_alone(nodes):
    node = nodes.add(num_cpus=4, num_gpus=1)
    ended = ran(nodes, "-c", LOOKING, nodes.address)
    nodes.remove(node)
    seen = json.loads(ended.stdout)
    assert {gpu for gpu, *_ in seen["shared"] + seen["fleets"]} == {"0"} and len(seen["fleets"]) == 4
    began, ended = ([each[place] for each in seen["shared"]] for place in (1, 2))
    assert max(began) < max(ended) and sum(a < min(ended) for a in began) >= 2  # at the same time
    (first, last), (second, _) = sorted({(each[1], each[2]) for each in seen["fleets"]})
    assert last <= second and first < last
    assert [each[3] for each in seen["without"]] == ["none"] and {each[3] for each in seen["shared"]} == {
        "gpu"
    }
