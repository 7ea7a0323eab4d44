"""How engines scale: cells that wait, so that two cores can show what many would do.

`python -m benchmarks.scaling` writes docs/scaling.md: cells a second with 1 to 8 workers on a Ray cluster of
this machine and in local processes, what a cell costs beyond its own work, and what that means for 1,000.
"""

from __future__ import annotations

import datetime
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from attentest.bench.engine import node
from attentest.bench.engine.cluster import Cluster, joined
from attentest.bench.engine.contract import Event, RunCells, Work
from attentest.bench.engine.local import Local
from attentest.bench.frontier import Frontier
from attentest.store.cell import Cell
from benchmarks.made import Row, seconds

OUT = Path(__file__).parents[1] / "docs" / "scaling.md"
WORKERS = (1, 2, 4, 8)
WAIT = 0.1  # seconds that a cell waits
EACH = 40  # cells for each worker
MANY = 1000
READY = 3000
COSTLESS = 2000  # cells that do not wait, for the cost of handing out
RUNS = 2
WAITER = """
import json, sys, time
for line in sys.stdin:
    time.sleep(float(sys.argv[1]))
    print(json.dumps({"kind": "done", "key": line.strip()}), flush=True)
"""


class Measured(NamedTuple):
    """One run of one engine."""

    workers: int
    rate: float  # cells a second, of the second half: processes have started then
    busy: float  # the share of the workers' time that cells took


class Whole(NamedTuple):
    """All that is measured at one time."""

    load: float
    rows: dict[str, list[Measured]]
    costs: dict[str, float]  # seconds a cell, of the process that hands out
    frontier: dict[int, float]  # seconds to take a cell, by how many are waiting
    listening: float  # seconds to look once through MANY tasks


def cells_of(count: int) -> Frontier:
    made = (Cell(stage="observation", version=1, config={"number": number}) for number in range(count))
    return Frontier({cell.key: cell for cell in made})


def no_work_here(job: Sequence[str], tell: object) -> None:
    raise AssertionError("these engines have processes")


def rate(run: RunCells, cells: int, wait: float) -> float:
    """Cells a second once half of them are done."""
    frontier, ends = cells_of(cells), []

    def on_event(event: Event) -> None:
        frontier.hear(event)
        if event.kind == "done":
            ends.append(time.perf_counter())

    run(frontier, Work(no_work_here, [sys.executable, "-I", "-S", "-c", WAITER, str(wait)]), on_event)
    assert len(frontier.done) == cells
    half = cells // 2
    return (cells - half) / (ends[-1] - ends[half - 1])


def measured(run: RunCells, workers: int) -> Measured:
    found = rate(run, EACH * workers, WAIT)
    return Measured(workers, found, found * WAIT / workers)


def waiting(count: int) -> float:
    """Seconds to take one cell while so many are ready."""
    frontier = cells_of(count)
    begun = time.perf_counter()
    for _ in range(50):
        frontier.take()
    return (time.perf_counter() - begun) / 50


def handed_out(frontier: Frontier) -> None:
    while not frontier.is_over():
        frontier.hear(Event("done", *frontier.take()))


def rows() -> Iterator[Row]:
    """Choosing the next cell: from all that wait, as for groups, and from the heap."""
    made = cells_of(READY).cells
    yield (
        f"handing out {READY:,} cells that are ready",
        seconds(lambda: handed_out(Frontier(made, lambda cell: cell.key)), 1),
        seconds(lambda: handed_out(Frontier(made)), 3),
        "making the heap",
    )


def listening(cluster: Cluster) -> float:
    """Seconds to ask which of many tasks have something to say; these wait for more cores than there are."""
    ray = cluster.ray
    task = ray.remote(num_returns="streaming", num_cpus=max(WORKERS) + 1)(node.do)
    tasks = [task.remote([], [], {}) for _ in range(MANY)]
    begun = time.perf_counter()
    for _ in range(20):
        ray.wait(tasks, num_returns=MANY, timeout=0, fetch_local=False)
    took = (time.perf_counter() - begun) / 20
    for each in tasks:
        ray.cancel(each)
    return took


def whole() -> Whole:
    load = os.getloadavg()[0]
    rows: dict[str, list[Measured]] = {"ray": [], "local": []}
    costs = {}
    with joined(None, workers=max(WORKERS)) as cluster:
        rate(Cluster(cluster.ray).run, 4 * max(WORKERS), 0.5)  # Ray's processes take seconds to start
        for workers in WORKERS:
            rows["ray"].append(measured(Cluster(cluster.ray, workers).run, workers))
        costs["ray"] = 1 / rate(Cluster(cluster.ray, 1).run, COSTLESS, 0)
        costs["ray, 8 workers"] = 1 / rate(Cluster(cluster.ray, 8).run, COSTLESS, 0)
        listened = listening(cluster)
    for workers in WORKERS:
        rows["local"].append(measured(Local(workers).run, workers))
    costs["local"] = 1 / rate(Local(1).run, COSTLESS, 0)
    costs["local, 8 workers"] = 1 / rate(Local(8).run, COSTLESS, 0)
    return Whole(load, rows, costs, {count: waiting(count) for count in (100, 1000, 10_000)}, listened)


def at_most(workers: int, seconds: float, latency: float, serial: float) -> float:
    """Cells a second: workers that are `latency` idle between two cells, handed out one every `serial`."""
    return min(workers / (seconds + latency), 1 / serial)


def page(runs: Sequence[Whole]) -> list[str]:
    lines = [
        "| workers | " + " | ".join(f"{name}, run {n + 1}" for n in range(len(runs)) for name in runs[n].rows)
    ]
    lines = [lines[0] + " |", "| ---: |" + " ---: |" * (2 * len(runs))]
    for place, workers in enumerate(WORKERS):
        each = [
            f"{rows[place].rate:.1f} ({rows[place].busy:.0%})" for run in runs for rows in run.rows.values()
        ]
        lines.append(f"| {workers} | " + " | ".join(each) + " |")
    lines += ["", "| what a cell costs, ms | " + " | ".join(f"run {n + 1}" for n in range(len(runs))) + " |"]
    lines += ["| --- |" + " ---: |" * len(runs)]
    for name in runs[0].costs:
        lines.append(f"| {name} | " + " | ".join(f"{1000 * run.costs[name]:.2f}" for run in runs) + " |")
    for count in runs[0].frontier:
        found = " | ".join(f"{1000 * run.frontier[count]:.2f}" for run in runs)
        lines.append(f"| to choose the next of {count:,} that are ready | {found} |")
    found = " | ".join(f"{1000 * run.listening:.2f}" for run in runs)
    lines.append(f"| to look once through {MANY:,} tasks | {found} |")
    return lines


def expected(runs: Sequence[Whole]) -> list[str]:
    """A thousand workers, from the slower of the runs."""
    serial = max(run.costs["ray, 8 workers"] for run in runs)
    latency = max(1 / run.rows["ray"][0].rate - WAIT for run in runs)
    lines = ["| a cell takes | cells a second | workers that are busy | with 10,000 cells ready |"]
    lines += ["| ---: | ---: | ---: | ---: |"]
    for length in (0.1, 1.0, 10.0, 60.0):
        small = at_most(1000, length, latency, serial)
        large = at_most(1000, length, latency, serial + max(run.frontier[10_000] for run in runs))
        lines.append(
            f"| {length:g} s | {small:,.0f} | {small * length / 1000:.0%} | {large * length / 1000:.0%} |"
        )
    return lines


def main() -> None:
    runs = [whole() for _ in range(RUNS)]
    loads = " and ".join(f"{run.load:.1f}" for run in runs)
    text = [
        "# Scaling",
        "",
        "Written by `python -m benchmarks.scaling`. Cells here only wait: this is about engines, not models.",
        "",
        f"- date: {datetime.date.today().isoformat()}",
        f"- machine: {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        f"- load average when each of the {RUNS} runs began: {loads}. More than the {os.cpu_count()} cores "
        "there are means that others were computing, which makes these numbers worse, not better.",
        "",
        f"## Cells a second, where a cell waits {WAIT:g} s",
        "",
        "In brackets the share of the workers' time in which they waited as they should. "
        f"{EACH} cells for each worker; the first half is not counted, because processes start then.",
        "",
        *page(runs),
        "",
        "The costs are those of cells that do nothing: with one worker from the end of one to the end of the "
        "next, with eight that of the one process that hands out and listens, which limits many workers.",
        "",
        "## What 1,000 workers would do (computed, not measured)",
        "",
        "Cells a second are `min(workers / (seconds + latency), 1 / cost)`: latency is what one worker that "
        "waits loses between two cells, cost that with eight workers, both from the slower run. "
        "One look finds all tasks that have something to say, so among many busy ones its time is shared. "
        "The last column adds the time to choose among 10,000 cells that are ready.",
        "",
        *expected(runs),
        "",
    ]
    OUT.write_text("\n".join(text))
    print("\n".join(text))


if __name__ == "__main__":
    main()
