"""The report of a large store in a real browser: when something is seen, and how many bytes that took.

The store is made here: a hundred models on 2,000 texts each. Its figures are left out, which no first page
shows and which would take most of the time to draw.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from attentest.corpus.example import Corpus, Example
from attentest.corpus.files import to_files
from attentest.gallery import pictures
from attentest.gallery.folder import publish
from attentest.gallery.lines import MAIN
from attentest.gallery.site import build
from attentest.statistics.record import COLUMNS
from attentest.store.cell import Cell
from attentest.store.store import Store
from attentest.store.tables import to_parquet

CORPORA, ENCODERS, ATTENTIONS, PROJECTIONS = 5, ("bilstm", "cnn", "average", "mlp", "transformer"), 2, 2
TEXTS, WORDS, WHOLE = 2000, 30, 50
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage")
FLAGS += ("--disable-background-networking", "--disable-component-update", "--disable-sync")
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
OPEN = "performance.getEntriesByName('open').map(mark => mark.startTime)[0]"
PAGES = {
    "overview": "index.html",
    "texts": "explore-corpus-0-bilstm-attention-0.html",
    "one text": "explore-corpus-0-bilstm-attention-0.html#text=test-0",
    "compare": "compare.html",
}
# The page, milliseconds to the first paint and until its view is filled, megabytes until it was idle.
Seen = tuple[str, float, float, float]


def made_store(folder: Path, texts: int = TEXTS) -> Store:
    """A hundred grid points with rows of the four experiments of Jain & Wallace, drawn from a hat."""
    store, rng = Store(folder), np.random.default_rng(0)
    for corpus in range(CORPORA):
        cell = _corpus(store, f"corpus-{corpus}", texts, rng)
        grid = itertools.product(ENCODERS, range(ATTENTIONS), ("softmax", "sparsemax")[:PROJECTIONS])
        for encoder, attention, projection in grid:
            axes = {"encoder": encoder, "attention": f"attention-{attention}", "projection": projection}
            _point(store, cell, {"corpus": f"corpus-{corpus}", **axes}, texts, rng)
    return store


def _corpus(store: Store, name: str, texts: int, rng: np.random.Generator) -> Cell:
    words = [f"word{n}" for n in range(5000)]
    drawn = rng.choice(words, (texts, WORDS))
    test = [Example(id=f"test-{n}", tokens=tuple(map(str, row)), label="no") for n, row in enumerate(drawn)]
    others = [(Example(id=part, tokens=("a",), label="no"),) for part in ("train", "dev")]
    made = Corpus(name=name, train=others[0], dev=others[1], test=tuple(test), labels=("no", "yes"))
    cell = Cell(stage="corpus", version=1, config={"name": name, "source": "made"})
    store.write(cell, to_files(made), {"seconds": 1.0})
    return cell


def _point(store: Store, corpus: Cell, axes: dict[str, str], texts: int, rng: np.random.Generator) -> None:
    settings = {"epochs": 8, "decoder": "sigmoid"}
    model = Cell(
        stage="model", version=1, config={**axes, **settings, "seed": 0}, inputs={"corpus": corpus.key}
    )
    history = [{"epoch": n, "loss": 1 / n, "dev": {"accuracy": 0.8}} for n in range(1, 9)]
    store.write(
        model, {"training.json": json.dumps({"history": history, "chosen": 4}).encode()}, {"seconds": 60.0}
    )
    for experiment, rows in _rows(texts, rng).items():
        about = {"experiment": experiment, "mode": "corrected", "parameters": {}}
        inputs = {"corpus": corpus.key, "model": model.key}
        seen = Cell(stage="observation", version=1, config=about, inputs=inputs)
        store.write(seen, {"rows.parquet": to_parquet(rows)}, {"seconds": 10.0})
        finding = Cell(
            stage="finding",
            version=1,
            config={**about, **axes, "model": settings},
            inputs={"seed 0": seen.key},
        )
        store.write(finding, {"findings.parquet": to_parquet(_findings(experiment, rng))}, {"seconds": 1.0})


def _rows(texts: int, rng: np.random.Generator) -> dict[str, pd.DataFrame]:
    shared = pd.DataFrame({"subject": "trained", "id": [f"test-{n}" for n in range(texts)], "label": "no"})
    shared = shared.assign(predicted=rng.choice(["no", "yes"], texts), length=WORDS)
    shared["max_attention"] = rng.uniform(size=texts)

    def drawn(*names: str) -> dict[str, np.ndarray]:
        return {name: rng.uniform(size=texts) for name in names}

    def kept() -> pd.Series:
        vectors = rng.dirichlet(np.ones(WORDS), WHOLE).tolist()
        return pd.Series([*vectors, *([None] * (texts - WHOLE))], dtype=object)

    chance = rng.uniform(size=texts)
    return {
        "performance": shared.assign(gold=0, probabilities=[[p, 1 - p] for p in chance]),
        "importance": shared.assign(
            **drawn("tau_gradient", "tau_loo"), weights=kept(), gradient=kept(), loo=kept()
        ),
        "permutation": shared.assign(**drawn("median_change")),
        "adversary": shared.assign(
            **drawn("exact@0.01", "best@0.01"), weights=kept(), exact_weights=kept(), search_weights=kept()
        ),
    }


def _findings(experiment: str, rng: np.random.Generator) -> pd.DataFrame:
    names = [name.split("/")[1] for name in MAIN if name.split("/")[0] == experiment]
    names = [f"{name}@0.01" if experiment == "adversary" else name for name in names]
    names += [f"another measure {n}" for n in range(8)]
    rows = []
    for name in names:
        low, estimate, high = np.sort(rng.uniform(size=3)).tolist()
        about = {"experiment": experiment, "measure": name, "group": "overall", "mode": "corrected"}
        numbers = {"estimate": estimate, "low": low, "high": high, "null": 0.1, "std": 0.1, "seed_std": 0.1}
        counts = {"n": TEXTS, "seeds": 1, "excluded": 0, "why": "", "interval": "instances"}
        rows.append({**about, **numbers, **counts})
    return pd.DataFrame(rows)[list(COLUMNS)].astype(COLUMNS)


def seen(site: Path) -> Iterator[Seen]:
    """Each page from disk in a browser that has seen nothing yet."""
    api: Any = importlib.import_module("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=list(FLAGS))
        for name, file in PAGES.items():
            page, asked = browser.new_page(), set()
            page.on("request", lambda request, asked=asked: asked.add(request.url.split("#")[0]))
            page.goto(f"{site.as_uri()}/{file}")
            page.wait_for_load_state("networkidle")
            paths = [Path(url.removeprefix("file://")) for url in asked if url.startswith("file://")]
            while page.evaluate(OPEN) is None:
                page.wait_for_timeout(20)
            size = sum(path.stat().st_size for path in paths) / 1e6
            yield name, page.evaluate(PAINT), page.evaluate(OPEN), size
            page.close()
        browser.close()


def rows() -> list[Seen]:
    """What is measured; nothing where there is no browser to measure with."""
    if importlib.util.find_spec("playwright") is None or not shutil.which("chromium"):
        return []
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(pictures, "FIGURES", {}):
        store = made_store(Path(folder) / "store")
        begun = time.perf_counter()
        publish(build(store.url, {}, version="made"), Path(folder) / "site")
        print(f"built in {time.perf_counter() - begun:.0f} s", flush=True)
        return list(seen(Path(folder) / "site"))


if __name__ == "__main__":
    for name, painted, filled, megabytes in rows():
        print(f"{name}: first paint {painted:.0f} ms, filled {filled:.0f} ms, {megabytes:.2f} MB")
