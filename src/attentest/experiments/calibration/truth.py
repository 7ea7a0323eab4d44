"""The truth about a model: from the rule that makes it or, where it was trained, by brute force.

`points` is the mean over texts of tau-b between the weights and how much each word contributes; undefined in
no text, it is 0: weights that are all alike point nowhere. `depends` is the mean over texts and units of the
change of output, in total variation, if all the weight goes to that unit. Both come from the rule's own
arithmetic in numpy. A trained model has no rule: its contributions are the changes of output when a word is
deleted and the model reads what is left from the beginning, one text at a time, on no fast road.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from attentest.corpus.batch import IndexedSplit
from attentest.corpus.example import Example
from attentest.findings.rank_agreement import kendalls
from attentest.model.constructed import is_constructed
from attentest.model.constructed_model import truth_in
from attentest.model.decoder import distribution
from attentest.model.seam import AttentionModel

TEXTS = 40  # behind the truth: it hardly differs between texts, and brute force is slow


@dataclass(frozen=True)
class Truth:
    """How well weights point, and how far the output depends on them."""

    points: float
    depends: float


def truth_of(model: AttentionModel, examples: Sequence[Example]) -> Truth:
    """By the rule, or by brute force."""
    some = examples[:: max(1, len(examples) // TEXTS)][:TEXTS]
    of_text = _by_rule if is_constructed(model.config.encoder) else _by_brute_force
    pairs = [of_text(model, example) for example in some]
    taus = np.array([tau for tau, _ in pairs])
    points = float(np.nanmean(taus)) if np.isfinite(taus).any() else 0.0
    return Truth(points, float(np.mean([moved for _, moved in pairs])))


def _by_rule(model: AttentionModel, example: Example) -> tuple[float, float]:
    weights, contributions, moved = truth_in(model, example)
    return _tau(weights, contributions), float(moved.mean())


@torch.no_grad()
def _by_brute_force(model: AttentionModel, example: Example) -> tuple[float, float]:
    def read(tokens: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        one = replace(example, tokens=tuple(tokens), rationale=None)
        split = IndexedSplit([one], model.vocabulary, model.labels)
        reading = model.read(split.batch(np.zeros(1, dtype=np.int64)).to(model.device))
        corners = torch.eye(reading.weights.shape[1]).to(reading.weights)[None]
        own, moved = distribution(model.decide(reading)), distribution(model.decide(reading, corners))[0]
        return reading.weights[0].cpu().numpy(), own.cpu().numpy(), moved.cpu().numpy()

    words = example.tokens
    weights, own, at_corners = read(words)
    without = np.array([read([*words[:place], *words[place + 1 :]])[1][0] for place in range(len(words))])
    changes = 0.5 * np.abs(without - own).sum(1)
    return _tau(weights, changes), float(0.5 * np.abs(at_corners - own).sum(1).mean())


def _tau(weights: np.ndarray, contributions: np.ndarray) -> float:
    found, _ = kendalls(weights[None], contributions[None], np.array([len(weights)]))
    return float(found[0])
