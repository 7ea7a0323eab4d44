"""A Ray cluster of several nodes on this machine, and what can happen to it."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.processes import children, is_gone

OBJECTS = 80 * 2**20  # the least that Ray takes
SYSTEM = {
    "automatic_object_spilling_enabled": False,  # or a full object store would be a full disk
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 3,
}
# A study in a process of its own, which can be killed; what is heard goes to a file, a line each.
DRIVER = """
import json, os, sys
from attentest.bench.verbs import run_study
path, store, address, heard = sys.argv[1:]
class Ear:
    def planned(self, cells):
        pass
    def heard(self, event):
        if event.kind == "progress" and "INTERRUPTED" in os.environ:
            raise KeyboardInterrupt
        if event.kind != "progress":
            os.write(file, (json.dumps([event.kind, event.key]) + "\\n").encode())
file = os.open(heard, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
result = run_study(path, store, engine="ray", ray_address=address, device="cpu", watcher=Ear())
print(json.dumps({name: result[name] for name in ("cells", "done", "failed")}))
"""
# Jobs that only look around, given to Ray as cells are: what each saw, and when it began and ended.
LOOKING = """
import json, sys, time
from attentest.bench.engine.cluster import joined
from attentest.bench.engine.contract import Needs, Work
from attentest.bench.frontier import Frontier
from attentest.store.cell import Cell
BODY = '''
import json, os, sys, time
for line in sys.stdin:
    began = time.time()
    time.sleep(0.5)
    seen = [os.environ.get("CUDA_VISIBLE_DEVICES"), began, time.time(), *sys.argv[1:]]
    for key in line.split():
        print(json.dumps({"kind": "done", "key": key, "detail": {"seen": seen}}), flush=True)
'''
def cell(number, stage="observation"):
    return Cell(stage=stage, version=1, config={"number": number})
def seen(cells, needs, most=1):
    found = []
    frontier = Frontier({each.key: each for each in cells}, lambda each: "alike" if most > 1 else None, most)
    def on_event(event):
        frontier.hear(event)
        found.extend([event.detail["seen"]] if event.kind == "done" else [])
    python = [sys.executable, "-I", "-S", "-c", BODY]
    cluster.run(frontier, Work(None, [*python, "gpu"], [*python, "none"], lambda job: needs), on_event)
    return found
with joined(sys.argv[1]) as cluster:
    shared = seen([cell(n) for n in range(4)], Needs(gpus=0.25))
    fleets = seen([cell(n) for n in range(4)], Needs(gpus=1.0), most=2)
    without = seen([cell(0)], Needs())
print(json.dumps({"shared": shared, "fleets": fleets, "without": without}))
"""
# The cluster is made by a process of its own: orders come in, a line each, and answers go out.
CLUSTER = """
import json, os, sys
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
from ray.cluster_utils import Cluster
nodes = {}
for line in sys.stdin:
    order, said = json.loads(line)
    if order == "head":
        cluster = Cluster(initialize_head=True, head_node_args=said)
        answer = cluster.address
    elif order == "add":
        node = cluster.add_node(**said)
        answer = node.all_processes["raylet"][0].process.pid
        nodes[answer] = node
    else:
        cluster.remove_node(nodes.pop(said), allow_graceful=False)
        answer = None
    out.write(json.dumps(answer) + "\\n")
    out.flush()
"""
# Puts twice as much into the object store of every node as it takes, until Ray says that it is full or writes
# the rest to a disk; says so, and holds it until its input closes.
FILLER = (
    f"OBJECTS = {OBJECTS}"
    + """
import os, sys
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what Ray says of other nodes is no answer
import numpy as np, ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as At
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
@ray.remote(num_cpus=0)
class Filler:
    def fill(self):
        self.held = []
        try:
            for _ in range(20):
                self.held.append(ray.put(np.ones(2**23, np.uint8)))
        except ray.exceptions.ObjectStoreFullError:
            pass
        return len(self.held) * 2**23 > OBJECTS // 2
nodes = [each["NodeID"] for each in ray.nodes() if each["Alive"]]
fillers = [Filler.options(scheduling_strategy=At(node, soft=False)).remote() for node in nodes]
full = []
for filled in [filler.fill.remote() for filler in fillers]:
    try:
        full.append(ray.get(filled))
    except ray.exceptions.RayError:
        pass  # a node that was lost a moment ago
print(bool(full) and all(full), file=out, flush=True)
sys.stdin.read()
"""
)


class Nodes:
    """The head, which does no cells, and nodes that come and go, each known by the process of its raylet."""

    def __init__(self, folder):
        self.folder = folder
        loopback = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # as Ray does where firewalls ask
        self.environment = os.environ | loopback | {"RAY_USAGE_STATS_ENABLED": "0", "OF_CLUSTER": folder}
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLUSTER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.environment,
        )
        self.nodes = []
        self.address = self._ask("head", {**self._settings(), "num_cpus": 0, "_system_config": SYSTEM})

    def _settings(self):
        return {"temp_dir": self.folder, "object_store_memory": OBJECTS, "include_dashboard": False}

    def _ask(self, *order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def add(self, **settings):
        self.nodes.append(self._ask("add", {**self._settings(), "num_cpus": 1, **settings}))
        return self.nodes[-1]

    def remove(self, node):
        """As a machine is lost: nothing on it goes on, nor says goodbye."""
        processes = [*self.workers(node), *children(node)]  # Ray's own outlive it, too
        self.nodes.remove(node)
        self._ask("remove", node)
        for pid in processes:
            kill(pid)

    def workers(self, node):
        """The processes on a node that do cells."""
        return [cell for process in children(node) for cell in children(process)]

    def shut_down(self):
        every = descendants(self.process.pid)  # some of Ray's outlive what started them, under another name
        self.process.kill()
        self.process.communicate()
        for pid in every:
            kill(pid)
        end_all_with(self.folder)


def descendants(pid):
    return [each for child in children(pid) for each in (child, *descendants(child))]


def end_all_with(folder):
    """Kill whatever still runs: the environment is what a process was started with, whatever it is called."""
    wait_until(lambda: not [kill(pid) for pid in running_with(folder)])


def running_with(folder):
    """The processes that have a folder in their environment or their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            said = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
            if folder.encode() in said and not is_gone(int(process.name)):
                found.append(int(process.name))
    return found


def kill(pid, number=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


@contextlib.contextmanager
def cluster_of(nodes):
    """Nodes of one core each; everything ends with them, come what may. A socket's path may be 107 bytes."""
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    made = Nodes(folder)
    try:
        for _ in range(nodes):
            made.add()
        yield made
    finally:
        made.shut_down()
        shutil.rmtree(folder, ignore_errors=True)


class Driver:
    """A study on a cluster that is started again whenever it is no longer there."""

    def __init__(self, path, store, nodes, heard):
        self.store, self.heard, self.process = store, heard, None
        self.command = [sys.executable, "-c", DRIVER, path, store.url, nodes.address, str(heard)]
        self.environment = nodes.environment | {"ATTENTEST_CHECKPOINT_SECONDS": "0", "ATTENTEST_FSYNC": "1"}
        self.lost = Counter()  # how often a cell was in flight when its driver died

    def begin(self):
        if self.process is not None and self.process.poll() is not None:
            self._ended()
        if self.process is None:
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self.process = subprocess.Popen(self.command, text=True, env=self.environment, **pipes)

    def events(self):
        return (
            [json.loads(line) for line in self.heard.read_text().splitlines()] if self.heard.exists() else []
        )

    def in_flight(self):
        last = {key: kind for kind, key in self.events()}
        return [key for key, kind in last.items() if kind == "begun"]

    def kill(self):
        self.process.kill()
        self._ended()

    def _ended(self):
        """What was in flight is lost, also where Ray ended the driver's process itself, as it may."""
        said, _ = self.process.communicate()
        self.process = None
        self.lost.update(self.in_flight())
        return said

    def finish(self):
        """What the run says that is left; if deaths of its workers made it fail, one more does."""
        for _ in range(3):
            self.begin()
            said = self._ended()
            if said and not json.loads(said)["failed"]:
                break
        return json.loads(said)

    def check_nothing_done_twice(self):
        """A cell is begun once, and again only after it was in flight when something happened."""
        begun, retried, done = Counter(), Counter(), set()
        for kind, key in self.events():
            assert not (kind == "begun" and key in done)
            begun[key] += kind == "begun"
            retried[key] += kind in ("retried", "failed")
            done |= {key} if kind == "done" else set()
        assert done and begun.keys() >= done
        assert not {key: n for key, n in begun.items() if n > 1 + retried[key] + self.lost[key]}


@contextlib.contextmanager
def full_object_stores(nodes):
    """While this lasts no node has room for another object."""
    with subprocess.Popen(
        [sys.executable, "-c", FILLER, nodes.address],
        env=nodes.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as filler:
        try:
            assert filler.stdout.readline() == "True\n"
            yield
        finally:
            filler.kill()


def wait_until(condition, seconds=60.0):
    """What the condition gives once it is true; the study under it may be stuck, a test may not."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = condition()
        if found:
            return found
        time.sleep(0.0005)
    return None
