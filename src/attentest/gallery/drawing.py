"""Drawing on all cores: a process each, since the library that draws does one figure at a time in a process.

Workers read the store by themselves and draw whatever they are handed; nothing is pickled, and a caller needs
no `if __name__ == "__main__"`. A worker that fails or dies costs nothing but its time: what it was to draw is
drawn by the caller.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from attentest.gallery.earlier import Made
from attentest.gallery.point_files import Asked
from attentest.store.store import Store
from attentest.studies.recipe import Study

WORTH = 6  # grid points a worker, below which it would take longer to start than to draw
COMMAND = ["-m", "attentest.gallery.drawing_worker"]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"}


def workers_for(points: int, store: Store) -> int:
    """How many processes draw so many grid points; a store in memory is in no other one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shared = store.local or "memory" not in store.files.protocol
    found = min(cores, points // WORTH) if shared else 0
    return found if found > 1 else 0


def drawn_apart(
    files: Sequence[str], store: Store, asked: Asked, studies: Mapping[str, Study], workers: int
) -> Iterator[tuple[str, Made]]:
    """What the workers made of these grid points, each by its file, in the order in which they are done."""
    task = json.dumps(
        {
            "store": store.url,
            "left_out": sorted(store.left_out),
            "asked": {**asdict(asked), "private": sorted(asked.private), "corpora": []},
            "studies": {name: study.model_dump(mode="json") for name, study in studies.items()},
        }
    )
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[str, str] | None] = queue.SimpleQueue()
    for file in files:
        waiting.put(file)
    running = [_started() for _ in range(workers)]
    threads = [threading.Thread(target=_ask, args=(each, task, waiting, done)) for each in running]
    for thread in threads:
        thread.start()
    try:
        left = workers
        while left:
            answer = done.get()
            if answer is None:
                left -= 1
            elif made := json.loads(answer[1]):
                yield answer[0], Made(**made)
    finally:
        for each in running:
            each.kill()
        for thread, each in zip(threads, running, strict=True):
            thread.join()
            each.wait()


def _started() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", *COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,  # Ctrl-C is for the caller, who ends it
    )


def _ask(
    worker: subprocess.Popen[str],
    task: str,
    waiting: queue.SimpleQueue[str],
    done: queue.SimpleQueue[tuple[str, str] | None],
) -> None:
    """Hand the worker one grid point after the other until none is left, or it is dead."""
    assert worker.stdin is not None and worker.stdout is not None
    with worker.stdout, contextlib.suppress(OSError, ValueError), worker.stdin:
        line = task
        file = ""
        while True:
            worker.stdin.write(f"{line}\n")
            worker.stdin.flush()
            if file:
                answer = worker.stdout.readline()
                if not answer.endswith("\n"):
                    break
                done.put((file, answer))
            try:
                file = line = waiting.get_nowait()
            except queue.Empty:
                break
    done.put(None)
