"""The numbers of single seeds in a report, beside all that could be concluded of each seed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from attentest.experiments.information_ablation.conclude import conclude
from attentest.statistics.estimates import estimates_alone
from benchmarks.made import Row, seconds

TEXTS, RANKS, CLUSTERS, NULLS = 1725, 10, 50, 100
SIBLINGS = ("fix rep", "fix attn", "lambda 0.0005", "gumbel 0.8", "softmax at 0.8", "untrained")


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
    yield single_seed()


if __name__ == "__main__":
    for row in rows():
        print(row)
