"""The truth about a model: from the rule that makes it or, where it was trained, by brute force.

`points` is the mean over texts of tau-b between the weights and how much each word contributes; undefined in
no text, it is 0: weights that are all alike point nowhere. `depends` is the mean over texts and units of the
change of output, in total variation, if all the weight goes to that unit. Both come from the rule's own
arithmetic in numpy. A trained model has no rule: its contributions are the changes of output when a word is
deleted and the model reads what is left from the beginning, one text at a time, by none of the faster methods
that the tests use. Outputs are compared in double precision: where a model is sure, changes are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch

from attentest.constructed.model import truth_in
from attentest.corpus.example import Example
from attentest.model.constructions import is_constructed
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Model
from attentest.refusal import Refusal
from attentest.statistics.rank_agreement import kendalls

TEXTS = 40  # behind the truth: it hardly differs between texts, and brute force is slow


@final
@dataclass(frozen=True)
class Truth:
    """How well weights point, and how far the output depends on them."""

    points: float
    depends: float


def truth_of(model: Model, examples: Sequence[Example]) -> Truth:
    """By the rule of a construction; of a trained model by brute force."""
    some = examples[:: max(1, len(examples) // TEXTS)][:TEXTS]
    if model.origin is not None and is_constructed(model.origin.config.encoder):
        pairs = [_by_rule(model, example) for example in some]
    else:
        _check_weighs_words(model)
        pairs = [_by_brute_force(model, example) for example in some]
    taus = np.array([tau for tau, _ in pairs])
    points = float(np.nanmean(taus)) if np.isfinite(taus).any() else 0.0
    return Truth(points, float(np.mean([moved for _, moved in pairs])))


def _check_weighs_words(model: Model) -> None:
    """Brute force deletes words, so that every weight must belong to one word."""
    network = model.network
    if network is None:
        got = "a model of another library"
    elif network.gathers:
        got = f"the hierarchical encoder {network.config.encoder!r}, whose weights belong to sentences"
    elif network.attention is None:
        got = f"the attention {network.config.attention!r}, which has one unit for the whole text"
    else:
        return
    raise Refusal(
        "the truth about a trained model",
        got=got,
        needs="a model trained here that gives every word a weight",
        way_out="Use another encoder or attention, or a construction.",
    )


def _by_rule(model: Model, example: Example) -> tuple[float, float]:
    weights, contributions, moved = truth_in(model, example)
    return _tau(weights, contributions), float(moved.mean())


@torch.no_grad()
def _by_brute_force(model: Model, example: Example) -> tuple[float, float]:
    words = example.tokens
    weights, own, at_corners = _read(model, example, words)
    shortened = [] if len(words) < 2 else [words[:place] + words[place + 1 :] for place in range(len(words))]
    changes = np.array([_total_variation(_read(model, example, rest)[1], own) for rest in shortened])
    tau = _tau(weights, changes) if shortened else np.nan
    return tau, float(np.mean([_total_variation(output, own) for output in at_corners]))


def _read(
    model: Model, example: Example, words: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of some words of a text: weights, output, and the output if all the weight goes to each unit."""
    one = replace(example, tokens=words, rationale=None, sentences=None, text=None)
    split = model.split([one])
    reading = model.read(split.batch(np.zeros(1, dtype=np.int64)).to(model.device))
    corners = torch.eye(len(words)).to(reading.weights)[None]
    outputs = [distribution(model.decide(reading, given).double())[0] for given in (None, corners)]
    weights, own, at_corners = (found.cpu().numpy() for found in (reading.weights[0], *outputs))
    return weights, own, at_corners


def _total_variation(output: np.ndarray, other: np.ndarray) -> float:
    return float(0.5 * np.abs(output - other).sum())


def _tau(weights: np.ndarray, contributions: np.ndarray) -> float:
    found, _ = kendalls(weights[None], contributions[None], np.array([len(weights)]))
    return float(found[0])
