"""What a model answers to parts of its texts: the one question that explainers by perturbation ask.

All parts of all texts are answered together, parts of alike length in one pass, and alike parts once.

There are two roads to the answers: reading each part anew, or weighing what was read. Units are deleted,
never masked, and every part keeps its own length, as in leave-one-out (A25). Where no token sees another,
deleting some leaves the states of the others as they were: only attention is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.evidence.erasure import leave_one_out as erasure
from attentest.evidence.erasure.drawn_units import Units
from attentest.evidence.erasure.known import KnownParts
from attentest.evidence.erasure.leave_one_out import encoder_in_words
from attentest.evidence.erasure.parts import (
    AT_ONCE,
    Answers,
    Chosen,
    Kept,
    alike,
    answers_read_anew,
    lengths_of_parts,
    overhead,
)
from attentest.evidence.erasure.remainder import carried, parts_of, reweighed
from attentest.evidence.removal.decisions import explained_class
from attentest.model.batch import buckets
from attentest.model.divergence import total_variation
from attentest.model.networks.decoder import distribution
from attentest.model.networks.encoders import TokenWise
from attentest.model.seam import Model, Reading
from attentest.refusal import Refusal

Road = Callable[[Model, Reading, Chosen, Kept], Answers]


def road_for(model: Model, road: str | None) -> Road:
    """The road of this name, or the fastest there is."""
    alone = model.network is not None and isinstance(model.network.encoder, TokenWise)
    possible = ("token-wise", "whole") if alone else ("whole",)
    if road not in (None, *possible):
        raise Refusal(
            f"parts of texts with {encoder_in_words(model)}",
            got=f"the road {road!r}",
            needs=" or ".join(map(repr, possible)),
            way_out="Leave the road out to take the fastest.",
        )
    return ROADS[road or possible[0]]


def token_wise(model: Model, reading: Reading, texts: Chosen, kept: Kept) -> Answers:
    """Attention over the units kept, and the answer to what it sums up: nothing is read again."""
    network = parts_of(model)
    weights = reweighed(network, reading.weights[texts], reading.scores[texts], kept)
    sums = torch.bmm(weights[:, None], carried(reading)[texts])[:, 0]
    if reading.bias is not None:
        logits = sums + reading.bias
    else:
        logits = network.decoder(sums, None if reading.query is None else reading.query[texts])
    if reading.batch.answers is None:
        return logits
    return logits.masked_fill(~reading.batch.answers[texts], float("-inf"))


ROADS: dict[str, Road] = {"token-wise": token_wise, "whole": answers_read_anew}


PerUnit = Float[Tensor, "batch unit"]
PerText = Float[Tensor, " batch"]
Parts = Bool[Tensor, "batch variant unit"]


@final
@dataclass(frozen=True)
class Explained:
    """The class a text is explained for (predicted, if no other is named), its probability, and unread."""

    predicted: Int[Tensor, " batch"]
    probability: PerText
    unread: PerText


def explained(model: Model, reading: Reading) -> Explained:
    """The answer to the whole text, and to none of it.

    Over no units attention rests nowhere, and our own models answer to that. What a foreign model would do
    with an empty text nobody knows: it has no reason to prefer a class, so all are alike there. Another
    answer would move the Shapley values of a text all by the same amount, and so no ranking by them.
    """
    with torch.no_grad():
        logits = model.decide(reading)
        ours = model.network is not None
        nowhere = (
            model.decide(reading, torch.zeros_like(reading.weights)) if ours else torch.zeros_like(logits)
        )
    best = explained_class(reading, logits)
    likely, unread = (distribution(each).gather(1, best[:, None])[:, 0] for each in (logits, nowhere))
    return Explained(best, likely, unread)


def answers_to_parts(
    model: Model, reading: Reading, kept: Parts, *, road: str | None = None, known: KnownParts | None = None
) -> Float[Tensor, "batch variant"]:
    """The probability of each text's predicted class when only the units `kept` are left of it."""
    about, kept = explained(model, reading), kept & reading.mask[:, None]
    found = about.unread[:, None].repeat(1, kept.shape[1])
    texts, variants = kept.any(2).nonzero(as_tuple=True)
    if not len(texts):
        return found
    logits = logits_of_parts(model, reading, texts, kept[texts, variants], road=road, known=known)
    found[texts, variants] = distribution(logits).gather(1, about.predicted[texts, None])[:, 0]
    return found


def logits_of_parts(
    model: Model,
    reading: Reading,
    texts: Chosen,
    parts: Kept,
    *,
    road: str | None = None,
    known: KnownParts | None = None,
) -> Answers:
    """The answer to each part, none of them empty; what is `known` is not asked again, and is known after."""
    first, again = _distinct(texts, parts)
    texts, parts = texts[first], parts[first]
    if known is None:
        return _answered(model, reading, texts, parts, road)[again]
    names = known.names(reading, texts, parts)
    asked = known.unknown(names).nonzero()[:, 0].to(texts.device)
    if len(asked):
        logits = _answered(model, reading, texts[asked], parts[asked], road)
        known.add([names[place] for place in asked.tolist()], logits)
    return known.found(names, reading.embeddings)[again]


def changes_without(
    model: Model, reading: Reading, *, known: KnownParts | None = None, units: Units | None = None
) -> PerUnit:
    """Leave-one-out from the answers to parts: the total variation between a text with and without a unit.

    0 for what is not among the `units` that are named.
    """
    rest = (
        ~torch.eye(reading.mask.shape[1], dtype=torch.bool, device=reading.mask.device)
        & reading.mask[:, None]
    )
    asked = (reading.mask if units is None else units) & (reading.mask.sum(1) > 1)[:, None]
    texts, places = asked.nonzero(as_tuple=True)
    found = reading.embeddings.new_zeros(reading.mask.shape)
    if len(texts):
        logits = logits_of_parts(model, reading, texts, rest[texts, places], known=known)
        with torch.no_grad():
            own = distribution(model.decide(reading))
        found[texts, places] = total_variation(distribution(logits), own[texts])
    return without_lone_units(found, reading)


def without_lone_units(values: PerUnit, reading: Reading) -> PerUnit:
    """NaN where a text is one unit, of which there are no parts; 0 on padding."""
    alone = (reading.mask.sum(1) < 2)[:, None]
    return values.masked_fill(alone, float("nan")).masked_fill(~reading.mask, 0.0)


def _distinct(texts: Chosen, parts: Kept) -> tuple[Int[Tensor, " distinct"], Int[Tensor, " part"]]:
    """Where each distinct part first occurs, and which of them every part is.

    Short texts have few parts, and rankings often agree on what is on top.
    """
    number = texts.cpu().numpy().astype(np.uint32).view(np.uint8).reshape(-1, 4)
    rows = np.concatenate([number, np.packbits(parts.cpu().numpy(), axis=1)], axis=1)
    names = rows.view(f"V{rows.shape[1]}")[:, 0]
    _, first, again = np.unique(names, return_index=True, return_inverse=True)
    return torch.from_numpy(first).to(texts.device), torch.from_numpy(again).to(texts.device)


def _answered(model: Model, reading: Reading, texts: Chosen, parts: Kept, road: str | None) -> Answers:
    answer, logits, order = road_for(model, road), [], []
    with torch.no_grad():
        for some in _plan(model, reading, texts, parts):
            order.append(some)
            logits.append(answer(model, reading, texts[some], parts[some]))
    return torch.cat(logits)[torch.cat(order).argsort()]


def _plan(model: Model, reading: Reading, texts: Chosen, parts: Kept) -> Iterator[Int[Tensor, " some"]]:
    """Parts of alike length together, as many as memory allows."""
    lengths = lengths_of_parts(model, reading, texts, parts)
    cost = erasure.ROADS["whole"].floats_per_variant
    costs = np.array([cost(model, length) for length in range(lengths.max() + 1)])[lengths]
    floats = erasure.FLOATS if texts.device.type == "cpu" else erasure.GPU_FLOATS
    for group in buckets(costs, AT_ONCE, tokens=floats):
        for some in alike(group, lengths, overhead(texts.device)):
            yield torch.from_numpy(some).to(texts.device)
