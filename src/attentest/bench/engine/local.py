"""The default engine: processes on this machine, one thread each.

Workers are plain subprocesses that speak JSON lines, so nothing is pickled, a caller needs no
`if __name__ == "__main__"`, and a worker that dies is just a pipe that closes. A worker whose parent dies
sees its standard input close and ends too: no orphan goes on computing.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, final

from attentest.bench.engine.contract import Cells, Event, OnEvent, Work

RETRIES = 2  # a worker killed from outside gets its cell back twice; a third death is the cell's fault
PATIENCE = 10.0  # seconds a worker has to end once it is told to
ENDS = ("done", "failed", "refused", "postponed")  # events after which a cell is no longer its worker's

# More than one thread per process makes busy cores many times slower: idle OpenMP threads spin.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@final
class Worker:
    """One process and the thread that listens to it."""

    def __init__(
        self,
        command: Sequence[str],
        heard: queue.Queue[tuple[Worker, Event | None]],
        *,
        environment: Mapping[str, str] | None = None,
        log: IO[bytes] | None = None,
    ) -> None:
        self.job: list[str] = []  # what is left of it
        self.has_spoken = False
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            errors="replace",
            env=os.environ | ONE_THREAD | dict(environment or {}),
            start_new_session=True,  # Ctrl-C is ours to hear and to pass on
        )
        self.ears = threading.Thread(target=self._listen, args=(heard,), daemon=True)
        self.ears.start()

    def _listen(self, heard: queue.Queue[tuple[Worker, Event | None]]) -> None:
        assert self.process.stdout is not None
        try:
            with self.process.stdout as lines:
                for line in lines:
                    # A worker killed while writing leaves a torn line; its death is reported all the same.
                    with contextlib.suppress(ValueError, KeyError, TypeError):
                        said = json.loads(line)
                        heard.put((self, Event(said["kind"], said["key"], said.get("detail", {}))))
        finally:
            heard.put((self, None))

    def give(self, job: list[str]) -> None:
        """Hand over a job; a worker that is already dead will be heard of by its closed pipe."""
        assert self.process.stdin is not None
        self.job = list(job)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(" ".join(job) + "\n")
            self.process.stdin.flush()

    def end(self, *, at_once: bool) -> None:
        """No more work: close its input, and wait or kill."""
        with contextlib.suppress(BrokenPipeError):
            assert self.process.stdin is not None
            self.process.stdin.close()
        if at_once:
            self.process.kill()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.ears.join(PATIENCE)

    def interrupt(self) -> None:
        """Pass Ctrl-C on, so that a training keeps the steps it has taken."""
        self.process.send_signal(signal.SIGINT)


@final
@dataclass
class Local:
    """The engine: as many workers as there may be at once."""

    workers: int

    def run(self, cells: Cells, work: Work, on_event: OnEvent) -> None:
        """Do every cell; a worker that dies is replaced and its cell tried again."""
        heard: queue.Queue[tuple[Worker, Event | None]] = queue.Queue()
        alive: list[Worker] = []
        deaths: Counter[str] = Counter()
        again: list[list[str]] = []
        finished = False
        try:
            while not (cells.is_over() and not again):
                self._hand_out(cells, work, alive, heard, again, on_event)
                worker, event = heard.get()
                if event is None:
                    self._bury(worker, alive, deaths, again, on_event)
                    continue
                worker.has_spoken = True
                if event.kind in ENDS and event.key in worker.job:
                    worker.job.remove(event.key)
                on_event(event)
            finished = True
        except KeyboardInterrupt:
            self._interrupt(alive)
            raise
        finally:
            for worker in alive:
                worker.end(at_once=not finished)

    def _interrupt(self, alive: list[Worker]) -> None:
        """Let each worker keep the steps it has taken; one that has said nothing yet has taken none."""
        spoken = [worker for worker in alive if worker.has_spoken]
        for worker in spoken:
            worker.interrupt()
        for worker in spoken:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(PATIENCE)

    def _hand_out(
        self,
        cells: Cells,
        work: Work,
        alive: list[Worker],
        heard: queue.Queue[tuple[Worker, Event | None]],
        again: list[list[str]],
        on_event: OnEvent,
    ) -> None:
        """Give a job to every worker that has none; start workers only as there is work for them."""
        while True:
            idle = next((worker for worker in alive if not worker.job), None)
            if idle is None and len(alive) >= self.workers:
                return
            job = again.pop() if again else cells.take()
            if not job:
                return
            if idle is None:
                idle = Worker(work.command, heard)
                alive.append(idle)
            for key in job:
                on_event(Event("begun", key, {"worker": idle.process.pid}))
            idle.give(job)

    def _bury(
        self,
        worker: Worker,
        alive: list[Worker],
        deaths: Counter[str],
        again: list[list[str]],
        on_event: OnEvent,
    ) -> None:
        """What is left of a dead worker's job is tried again, each cell by itself: one of them may be why."""
        alive.remove(worker)
        worker.end(at_once=True)
        status = worker.process.returncode
        for key in worker.job:
            deaths[key] += 1
            if deaths[key] <= RETRIES:
                again.append([key])
                on_event(Event("retried", key, {"error": f"its worker died (status {status})"}))
            else:
                error = f"its worker died {deaths[key]} times (status {status})"
                on_event(Event("failed", key, {"error": error, "traceback": ""}))
