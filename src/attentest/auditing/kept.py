"""Answers that outlive an audit: every question is a cell of a store, written when it is done, or not at all.

The rows are kept, and the answers to parts of texts that later questions share; findings follow from them. So
the same audit again begins where it was interrupted, and ends with the same numbers. No text is kept, but the
ids of texts are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, final

import pandas as pd

from attentest.auditing.provenance import digest_of_texts, placed, versions
from attentest.auditing.questions import Auditing
from attentest.experiments.contract import Row
from attentest.model.batch import AbstractSplit
from attentest.model.seam import Model
from attentest.store.cell import Cell
from attentest.store.store import Store
from attentest.store.tables import from_parquet, to_parquet

VERSION = 2  # of how a question is asked: a higher one asks again
ROWS = "rows.parquet"


@final
class KeptQuestions:
    """The questions of one audit, by all that their answers depend on."""

    def __init__(self, store: Store, model: Model, audit: Auditing, about: Mapping[str, Any]) -> None:
        self.store, self.subjects = store, audit.both
        self.config = json.loads(
            json.dumps(
                {
                    "model": {**about, **placed(model), "attention": model.capabilities.attention},
                    "kind": f"{type(model).__module__}.{type(model).__qualname__}",
                    "settings": settings_of(model),
                    "labels": model.labels,
                    "texts": digest_of_split(audit.subject.texts),
                    "at_once": audit.subject.texts.at_once,
                    "budget": asdict(audit.budget),
                    "subjects": [each.name for each in audit.both],
                    "versions": versions(),
                },
                default=str,
            )
        )

    def cell(self, question: str, seed: int) -> Cell:
        """What the answers to a question are made from."""
        config = {**self.config, "question": question, "seed": seed}
        return Cell(stage="audit", version=VERSION, config=config)

    def find(self, question: str, seed: int) -> tuple[pd.DataFrame, float] | None:
        """The rows of a question that was answered before, and the seconds it took; what it knew is known."""
        key = self.cell(question, seed).key
        if not self.store.is_whole(key):
            return None
        for each in self.subjects:
            if each.known is not None:
                each.known.take(self.store.read(key, f"{each.name}.npz"))
        return from_parquet(self.store.read(key, ROWS)), float(self.store.about(key)["seconds"])

    def keep(
        self, question: str, seed: int, rows: Sequence[Row], seconds: float, known: Sequence[int]
    ) -> pd.DataFrame:
        """Write the answers, and all that was found beyond what was `known`; the rows as they are written."""
        written = {ROWS: to_parquet(rows)}
        for each, begin in zip(self.subjects, known, strict=True):
            if each.known is not None:
                written[f"{each.name}.npz"] = each.known.written(begin)
        self.store.write(self.cell(question, seed), written, {"seconds": seconds})
        return from_parquet(written[ROWS])


def digest_of_split(texts: AbstractSplit) -> str:
    """The sha256 of the texts as the model reads them, and of what people marked in them."""
    found = hashlib.sha256(digest_of_texts(texts.examples).encode())
    for numbers in (texts.tokens, texts.queries, texts.sentences or ()):
        for each in numbers:
            found.update(each.tobytes() + b"\n")
    marks = [None if e.rationale is None else list(map(int, e.rationale)) for e in texts.examples]
    found.update(json.dumps(marks).encode())
    return found.hexdigest()


def settings_of(model: Any) -> Any:
    """How the parameters are used, as far as a model says it: its own configuration, or its library's."""
    if model.origin is not None:
        return asdict(model.origin.config)
    modules = model.modules() if hasattr(model, "modules") else ()
    configs = [module.config for module in modules if hasattr(module, "config")]
    return next((config.to_dict() for config in configs if hasattr(config, "to_dict")), None)
