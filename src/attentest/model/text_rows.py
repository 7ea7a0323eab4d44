"""What a model says of each text of a split, as plain rows: what is stored, guided by and imitated."""

from __future__ import annotations

from typing import Any

import torch

from attentest.corpus.anonymised import anonymised
from attentest.corpus.example import Corpus, Split
from attentest.model.batch import IndexedSplit
from attentest.model.reader import readings
from attentest.model.seam import Model


@torch.no_grad()
def text_rows(model: Model, corpus: Corpus, split: Split, *, scores: bool = False) -> list[dict[str, Any]]:
    """id, split, label, logits, weights (and scores): one row a text, in the order of the split, unpadded."""
    assert model.origin is not None, "only a model that was made from a corpus is asked about its splits"
    examples = anonymised(corpus, model.origin.config.omit).splits()[split]
    indexed = IndexedSplit(examples, model.origin.vocabulary, corpus.labels)
    found: dict[int, dict[str, Any]] = {}
    for rows, reading in readings(model, indexed):
        logits = model.decide(reading).cpu().numpy()
        per_unit = {"weights": reading.weights.cpu().numpy()}
        if scores:
            per_unit["scores"] = reading.scores.cpu().numpy()
        lengths = reading.mask.sum(1).tolist()
        for place, row in enumerate(rows):
            found[int(row)] = {
                "id": examples[row].id,
                "split": split,
                "label": examples[row].label,
                "logits": logits[place],
                **{name: units[place, : lengths[place]] for name, units in per_unit.items()},
            }
    return [found[row] for row in sorted(found)]
