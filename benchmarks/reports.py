"""The report of a large store, and the numbers of single seeds in it, beside doing for each what is the same.

The store is that of the gallery, and of a model's figures only its training curve is drawn.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import altair as alt
import numpy as np
import pandas as pd

from attentest.figures.charts import to_svg
from attentest.findings.estimates import estimates_alone
from attentest.findings.information_ablation import conclude
from attentest.report import pictures, sections, studying
from attentest.report.compare import compare
from attentest.report.pictures import Picture
from attentest.report.site import build
from attentest.report.stored import Stored, StoredFinding
from benchmarks.gallery import made_store
from benchmarks.made import Row, seconds

FEW_TEXTS = 100  # what is read of a store does not depend on how many texts its rows have
TEXTS, RANKS, CLUSTERS, NULLS = 1725, 10, 50, 100
SIBLINGS = ("fix rep", "fix attn", "lambda 0.0005", "gumbel 0.8", "softmax at 0.8", "untrained")


def drawn(file: str, title: str, says: str, chart: alt.LayerChart) -> Picture:
    """The figure, written out for the drawing and once more for the data beside it."""
    return Picture(title, says, file, to_svg(chart), spec=chart.to_dict())


def read(name: str, stored: Stored, shelf: Mapping[str, str]) -> dict[str, Any]:
    """The comparison of a study that reads the store for itself."""
    return compare(name, stored.store.url, shelf)


def searched(self: StoredFinding, measure: str, group: str) -> dict[str, Any] | None:
    """One finding, for which the whole table is searched."""
    matching = self.table[(self.table["measure"] == measure) & (self.table["group"] == group)]
    return None if matching.empty else dict(matching.to_dict("records")[0])


def whole_report() -> Row:
    """Everything for each study, figure and number by itself, or once for all that need it."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(pictures, "FIGURES", {}):
        store = made_store(Path(folder) / "store", FEW_TEXTS)

        def report() -> None:
            build(store.url, {}, version="made")

        ours = seconds(report, 2)
        with ExitStack() as patched:
            for owner, name, plain_way in (
                (pictures, "picture", drawn),
                (sections, "picture", drawn),
                (studying, "compare_stored", read),
                (StoredFinding, "row", searched),
            ):
                patched.enter_context(mock.patch.object(owner, name, plain_way))
            plain = seconds(report, 2)
        name = f"report of 100 models, {len(store.done()):,} cells, a figure a model"
    return name, plain, ours, "drawing: Vega is over half"


def made_rows(subject: str, rng: np.random.Generator) -> pd.DataFrame:
    """One model's rows of `information-ablation`, drawn from a hat."""
    output, yes = rng.integers(0, 5, TEXTS), rng.uniform(size=TEXTS)
    told = rng.uniform(size=(TEXTS, RANKS)) < np.linspace(0.9, 0.1, RANKS)
    symbols = np.where(told, output[:, None], rng.integers(0, CLUSTERS, (TEXTS, RANKS)))
    of_model = {"k": RANKS, "clusters": CLUSTERS, "small_clusters": 0.0, "flags": "", "nulls": NULLS}
    rows = pd.DataFrame({"seed": 0, "subject": subject, "id": [f"t{n}" for n in range(TEXTS)], **of_model})
    return rows.assign(
        length=30,
        max_attention=0.5,
        entropy=rng.uniform(size=TEXTS),
        output=output,
        attention=list(np.sort(rng.dirichlet(np.ones(RANKS), TEXTS))[:, ::-1]),
        symbols=list(symbols),
        joint=list(symbols),
        gold=output % 2,
        label=np.where(output % 2, "yes", "no"),
        predicted=np.where(yes > 0.5, "yes", "no"),
        probabilities=[[1 - p, p] for p in yes],
        jsd=rng.uniform(size=TEXTS),
        tvd=rng.uniform(size=TEXTS),
    )


def single_seed() -> Row:
    """All that could be concluded of a seed, or the numbers that a page shows of it."""
    rng = np.random.default_rng(0)
    rows = pd.concat([made_rows(name, rng) for name in ("trained", *SIBLINGS)], ignore_index=True)

    def plain() -> None:
        conclude(rows, mode="corrected", rng=np.random.default_rng(0))

    def ours() -> None:
        with estimates_alone():
            plain()

    name = f"numbers of one seed, {1 + len(SIBLINGS)} models, {TEXTS:,} texts, {RANKS} ranks"
    return name, seconds(plain, 2), seconds(ours, 2), "dealing tokens to ranks, for p"


def rows() -> Iterator[Row]:
    yield whole_report()
    yield single_seed()


if __name__ == "__main__":
    for row in rows():
        print(row)
