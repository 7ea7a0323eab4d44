"""What the demo shows beside its findings: a distribution, published numbers, texts under other weights."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from attentest.compare.points import GridPoint, grid_points
from attentest.compare.stored import Stored
from attentest.compare.table import compare
from attentest.experiments.importance.conclude import null_of_texts
from attentest.gallery.answer import answer, forest_lines
from attentest.gallery.texts import ShownText, most_opposed, opposed_texts
from attentest.statistics.density import finite, shares
from attentest.store.store import Store

Document = dict[str, Any]
STAND_IN, ENCODER = "babi-1-simulated", "bilstm"
PAPER, TABLE = "jain-wallace-2019", "Table2_slides"
SCREEN = 40  # words of a text that leave room on a screen
EDGES = np.linspace(-1.0, 1.0, 33)


def gallery(cells: Collection[str], store_url: str, shelf: Mapping[str, str]) -> Document:
    """A histogram, pairs of heat maps and published numbers, from these finding cells of the store."""
    points = [
        point
        for point in grid_points(Stored(Store(store_url)))
        if any(finding.cell.key in cells for finding in point.findings)
    ]
    shown = [point for point in points if point.axes["encoder"] == ENCODER]
    rows = compare(PAPER, store_url, shelf)["rows"] if points else []
    return {
        "first_look": next((look for point in shown if (look := first_look(point))), None),
        "histogram": next((_histogram(point) for point in shown if point.corpus == STAND_IN), None),
        "pairs": sorted([pair for point in shown for pair in _pairs(point)], key=_not_looked_for),
        "published": [
            row
            for row in rows
            if (row["table"], row["corpus"]) == (TABLE, STAND_IN) and set(row["cells"]) <= set(cells)
        ],
    }


def first_look(point: GridPoint) -> Document | None:
    """Of a model: a typical text under its attention and the furthest one, and what the tests say."""
    finding, corpus = point.of("adversary"), point.stored_corpus
    rows = None if finding is None else finding.rows()
    if rows is None or corpus is None or corpus.test is None:
        return None
    row = _typical(rows, f"exact@{point.tolerance:g}")
    if row is None or row["id"] not in corpus.test:
        return None
    text = corpus.test[row["id"]]
    scores = point.of("performance")
    accuracy = None if scores is None else scores.row("accuracy", "overall")
    return _about(point) | {
        **{name: row[name] for name in ("id", "label", "predicted")},
        "tokens": text.tokens,
        "rationale": text.rationale,
        "weights": [float(weight) for weight in row["weights"]],
        "other_weights": [float(weight) for weight in row["exact_weights"]],
        "jsd": float(row[f"exact@{point.tolerance:g}"]),
        "moves": point.tolerance,
        "accuracy": None if accuracy is None else accuracy["estimate"],
        "texts": None if accuracy is None else accuracy["n"],
        "says": answer([point]),
        "tests": [
            {"test": line.label, "short": line.short, "power": line.power, "auc": line.auc}
            | {name: getattr(line, name) for name in ("estimate", "low", "high", "null")}
            for line in forest_lines(point)
        ],
    }


def _typical(rows: pd.DataFrame, far: str) -> dict[str, Any] | None:
    """Of the texts that the model gets right, the one whose attention can move as far as that of most."""
    if not {"weights", "exact_weights", far} <= set(rows.columns):
        return None
    kept = rows[(rows["subject"] == "trained") & rows["weights"].notna() & rows[far].notna()]
    kept = kept[kept["predicted"] == kept["label"]]
    kept = kept[kept["length"] <= SCREEN] if (kept["length"] <= SCREEN).any() else kept
    if kept.empty:
        return None
    kept = kept.assign(off=(kept[far] - kept[far].median()).abs())
    return {str(name): value for name, value in kept.sort_values(["off", "id"]).iloc[0].items()}


def _about(point: GridPoint) -> Document:
    return {name: point.axes[name] for name in ("corpus", "encoder", "attention")}


def _histogram(point: GridPoint) -> Document | None:
    """Kendall's tau of attention and gradients, in bins, beside its null."""
    finding = point.of("importance")
    rows = None if finding is None else finding.rows()
    if rows is None:
        return None
    texts = rows[rows["subject"] == "trained"]
    tau, (null, _) = texts["tau_gradient"], null_of_texts(texts, "gradient")
    return _about(point) | {
        "edges": EDGES.tolist(),
        "shares": shares(tau, EDGES).tolist(),
        "null": shares(null, EDGES).tolist(),
        "mean": _mean(finite(tau)),
        "null_mean": _mean(finite(null)),
        "n": len(finite(tau)),
    }


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else math.nan


def _pairs(point: GridPoint) -> Sequence[Document]:
    """The text whose attention can move furthest."""
    finding, corpus = point.of("adversary"), point.stored_corpus
    rows = None if finding is None else finding.rows()
    if rows is None or corpus is None:
        return []
    chosen = most_opposed(rows, point.tolerance)
    furthest = chosen.sort_values(["both", "far", "id"], ascending=[False, False, True]).head(1)
    texts = opposed_texts(furthest, point.tolerance, corpus.words(furthest["id"]) or {})
    return [_about(point) | _plain(text) for text in texts if text.fits]


def _not_looked_for(pair: Document) -> int:
    return sum(strip["weights"] is None for strip in pair["strips"])


def _plain(text: ShownText) -> Document:
    return {
        **{name: getattr(text, name) for name in ("id", "label", "predicted")},
        "tokens": list(text.tokens),
        "query": list(text.query),
        "strips": [
            {"name": strip.name, "weights": strip.weights, "jsd": strip.jsd, "change": strip.change}
            for strip in text.strips
        ],
    }
