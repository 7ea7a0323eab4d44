"""What it takes to look at a store of a hundred thousand small cells, with its index and without.

Each verb runs in a process of its own, which says how long it took and how much memory it held at most.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from attentest.statistics.record import COLUMNS
from attentest.store.about import now, sealed
from attentest.store.cell import Cell
from attentest.store.tables import to_parquet

CELLS = 100_000
EXPERIMENTS = ("performance", "permutation", "importance", "adversary")
Looked = tuple[str, float, float]  # what was asked, seconds, megabytes
VERBS = {
    "list": "conclusion.list_cells(url)",
    "compare jain-wallace-2019": "table.compare('jain-wallace-2019', url, {})",
    "listing of a report": "points.grid_points(stored.Stored(store.Store(url)))",
    "study demo --plan": "verbs.run_study('demo', url, only_plan=True, device='cpu')",
}
LOOK = """
import resource, sys, time
from attentest.bench import conclusion, verbs
from attentest.compare import points, stored, table
from attentest.store import store
url = sys.argv[1]
before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
{verb}
print(time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def made_store(folder: Path, cells: int) -> None:
    """Models of one corpus, each with readings, four observations and, every fifth, their findings."""
    put(folder, corpus := Cell(stage="corpus", version=1, config={"name": "made"}), b"")
    written = 1
    finding = to_parquet(pd.DataFrame({name: [] for name in COLUMNS}))
    model = 0
    while written < cells:
        axes = {"encoder": f"encoder-{model // 50}", "attention": "additive", "projection": "softmax"}
        settings = {
            "epochs": 8,
            "hidden": 128,
            "embedding": 300,
            "learning_rate": 0.001,
            "decoder": "sigmoid",
        }
        trained = Cell(
            stage="model",
            version=1,
            config={**axes, **settings, "width": model // 5, "seed": model % 5},
            inputs={"corpus": corpus.key},
        )
        put(folder, trained, b"{}", "training.json")
        written += 1
        for experiment in EXPERIMENTS:
            about = {"experiment": experiment, "mode": "corrected", "parameters": {"permutations": 100}}
            inputs = {"corpus": corpus.key, "model": trained.key}
            seen = Cell(stage="observation", version=1, config=about, inputs=inputs)
            put(folder, seen, b"", "rows.parquet")
            found = Cell(
                stage="finding",
                version=1,
                config={**about, **axes, "corpus": "made", "model": {**settings, "width": model}},
                inputs={"seed 0": seen.key},
            )
            put(folder, found, finding, "findings.parquet")
            written += 2
        model += 1


def put(folder: Path, cell: Cell, content: bytes, name: str = "corpus.json") -> None:
    """The cell as the store writes it, without the care that takes most of the time."""
    digest = {"sha256": "0" * 64, "bytes": len(content)}
    notes = {"seconds": 1.0, "device": "cpu", "written": now(), "host": "made", "torch": "2.8.0"}
    about = cell.as_json() | {"key": cell.key, "files": {name: digest}, **notes}
    here = folder / "cells" / cell.key
    here.mkdir(parents=True)
    (here / name).write_bytes(content)
    (here / "cell.json").write_bytes(sealed(about))


def looked(url: str, verb: str) -> tuple[float, float]:
    """Seconds, and megabytes at the peak, torch and all imports included."""
    said = subprocess.run(
        [sys.executable, "-c", LOOK.format(verb=VERBS[verb]), url], check=True, capture_output=True, text=True
    )
    seconds, megabytes = map(float, said.stdout.split())
    return seconds, megabytes


def rows(cells: int = CELLS) -> Iterator[Looked]:
    with tempfile.TemporaryDirectory() as folder:
        made_store(Path(folder), cells)
        yield ("list, no index yet", *looked(folder, "list"))
        for verb in VERBS:
            yield (verb, *looked(folder, verb))


if __name__ == "__main__":
    os.environ.setdefault("ATTENTEST_FSYNC", "0")
    for row in rows(*map(int, sys.argv[1:])):
        print(json.dumps(row), flush=True)
