"""What runs on a node of a cluster: a worker as on one's own machine, and what it says passed on.

The process of the cluster only listens. The cell is done by the same command as everywhere else, which ends
when its input closes: whatever kills the process of the cluster ends the cell with it. One worker is kept
for the next job, since importing torch takes longer than most cells.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import IO, final

from attentest.bench.engine.contract import Event
from attentest.bench.engine.local import ENDS, ONE_THREAD, PATIENCE, Worker

POLL = 0.1  # seconds: a job that is cancelled is told so between two looks, not while it waits
LOG = 20_000  # characters at most: a longer message would have to go through the cluster's object store
Said = tuple[str, str, dict[str, object]]


@final
class Servant:
    """A worker, what it was heard to say, and what it wrote to its log."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.heard: queue.Queue[tuple[Worker, Event | None]] = queue.Queue()
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the worker
        self.begun = 0
        # A cluster that this machine started has Ctrl-C blocked, and so would all its children.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        self.worker = Worker(command, self.heard, environment=environment, log=self.log)

    def give(self, job: list[str]) -> None:
        """A new job; what was written to the log before is not about it."""
        self.begun = os.fstat(self.log.fileno()).st_size
        self.worker.give(job)

    def written(self) -> str:
        """The end of what was written to the log since the job began."""
        size = os.fstat(self.log.fileno()).st_size
        start = max(self.begun, size - LOG)
        return os.pread(self.log.fileno(), size - start, start).decode(errors="replace")

    def next(self) -> Event | None:
        """The next event, None for its death; comes back to Python now and then while it waits."""
        while True:
            with contextlib.suppress(queue.Empty):
                return self.heard.get(timeout=POLL)[1]

    def stop(self) -> None:
        """End in the middle of a job: it may keep the steps it has taken, if it has taken any."""
        if self.worker.has_spoken:
            self.worker.interrupt()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.worker.process.wait(PATIENCE)
        self.end()

    def end(self) -> int:
        """Kill what is left of it; its status."""
        self.worker.end(at_once=True)
        self.log.close()
        return self.worker.process.returncode


_kept: dict[tuple[object, ...], Servant] = {}  # at most one
_answered: set[tuple[str, ...]] = set()  # probes


def _servant(command: Sequence[str], environment: Mapping[str, str]) -> Servant:
    """The one at hand, if it is for the same command on the same GPUs; else a new one in its place."""
    kind = (*command, *sorted(environment.items()), os.environ.get("CUDA_VISIBLE_DEVICES"))
    if kind not in _kept or _kept[kind].worker.process.poll() is not None:
        for other in _kept.values():
            other.end()
        _kept.clear()
        _kept[kind] = Servant([sys.executable, *command[1:]], environment)
    return _kept[kind]


def do(
    job: list[str],
    command: Sequence[str],
    environment: Mapping[str, str],
    probe: Sequence[str] = (),
    probed: Collection[str] = (),
) -> Iterator[Said]:
    """Do a job here and yield its events; the last is `died` if the worker did not live to the end of it.

    A node that is not among the `probed` was added later: there the `probe` must succeed first.
    """
    here = {"worker": os.getpid(), "node": socket.gethostname()}
    status, said, log = _first_answer(tuple(probe), probed)
    if status != 0:
        yield "unfit", "", {**here, "status": status, "said": said, "log": log}
        return
    servant = _servant(command, environment)
    for key in job:
        yield "begun", key, {**here}
    servant.give(job)
    left = servant.worker.job
    try:
        while left:
            event = servant.next()
            if event is None:
                said = servant.written()
                _kept.clear()
                yield "died", "", {**here, "status": servant.end(), "log": said}
                return
            servant.worker.has_spoken = True
            if event.kind in ENDS and event.key in left:
                left.remove(event.key)
            yield event.kind, event.key, _with_log(event, servant, here["node"])
    finally:
        if left and _kept:  # cancelled
            _kept.clear()
            servant.stop()


def _with_log(event: Event, servant: Servant, node: object) -> dict[str, object]:
    """Of a failure the traceback, its end if it is very long, with what else was written meanwhile."""
    if event.kind not in ("failed", "postponed"):
        return event.detail
    log = servant.written()
    heading = f"\n--- standard error on {node} ---\n" if log else ""
    return {**event.detail, "traceback": f"{event.detail.get('traceback', '')[-LOG:]}{heading}{log}"}


def _first_answer(probe: tuple[str, ...], probed: Collection[str]) -> tuple[int, str, str]:
    """The answer to the probe, where it is to be given and was not given by this process before."""
    if not probe or probe in _answered or _node_id() in probed:
        return 0, "", ""
    said = answer(probe)
    if said[0] == 0:
        _answered.add(probe)
    return said


def _node_id() -> str:
    return str(importlib.import_module("ray").get_runtime_context().get_node_id())


def answer(command: Sequence[str]) -> tuple[int, str, str]:
    """Run a command to its end here: status, standard output, the end of standard error."""
    ended = subprocess.run(
        [sys.executable, *command[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env=os.environ | ONE_THREAD,
        check=False,
    )
    return ended.returncode, ended.stdout[:LOG], ended.stderr[-LOG:]
