"""A report of some hundred models: from nothing by one process and by all, unchanged, and of one model more.

The store is real: the demo's study is run once, and its cells are copied under other settings of its models,
each copy under keys of its own. Times are of a process each, and of the processes that it started.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attentest.bench.verbs import run_study
from attentest.store.about import CHECKSUM, DESCRIPTION, sealed
from attentest.store.cell import Cell
from attentest.store.store import Store
from benchmarks.made import seconds

MODELS = 340  # 4,700 cells
CELLS_WRITTEN, FILE = 100, os.urandom(100_000)
Timed = tuple[str, float, float, float]  # what, seconds, of CPU in all processes, megabytes of the first one
REPORT = """
import resource, sys, time
from pathlib import Path
from attentest.gallery import folder, site
from attentest.gallery.earlier import Earlier
url, out, workers = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
if workers >= 0:
    site.workers_for = lambda points, store: workers if points else 0
begun, earlier = time.perf_counter(), Earlier.of(out)
files = site.build(url, {}, version="bench", earlier=earlier)
folder.publish(files, out, earlier.notes(files))
took = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
cpu = sum(each.ru_utime + each.ru_stime for each in took)
print(time.perf_counter() - begun, cpu, took[0].ru_maxrss / 1024)
"""


def put_copies(store: Store, models: int, out: Path, first: int = 0) -> None:
    """The cells of the store, `models` times: copies differ in the learning rate that their settings say."""
    told = {key: store.about(key) for key in store.done()}
    for copy in range(first, first + models):
        keys: dict[str, str] = {}
        for key in told:
            _put(store, key, told, keys, out, copy)


def _put(
    store: Store, key: str, told: Mapping[str, Mapping[str, Any]], keys: dict[str, str], out: Path, copy: int
) -> str:
    """The key of a cell's copy, after those of its inputs; the files are the same ones, but for weights."""
    if key not in told or key in keys:
        return keys.get(key, key)
    about = told[key]
    inputs = {role: _put(store, each, told, keys, out, copy) for role, each in about["inputs"].items()}
    config, rate = dict(about["config"]), {"learning_rate": 1e-3 + copy * 1e-6}
    if copy and about["stage"] == "model":
        config |= rate
    if copy and about["stage"] == "finding":
        config["model"] = {**config["model"], **rate}
    cell = Cell(stage=about["stage"], version=about["version"], config=config, inputs=inputs)
    keys[key], here = cell.key, out / "cells" / cell.key
    if not here.exists():
        here.mkdir(parents=True)
        for name in about["files"]:
            if name != "model.safetensors":
                os.link(Path(store.root) / "cells" / key / name, here / name)
        rest = {name: value for name, value in about.items() if name != CHECKSUM}
        (here / DESCRIPTION).write_bytes(sealed({**rest, **cell.as_json(), "key": cell.key}))
    return cell.key


def reported(url: Path, out: Path, workers: int = -1) -> tuple[float, float, float]:
    """What a report of the store costs, drawn by so many processes, or by as many as it takes by itself."""
    command = [sys.executable, "-c", REPORT, str(url), str(out), str(workers)]
    took, cpu, megabytes = map(
        float, subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.split()
    )
    return took, cpu, megabytes


def written(folder: Path, lasting: str) -> float:
    """Seconds to write cells of a file, each of them on the disk before it is said to exist, or not."""
    before = os.environ.get("ATTENTEST_FSYNC")
    os.environ["ATTENTEST_FSYNC"] = lasting
    store = Store(folder)
    cells = iter(Cell(stage="model", version=1, config={"n": n}) for n in range(2 * CELLS_WRITTEN))

    def write() -> None:
        for _ in range(CELLS_WRITTEN):
            store.write(next(cells), {"rows.parquet": FILE}, {})

    try:
        return seconds(write, 2)
    finally:
        os.environ.pop("ATTENTEST_FSYNC")
        os.environ |= {} if before is None else {"ATTENTEST_FSYNC": before}


def rows(models: int = MODELS) -> Iterator[Timed]:
    with tempfile.TemporaryDirectory() as folder:
        here, demo = Path(folder), Path(folder) / "demo"
        run_study("demo", str(demo), device="cpu")
        large, out = here / "large", here / "site"
        put_copies(Store(demo), models, large)
        yield (f"from nothing, {models} models, one process", *reported(large, here / "alone", 0))
        yield (f"from nothing, {models} models, a process a core", *reported(large, out))
        yield ("unchanged", *reported(large, out))
        put_copies(Store(demo), 1, large, models)
        yield ("one model more", *reported(large, out))
        for lasting, says in (("0", "not waiting for the disk"), ("1", "each on the disk before it exists")):
            took = written(here / f"written-{lasting}", lasting)
            yield (f"writing {CELLS_WRITTEN} cells of 100 kB, {says}", took, float("nan"), float("nan"))


if __name__ == "__main__":
    for row in rows(*map(int, sys.argv[1:])):
        print(json.dumps(row), flush=True)
