"""Prints what the study `vectors` measured and the scales its rule chooses: `python docs/vectors.py STORE`.

The rule (docs/decisions.md): for each attention the scale of random vectors with the highest mean dev score
at the default width, over corpora, encoders and seeds; a difference to 0.1 of less than one standard error
is a tie, and a tie keeps 0.1. The table with tau is for reading; it chooses nothing.
"""

import sys

import pandas as pd

from attentest.bench.conclusion import findings_of
from attentest.experiments.vectors.conclude import EXPERIMENT, Choice, choose_scales, dev_scores
from attentest.model.protocol import PROTOCOLS
from attentest.notebook import word_vectors
from attentest.store.cell import Cell
from attentest.store.observed import can_be_observed, observed
from attentest.store.store import Store

WIDTH = PROTOCOLS["classification"].embedding
MEASURES = ("dev-score", "dev-accuracy", "tau-gradient", "tau-loo", "max-weight-times-length")
MEASURES += ("vector-norm-start", "vector-norm-trained")
SCORES = ("accuracy", "f1", "auc")


def finding_cells(store: Store, experiment: str) -> list[Cell]:
    """The finding cells of an experiment."""
    cells = (store.cell(key) for key in store.done())
    return [c for c in cells if c.stage == "finding" and c.config["experiment"] == experiment]


def scores(store: Store) -> pd.DataFrame:
    """One row per model of the default width with random vectors."""
    cells = [cell for cell in finding_cells(store, EXPERIMENT) if can_be_observed(cell, store)]
    found = [dev_scores(cell.config, observed(cell, store)) for cell in cells]
    table = pd.concat([each for each in found if len(each)], ignore_index=True)
    return table[table["embedding"] == WIDTH]


def chosen(choices: list[Choice]) -> list[str]:
    """The table of the rule."""
    scales = list(choices[0].means)
    heads = [f"dev score at {scale:g}" for scale in scales]
    heads += ["best less 0.1", "one standard error", "pairs", "chosen"]
    lines = ["| attention | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for one in choices:
        cells = [f"{one.means[scale]:.4f}" for scale in scales]
        cells += [
            f"{one.difference:+.4f} ({one.best:g})",
            f"{one.error:.4f}",
            str(one.pairs),
            f"{one.scale:g}",
        ]
        lines.append(f"| {one.attention} | " + " | ".join(cells) + " |")
    return lines


def measured(store: Store) -> list[str]:
    """Every setting in a line: dev and test scores, agreement, evenness, lengths."""
    here = [*finding_cells(store, EXPERIMENT), *finding_cells(store, "performance")]
    table = findings_of(here, store)
    table = table[table["group"] == "overall"]
    names = ("corpus", "encoder", "attention", "vectors", "embedding")
    heads = [*MEASURES, *(f"test {name}" for name in SCORES)]
    lines = ["| " + " | ".join([*names[:3], "vectors", *heads, "seeds"]) + " |"]
    lines.append("|---" * (len(heads) + 5) + "|")
    for key, rows in table.groupby(list(names)):
        estimates = rows.drop_duplicates("measure").set_index("measure")["estimate"]
        if "dev-score" not in estimates:
            continue
        cells = [f"{estimates[name]:.3f}" if name in estimates else "–" for name in (*MEASURES, *SCORES)]
        about = [*map(str, key[:3]), word_vectors(key[3], key[4])]
        lines.append("| " + " | ".join([*about, *cells, str(rows["seeds"].max())]) + " |")
    return lines


if __name__ == "__main__":
    held = Store(sys.argv[1]).existing()
    print("\n".join(chosen(choose_scales(scores(held)))), "\n", sep="\n")
    print("\n".join(measured(held)))
