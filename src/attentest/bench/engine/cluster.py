"""The engine for a Ray cluster: each job is a task, placed by what it needs, and its events stream home.

Only keys and events travel. The cells are read from and written to the store, which all nodes share.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

from attentest.bench.engine import node
from attentest.bench.engine.contract import Cells, Event, OnEvent, Work
from attentest.bench.engine.local import ENDS, PATIENCE, RETRIES
from attentest.refusal import Refusal

LOST_NODES = 10  # a cell whose node was lost gets another; so many are hardly chance
FORGET_SIZE = 2.0  # seconds for which the size of the cluster is taken as known
OBJECTS = 80 * 2**20  # bytes for Ray's objects, where the cluster is started here: none of ours goes there
CARRIED = ("ATTENTEST_CHECKPOINT_SECONDS", "ATTENTEST_FSYNC")  # of our environment, what nodes must know
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}

# A cluster that is started here listens to this machine only: whoever reaches one may run anything on it. Ray
# does so of its own accord on systems whose firewalls would ask.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


class Answer(NamedTuple):
    """What a node said to a command."""

    node: str  # its id
    name: str  # and address, for people
    status: int
    said: str
    log: str


def ray_or_refusal() -> Any:
    """The library, which is an extra."""
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise Refusal(
            "engine ray",
            got="no package ray",
            needs="the extra that brings it",
            way_out="pip install 'attentest[ray]'",
        ) from error


@contextlib.contextmanager
def joined(address: str | None, *, workers: int | None = None) -> Iterator[Cluster]:
    """The cluster at the address (`auto`: the one this machine is a node of), or one that is started here.

    A connection that was there before is used, and left as it was.
    """
    if address is not None and address.startswith("ray://"):
        raise _no_cluster(address, "the address of Ray Client, by which events do not stream")
    asked = address or os.environ.get("RAY_ADDRESS") or "local"
    ours = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": OBJECTS}
    for name, value in {**QUIET, **(LOOPBACK if asked == "local" else {})}.items():
        os.environ.setdefault(name, value)
    ray = ray_or_refusal()
    if ray.is_initialized():
        yield Cluster(ray, workers)
        return
    _check_answers(asked)
    # What Ray says of lost nodes and workers goes to standard output, where only results belong.
    with contextlib.redirect_stdout(sys.stderr):
        try:
            ray.init(
                address=asked,
                log_to_driver=False,
                logging_level=logging.ERROR,
                **(ours if asked == "local" else {}),
            )
        except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
            said = " ".join(str(error).split())
            raise _no_cluster(asked, f"no connection to a cluster ({said[:200]})") from error
        try:
            yield Cluster(ray, workers)
        finally:
            ray.shutdown()


def _check_answers(address: str) -> None:
    """Refuse an address at which nobody listens: Ray would ask there again and again, for minutes."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()):
        return
    try:
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, f"no connection to a cluster ({error})") from error


def _no_cluster(address: str, got: str) -> Refusal:
    return Refusal(
        f"--ray-address {address}",
        got=got,
        needs="auto, or HOST:PORT of a cluster that this machine is a node of, with this Ray and Python",
        way_out="Run `ray start` here first, or leave the address out: a cluster is then started here.",
    )


@final
class Cluster:
    """The engine: as many tasks at once as there are cores, or fewer."""

    def __init__(self, ray: Any, workers: int | None = None) -> None:
        self.ray, self.workers = ray, workers
        self._do = ray.remote(num_returns="streaming", max_retries=0, max_calls=0)(node.do)
        self.probe: Sequence[str] = ()  # what a node that comes later must answer first
        self.probed: list[str] = []  # the nodes that have answered it
        self._held: list[Mapping[str, float]] = []  # the resources of each node, as last looked at
        self._seen = -FORGET_SIZE

    def resources(self) -> list[Mapping[str, float]]:
        """What each node has, as of a moment ago: nodes come and go."""
        if not self._held or time.monotonic() - self._seen > FORGET_SIZE:
            self._held = [each["Resources"] for each in self._nodes()]
            self._seen = time.monotonic()
        return self._held

    def largest(self) -> Mapping[str, float]:
        """Of each resource the most that one node has."""
        most: Counter[str] = Counter()
        for each in self.resources():
            most |= Counter(each)
        return most

    def ask(self, command: Sequence[str]) -> list[Answer]:
        """What every node says to a command; one that cannot even run it has status 1, unless it is gone."""
        place = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        ask = self.ray.remote(num_cpus=0, max_retries=0, max_calls=0)(node.answer)
        told = []
        for each in self._nodes():
            where = place(each["NodeID"], soft=False)
            told.append((each, ask.options(scheduling_strategy=where).remote(list(command))))
        found = [Answer(each["NodeID"], _named(each), *self._answered(ref)) for each, ref in told]
        here = {each["NodeID"] for each in self._nodes()}
        return [each for each in found if each.node in here]

    def _answered(self, ref: Any) -> tuple[int, str, str]:
        try:
            status, said, log = self.ray.get(ref)
        except (self.ray.exceptions.RayError, ImportError, RuntimeError) as error:
            return 1, "", str(error)
        return status, said, log

    def _nodes(self) -> list[dict[str, Any]]:
        return [each for each in self.ray.nodes() if each["Alive"]]

    def run(self, cells: Cells, work: Work, on_event: OnEvent) -> None:
        """Do every cell; what a dead worker or a lost node leaves is tried again elsewhere."""
        running: dict[Any, list[str]] = {}  # of each task what is left of its job
        deaths: Counter[str] = Counter()
        lost: Counter[str] = Counter()
        again: list[list[str]] = []
        try:
            while not (cells.is_over() and not again):
                self._hand_out(cells, work, running, again, deaths)
                ready = self._ready(running)
                for task in ready:
                    kind, key, detail = self._heard(task)
                    left = running[task]
                    if kind in ("over", "died", "lost"):
                        del running[task]
                        self._bury(left, kind, detail, deaths if kind != "lost" else lost, again, on_event)
                        continue
                    if kind == "unfit":
                        raise unfit(str(detail["node"]), str(detail["said"]), str(detail["log"]))
                    if kind in ENDS and key in left:
                        left.remove(key)
                    on_event(Event(kind, key, detail))  # type: ignore[arg-type]
        except KeyboardInterrupt:
            self._interrupt(running)
            raise
        finally:
            self._cancel(running, force=True)

    def _ready(self, running: Mapping[Any, list[str]]) -> list[Any]:
        """The tasks of which there is something to hear."""
        tasks = list(running)
        ready, _ = self.ray.wait(tasks, num_returns=1, timeout=1.0, fetch_local=False)
        if ready and len(tasks) > 1:
            ready, _ = self.ray.wait(tasks, num_returns=len(tasks), timeout=0, fetch_local=False)
        return list(ready)

    def _heard(self, task: Any) -> node.Said:
        """The next event of a task; its end, its death and the loss of its node are events, too."""
        try:
            kind, key, detail = self.ray.get(next(task))
            return kind, key, detail
        except StopIteration:
            return "over", "", {}
        except self.ray.exceptions.NodeDiedError:
            return "lost", "", {"said": "its node was lost"}
        except self.ray.exceptions.RayError as error:
            return "died", "", {"said": f"{type(error).__name__}", "log": str(error)[-node.LOG :]}

    def _hand_out(
        self,
        cells: Cells,
        work: Work,
        running: dict[Any, list[str]],
        again: list[list[str]],
        deaths: Mapping[str, int],
    ) -> None:
        """Submit jobs until there are as many as may run at once, or nothing is ready."""
        carried = {name: os.environ[name] for name in CARRIED if name in os.environ}
        while len(running) < self._room():
            job = again.pop() if again else cells.take()
            if not job:
                return
            needs = work.needs(job)
            # A death may have been for want of memory.
            memory = min(needs.memory * 2 ** max(deaths[key] for key in job), self.largest().get("memory", 0))
            placed = self._do.options(num_cpus=needs.cpus, num_gpus=needs.gpus, memory=int(memory))
            command = work.command if needs.gpus else work.without_gpu or work.command
            task = placed.remote(list(job), list(command), carried, list(self.probe), self.probed)
            running[task] = list(job)

    def _room(self) -> int:
        """As many jobs as the cluster has cores."""
        cores = int(sum(each.get("CPU", 0) for each in self.resources()))
        return max(1, min(cores, self.workers or cores))

    def _bury(
        self,
        left: Sequence[str],
        kind: str,
        detail: Mapping[str, Any],
        count: Counter[str],
        again: list[list[str]],
        on_event: OnEvent,
    ) -> None:
        """What is left of a dead task is tried again, each cell by itself: one of them may be why."""
        most, what = (LOST_NODES, "node was lost") if kind == "lost" else (RETRIES, "worker died")
        status = detail.get("said") or f"status {detail.get('status')}"
        for key in left:
            count[key] += 1
            if count[key] <= most:
                again.append([key])
                on_event(Event("retried", key, {"error": f"its {what} ({status})"}))
            else:
                error = f"its {what} {count[key]} times ({status})"
                on_event(Event("failed", key, {"error": error, "traceback": detail.get("log", "")}))

    def _interrupt(self, running: Mapping[Any, list[str]]) -> None:
        """Let each worker keep the steps it has taken."""
        self._cancel(running, force=False)
        until = time.monotonic() + PATIENCE
        left = dict(running)
        while left and time.monotonic() < until:
            for task in self._ready(left):
                if self._heard(task)[0] in ("over", "died", "lost"):
                    del left[task]

    def _cancel(self, running: Mapping[Any, list[str]], *, force: bool) -> None:
        for task in running:
            with contextlib.suppress(self.ray.exceptions.RayError, ValueError):
                self.ray.cancel(task, force=force)


def unfit(where: str, said: str, log: str) -> Refusal:
    """A node that does not answer as it should, in a sentence."""
    return Refusal(
        f"node {where} of the cluster",
        got=said.strip() or (log.strip().splitlines() or ["no answer"])[-1],
        needs="the store that all nodes share, and this version of attentest",
        way_out="Give --store a folder that every node mounts, or s3://BUCKET/PREFIX.",
    )


def _named(each: Mapping[str, Any]) -> str:
    return f"{each['NodeManagerHostname']} ({each['NodeManagerAddress']})"
