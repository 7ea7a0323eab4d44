"""The explorer of a grid point: every text of each of its models, as a page and the data it takes.

The table of the first seed travels at once, those of the others when they are asked for. Words and weights
lie in shards, and a text costs no more than the two it is in. Words are the corpus's, so all models of a
corpus share them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from attentest.charts.scatter import texts_scatter
from attentest.compare.points import GridPoint
from attentest.compare.stored import StoredCorpus, StoredText
from attentest.evidence.importances.names import IMPORTANCES, WITH_NULLS, column
from attentest.gallery.examples import NUMBERS, Examples, examples
from attentest.gallery.pages import ExplorerPage
from attentest.gallery.rows import PointRows
from attentest.gallery.shards import shard
from attentest.gallery.strips import chunks, head, packed, words
from attentest.store.cell import short

Files = dict[str, str]
NO_WORDS = "The store was passed on without its texts."
NO_ROWS = "The store holds no rows of this model's texts."
PRIVATE = "Texts of this corpus need credentials: they are on no page unless --include-text asks for it."


@final
@dataclass(frozen=True, eq=False)
class Words:
    """The test texts of one corpus: in which order, and where each shard begins."""

    name: str
    texts: Mapping[str, StoredText]
    starts: Sequence[int]

    @property
    def names(self) -> list[str]:
        """What the shards of words are called."""
        return [f"data/{self.name}-heads.js", *(f"data/{self.name}-{n}.js" for n in range(len(self.starts)))]

    def files(self) -> Files:
        """The shards of words."""
        several = list(self.texts.values())
        heads = shard(f"{self.name}-heads", [head(text) for text in several])
        return {f"data/{self.name}-heads.js": heads} | {
            f"data/{self.name}-{n}.js": shard(f"{self.name}-{n}", [words(text) for text in several[a:b]])
            for n, (a, b) in enumerate(spans(self.starts, len(several)))
        }


def spans(starts: Sequence[int], length: int) -> list[tuple[int, int]]:
    """From where to where each shard goes."""
    return list(zip(starts, [*starts[1:], length], strict=True))


def corpus_words(corpus: StoredCorpus | None) -> Words | None:
    """The corpus's texts, cut into shards; None where the store has none."""
    texts = None if corpus is None else corpus.test
    if corpus is None or not texts:
        return None
    starts = chunks([len(text.tokens) for text in texts.values()])
    return Words(f"texts-{short(corpus.cell.key)}", texts, starts)


def explorer(
    rows: PointRows, held: Words | None, commands: Sequence[str], *, private: bool, every: bool
) -> tuple[ExplorerPage, Files]:
    """The page and its shards. With `every`, each text has its attention; else those that were kept whole."""
    point = rows.point
    stem = point.file.removesuffix(".html")
    every_seed = [] if private else list(examples(rows))
    names = {
        found.seed: stem if n == 0 else f"{stem}-seed-{found.seed}" for n, found in enumerate(every_seed)
    }
    page = ExplorerPage(
        point=point,
        file=f"explore-{point.file}",
        shard=f"data/{stem}.js" if every_seed else "",
        seeds=list(names),
        texts=len(every_seed[0].table) if every_seed else 0,
        missing=PRIVATE if private else "" if every_seed else NO_ROWS,
        commands=commands,
    )
    files = Files()
    for found in every_seed:
        name = names[found.seed]
        ordered = _ordered(found, held)
        weighed = _weights(point, found, every=every and held is not None)
        files |= _strips(f"{name}-weights", list(ordered.index), weighed, held)
        told = _told(point, found, ordered, weighed, held, f"{name}-weights")
        files[f"data/{name}.js"] = shard(name, told | {"commands": list(commands), "seeds": _seeds(names)})
    return page, files


def _seeds(names: Mapping[int, str]) -> list[dict[str, Any]]:
    """Every seed, and the shard that its texts are in."""
    return [{"seed": seed, "name": name} for seed, name in names.items()]


def _ordered(found: Examples, held: Words | None) -> pd.DataFrame:
    """The table in the order of the corpus, so that a text's number says in which shard it is."""
    if held is None:
        return found.table
    table = found.table.reindex([each for each in held.texts if each in found.table.index])
    words = [len(held.texts[each].tokens) for each in table.index]
    return table.assign(length=table["length"].where(table["length"].notna(), words))


def _weights(point: GridPoint, found: Examples, *, every: bool) -> dict[str, dict[str, Any]]:
    """The strips of each text by id: of all its attention, of those kept whole whatever was kept."""
    weighed: dict[str, dict[str, Any]] = {}
    if every:
        kept = (finding.weights(found.seed) for finding in point.findings)
        first = next((weights for weights in kept if weights), {})
        weighed = {each: {"own": weights} for each, weights in first.items()}
    for each, vectors in zip(found.vectors.index, found.vectors.to_dict("records"), strict=True):
        weighed[each] = weighed.get(each, {}) | {str(k): v for k, v in vectors.items() if v is not None}
    strips = {each: packed(vectors) for each, vectors in weighed.items()}
    return {
        each: strip | {"effects": found.effects.get(each, {})}
        for each, strip in strips.items()
        if strip is not None
    }


def _strips(name: str, ids: Sequence[str], weighed: Mapping[str, Any], held: Words | None) -> Files:
    """The shards of weights, which begin where those of the words do."""
    if held is None:
        return {}
    place = {each: n for n, each in enumerate(held.texts)}
    here = {place[each]: weighed[each] for each in ids if each in weighed}
    parts = spans(held.starts, len(held.texts))
    cut = [{str(n): here[n] for n in range(a, b) if n in here} for a, b in parts]
    return {f"data/{name}-{n}.js": shard(f"{name}-{n}", part) for n, part in enumerate(cut)}


def _told(
    point: GridPoint,
    found: Examples,
    table: pd.DataFrame,
    weighed: Mapping[str, Any],
    held: Words | None,
    weights: str,
) -> dict[str, Any]:
    """What the table's page takes: columns, not rows, and names by their number."""
    labels = list(dict.fromkeys([*(point.labels or ()), *table["label"], *table["predicted"]]))
    numbered = {label: n for n, label in enumerate(labels)}
    whole = set(found.vectors.index)
    place = {each: n for n, each in enumerate(held.texts)} if held else {}
    return {
        "corpus": point.corpus,
        "model": point.model,
        "seed": found.seed,
        "tolerance": point.tolerance,
        "labels": labels,
        "columns": [
            {"name": name, "says": says, "from": source}
            for name, (says, source) in NUMBERS.items()
            if table[name].notna().any()
        ],
        "importances": [
            {"name": name, "column": column(name)}
            for name in IMPORTANCES
            if name in WITH_NULLS
            or column(name) in found.vectors
            or table[f"tau_{column(name)}"].notna().any()
        ],
        "ids": list(table.index),
        "places": np.array([place.get(each, -1) for each in table.index], dtype=np.int64),
        "label": np.array([numbered[name] for name in table["label"]], dtype=np.int64),
        "predicted": np.array([numbered[name] for name in table["predicted"]], dtype=np.int64),
        "whole": np.array([each in whole for each in table.index], dtype=np.int64),
        "weighed": np.array([each in weighed for each in table.index], dtype=np.int64),
        "numbers": {
            name: [float(value) for value in table[name]] for name in NUMBERS if table[name].notna().any()
        },
        "texts": held.name if held else "",
        "weights": weights if held else "",
        "starts": list(held.starts) if held else [],
        "missing": "" if held else NO_WORDS,
        "scatter": texts_scatter(),
    }
