"""What a model answers to a part of a text: the tokens of all other units are deleted, and the rest is read.

Units are deleted, never masked, and every part keeps its own length (A25). This is brute force: leave-one-out
and the explainers have faster roads, which must come to the same.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.corpus.vocabulary import PAD
from attentest.model.batch import Batch
from attentest.model.seam import Model, Network, Reading
from attentest.model.subset import selected_batch

Chosen = Int[Tensor, " part"]  # rows of a batch, any of them any number of times
Kept = Bool[Tensor, "part unit"]
Answers = Float[Tensor, "part class"]
AT_ONCE = 4096  # parts in a pass: more of them gain nothing
OVERHEAD, GPU_OVERHEAD = 48, 4096  # places that a pass could read in the time that it takes besides them


def units_of_tokens(model: Model, reading: Reading) -> Int[Tensor, "batch token"]:
    """The unit that each token belongs to; what stands on padding means nothing."""
    if reading.mask.shape[1] == 1:
        return torch.zeros_like(reading.batch.tokens)
    if model.gathers and reading.batch.sentences is not None:
        return reading.batch.sentences
    places = torch.arange(reading.batch.mask.shape[1], device=reading.mask.device)
    return places.expand_as(reading.batch.mask)


def lengths_of_parts(model: Model, reading: Reading, texts: Chosen, kept: Kept) -> Int[np.ndarray, " part"]:
    """How many tokens each part has."""
    sizes = torch.zeros(reading.mask.shape, dtype=torch.long, device=texts.device)
    sizes.scatter_add_(1, units_of_tokens(model, reading), reading.batch.mask.long())
    found: np.ndarray = (sizes[texts] * kept).sum(1).cpu().numpy()
    return found


def overhead(device: torch.device) -> int:
    """What one more pass costs, in places."""
    return OVERHEAD if device.type == "cpu" else GPU_OVERHEAD


def alike(group: np.ndarray, lengths: np.ndarray, most: int) -> Iterator[np.ndarray]:
    """A group in order of length, cut where a longer part would bring its shorter ones too much padding.

    That is more than the `most` places that another pass costs. So nearly all parts stand beside others of
    exactly their length where there are many of them.
    """
    begin, sizes = 0, lengths[group]
    for place in (np.flatnonzero(np.diff(sizes)) + 1).tolist():
        if (place - begin) * (sizes[place] - sizes[place - 1]) > most:
            yield group[begin:place]
            begin = place
    yield group[begin:]


def answers_read_anew(model: Model, reading: Reading, texts: Chosen, kept: Kept) -> Answers:
    """The logits of each part, read from the beginning."""
    reader, again = read_parts(model, reading, texts, kept)
    return reader.decide(again)


def read_parts(model: Model, reading: Reading, texts: Chosen, kept: Kept) -> tuple[Model, Reading]:
    """A reading of each part, and the model to decide with: where weights are stored, one with theirs."""
    unit = units_of_tokens(model, reading)[texts]
    batch = selected_batch(reading.batch, texts, reading.batch.mask.shape[1])
    batch, order = _shortened(model, batch, unit, kept)
    network = model.network
    if network is not None and network.projection.name == "stored":
        model = _guided_by_the_rest(network, batch.ids, reading.weights[texts], kept)
    return model, model.read(batch, embeddings=reading.embeddings[texts[:, None], order])


def _shortened(
    model: Model, batch: Batch, unit: Int[Tensor, "part token"], kept: Kept
) -> tuple[Batch, Int[Tensor, "part place"]]:
    """Each text in the part kept of it, and which of its tokens stands where; units are numbered afresh."""
    remains = batch.mask & kept.gather(1, unit)
    order = (~remains).int().argsort(dim=1, stable=True)[:, : int(remains.sum(1).max())]
    mask = remains.gather(1, order)
    afresh = (kept.cumsum(1) - 1).gather(1, unit).gather(1, order)
    shortened = replace(
        batch,
        ids=tuple(map(str, range(len(mask)))),
        tokens=torch.where(mask, batch.tokens.gather(1, order), PAD),
        mask=mask,
        sentences=torch.where(mask, afresh, 0) if model.gathers else None,
    )
    return shortened, order


def _guided_by_the_rest(
    model: Network, ids: tuple[str, ...], stored: Float[Tensor, "part unit"], kept: Kept
) -> Network:
    """The same model with a guide that gives each part what remains of its text's weights."""
    rest = stored.masked_fill(~kept, 0.0)
    rest = rest / rest.sum(1, keepdim=True)
    guided = copy.copy(model)
    guided.guide = {name: row[there].cpu().numpy() for name, row, there in zip(ids, rest, kept, strict=True)}
    return guided
