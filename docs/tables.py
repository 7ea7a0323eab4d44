"""Prints the measured tables of docs/reproductions/first-edition/jain-wallace-2019.md: `python docs/tables.py STORE`."""

import sys

import pandas as pd

from attentest.bench.conclusion import findings_of
from attentest.store.cell import Cell
from attentest.store.store import Store

ENCODERS = {"bilstm": "BiLSTM", "cnn": "CNN", "average": "Average"}
TABLES = {
    "How well they predict": ("accuracy", "f1"),
    "Attention against gradients": (
        "tau-gradient",
        "tau-gradient-significant",
        "tau-gradient-excess",
        "noise-ceiling-gradient",
    ),
    "Attention against leaving words out": (
        "tau-loo",
        "tau-loo-significant",
        "tau-loo-excess",
        "noise-ceiling-loo",
    ),
    "Gradients against leaving words out": ("tau-gradient-loo", "gradient-loo-minus-attention-loo"),
    "Permutation": ("median-output-change", "share-unmoved"),
    "Adversary, exact, ε = 0.01": (
        "emax-jsd-exact@0.01",
        "emax-jsd-exact-share@0.01",
        "emax-jsd-exact-ratio@0.01",
        "emax-jsd-exact-excess@0.01",
    ),
    "Adversary, searched and matched, ε = 0.01": (
        "emax-jsd-last@0.01",
        "emax-jsd-last-share@0.01",
        "search-shortfall@0.01",
        "emax-jsd-permuted@0.01",
        "emax-jsd-capped@0.01",
    ),
    "Adversary, searched, ε = 0.05": ("emax-jsd-last@0.05", "emax-jsd-last-share@0.05", "emax-jsd-best@0.05"),
}
GROUPS = {"overall": "", "untrained": "untrained", "shuffled labels": "shuffled labels"}


def said(rows: pd.DataFrame) -> str:
    """`estimate [low, high], null`, or a dash."""
    if rows.empty or rows.iloc[0]["n"] == 0:
        return "–"
    row = rows.iloc[0]
    text = f"{row['estimate']:.3f}"
    if pd.notna(row["low"]):
        text += f" [{row['low']:.3f}, {row['high']:.3f}]"
    return text + (f"; {row['null']:.3f}" if pd.notna(row["null"]) else "")


def table(findings: pd.DataFrame, measures: tuple[str, ...]) -> list[str]:
    """A model a row, its controls below it."""
    lines = ["| model | " + " | ".join(measures) + " | n |", "|---" * (len(measures) + 2) + "|"]
    for model, of_model in findings.groupby("model", sort=False):
        for group, control in GROUPS.items():
            rows = of_model[of_model["group"] == group]
            cells = [said(rows[rows["measure"] == measure]) for measure in measures]
            if all(cell == "–" for cell in cells):
                continue
            n = rows[rows["measure"].isin(measures)]["n"].max()
            who = f"*{control}*" if control else f"**{model}**"
            lines.append(f"| {who} | " + " | ".join(cells) + f" | {n:,} |")
    return lines


def model_of(cell: Cell) -> str:
    """The model in words; the affine decoder of a question's model is the exception, so it is said."""
    config = cell.config
    affine = ", affine" if config["model"].get("decoder") == "affine" else ""
    return f"{ENCODERS[config['encoder']]} + {config['attention']}{affine}"


def newest(cells: list[Cell]) -> list[Cell]:
    """Of the findings of one experiment on one grid point, the newest version with the most seeds."""
    best: dict[tuple[str, ...], Cell] = {}
    for cell in sorted(cells, key=lambda cell: (cell.version, len(cell.inputs))):
        best[cell.config["experiment"], cell.config["corpus"], model_of(cell)] = cell
    order = [*ENCODERS.values()]
    return sorted(best.values(), key=lambda cell: (order.index(model_of(cell).split()[0]), model_of(cell)))


def main(store_url: str) -> None:
    """Every corpus of the store."""
    store = Store(store_url)
    cells = newest([cell for key in store.done() if (cell := store.cell(key)).stage == "finding"])
    findings = findings_of(cells, store)
    findings["model"] = findings["cell"].map({cell.key: model_of(cell) for cell in cells})
    findings = findings[
        findings["experiment"].isin(("performance", "importance", "permutation", "adversary"))
    ]
    for corpus, of_corpus in findings.groupby("corpus"):
        settings = {str(sorted(c.config["model"].items())) for c in cells if c.config["corpus"] == corpus}
        seeds = sorted(of_corpus["seeds"].unique().tolist())
        print(f"\n## {corpus}\n\nSeeds: {seeds[-1]}. {len(settings)} model settings.\n")
        for title, measures in TABLES.items():
            lines = table(of_corpus, measures)
            if len(lines) > 2:
                print(f"\n### {corpus}: {title}\n\n" + "\n".join(lines))
        keys = of_corpus.drop_duplicates("cell")
        print(
            "\nCells: "
            + "; ".join(f"{row.model} {row.experiment} `{row.cell[:12]}`" for row in keys.itertuples())
            + "."
        )


if __name__ == "__main__":
    main(sys.argv[1])
