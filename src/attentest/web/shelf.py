"""The models of a store that can be asked, and texts to ask them about; nothing here needs torch."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, final

import pyarrow as pa
import pyarrow.parquet as pq

from attentest.refusal import Refusal
from attentest.store.cell import Cell, short
from attentest.store.provenance import Provenance
from attentest.store.store import Store
from attentest.web.contract import ExampleAnswer, Model

KEY = re.compile(r"[0-9a-f]{64}")
WEIGHTS = "model.safetensors"
STORED = "It weighs each text of its corpus as was stored for it, and knows no weights for any other."
OMITS = "Some words were cut out of all its texts beforehand, which is not done to what is typed here."


@final
class Shelf:
    """What a store has to offer. Cells never change, so what was read of one is kept."""

    def __init__(self, store: Store, private: Collection[str] = (), held: Sequence[Model] = ()) -> None:
        self.store, self.private, self.held = store, frozenset(private), tuple(held)
        self._seen: dict[str, Cell | None] = {}
        self._provenance = Provenance.of(store)
        self._lock = threading.Lock()
        self._texts = lru_cache(maxsize=4)(self._read_texts)

    def models(self) -> list[Model]:
        """Those that were given, then every model whose weights are here: by corpus, trained ones first."""
        with self._lock:
            for key in self.store.done():
                if key not in self._seen and KEY.fullmatch(key):
                    self._seen[key] = self._cell(key)
            cells = [(key, cell) for key, cell in self._seen.items() if cell is not None]
        models = [(key, cell) for key, cell in cells if cell.stage == "model"]
        here = (self._model(*each) for each in models if self.store.holds(each[0], WEIGHTS))
        return [*self.held, *sorted(here, key=_order)]

    def has_findings(self) -> bool:
        """Whether a report can be made of the store."""
        self.models()
        cells = [(key, cell) for key, cell in self._seen.items() if cell is not None]
        return any(c.stage == "finding" and self.store.holds(key, "findings.parquet") for key, c in cells)

    def _cell(self, key: str) -> Cell | None:
        """What the cell says of itself; a damaged one is no reason to show none of the others."""
        try:
            return self.store.cell(key)
        except (Refusal, KeyError, TypeError):
            return None

    def _model(self, key: str, cell: Cell) -> Model:
        config, labels, has_query = cell.config, [], False
        unreadable = STORED if config.get("projection") == "stored" else OMITS if config.get("omit") else ""
        try:
            about = json.loads(self.store.read(key, "config.json"))
            labels, has_query = list(map(str, about["labels"])), bool(about["has_query"])
        except (Refusal, ValueError, KeyError, TypeError) as error:
            unreadable = f"Its files cannot be read: {error}"
        return Model(
            key=key,
            corpus=self._corpus(cell),
            encoder=str(config.get("encoder", "bilstm")),
            attention=str(config.get("attention", "additive")),
            projection=str(config.get("projection", "softmax")),
            seed=int(config.get("seed", 0)),
            kind=_kind(config),
            trained_on=self._provenance.trained_on(key),
            labels=labels,
            has_query=has_query,
            unreadable=unreadable,
        )

    def _corpus(self, cell: Cell) -> str:
        held = self._seen.get(cell.inputs.get("corpus", ""))
        return str(held.config["name"] if held is not None else cell.where.get("corpus", "?"))

    def example(self, key: str, number: int) -> ExampleAnswer:
        """A text of the model's test split."""
        model = next((model for model in self.models() if model.key == key), None)
        if model is None:
            raise _nothing(f"model {short(key)}", "no such model with its weights", "a model of /api/models")
        if model in self.held:
            raise _nothing(f"model {model.name}", "no corpus of its own", "a model of the store")
        if model.corpus in self.private:
            raise _nothing(
                f"corpus {model.corpus}", "texts that need credentials", "--include-text, to show them here"
            )
        texts = self._texts(self.store.cell(key).inputs.get("corpus", ""))
        row = texts[number % len(texts)]
        return ExampleAnswer(
            text=" ".join(row["tokens"]),
            query=None if row["query"] is None else " ".join(row["query"]),
            label=row["label"],
            number=number % len(texts),
            of=len(texts),
        )

    def _read_texts(self, corpus: str) -> list[dict[str, Any]]:
        if not (corpus and self.store.holds(corpus, "examples.parquet")):
            raise _nothing(
                f"corpus {short(corpus)}", "no texts in the store", "a store that holds the corpus"
            )
        content = pa.BufferReader(self.store.read(corpus, "examples.parquet"))
        columns = ["tokens", "query", "label"]
        table = pq.read_table(content, columns=columns, filters=[("split", "==", "test")])
        return table.to_pylist()


def _order(model: Model) -> tuple[object, ...]:
    made = (model.encoder, model.attention, model.projection, model.seed, model.key)
    return (model.corpus, model.kind != "trained", model.kind, *made)


def _kind(config: Mapping[str, Any]) -> str:
    """What was done to the model, where that is not simply training."""
    done = []
    if config.get("epochs") == 0:
        done.append("untrained")
    if config.get("labels", "gold") != "gold":
        done.append("shuffled labels")
    if str(config.get("loss", "task")) != "task":
        done.append(str(config["loss"]).partition("(")[0])
    if config.get("guide"):
        done.append("guided")
    if config.get("omit"):
        done.append("anonymised")
    return ", ".join(done) or "trained"


def _nothing(what: str, got: str, needs: str) -> Refusal:
    return Refusal(what, got=got, needs=needs, way_out="Type a text of your own.")
