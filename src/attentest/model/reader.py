"""Reading a whole split: batches of alike length, no graph, results in the order of the examples."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attentest.model.batch import AbstractSplit, buckets
from attentest.model.seam import Model, Reading

# Enough texts that products are large, few enough tokens that 400-token texts stay within memory.
TEXTS, TOKENS = 128, 16_384
HELD = 64_000_000  # numbers in readings that are held for others: a quarter of a gigabyte


def together(split: AbstractSplit, *, parts: bool = False) -> int:
    """How many texts are read together at most.

    Whoever asks about `parts` puts those of alike length together anyway: the more texts they are of, the
    less of a pass is padding.
    """
    return split.at_once or (None if parts else split.alike) or TEXTS


def readings(
    model: Model, split: AbstractSplit, among: Collection[int] | None = None, *, parts: bool = False
) -> Iterator[tuple[np.ndarray, Reading]]:
    """Every batch of the split, or of some rows `among` it, with the rows it holds.

    The readings have no graph, but gradient mode is the consumer's own between two of them: whoever
    goes on to take gradients can, and whoever only decides turns it off.
    """
    chosen = np.arange(len(split)) if among is None else np.array(sorted(among), dtype=np.int64)
    for places in buckets(split.lengths[chosen], together(split, parts=parts), tokens=TOKENS):
        rows = chosen[places]
        yield rows, _read(model, split, rows)


@torch.no_grad()
def _read(model: Model, split: AbstractSplit, rows: np.ndarray) -> Reading:
    """The reading of these rows, made or held; the model is held beside it, so that its id stays its own."""
    held, name = split.held, (id(model), rows.tobytes())
    if held is not None and name in held:
        return held[name][1]
    if held is not None and (of_heads := model.capabilities.of_heads) is not None:
        reading = of_heads(_read(model.with_heads, split, rows))
    else:
        reading = model.read_distinct(split.batch(rows).to(model.device))
    if held is not None and sum(size for _, _, size in held.values()) < HELD:
        tensors = [*vars(reading).values(), *reading.kept.values()]
        held[name] = model, reading, sum(t.numel() for t in tensors if isinstance(t, Tensor))
    return reading


@torch.no_grad()
def split_logits(model: Model, split: AbstractSplit) -> Float[Tensor, "text class"]:
    """The logits of every text, in the order of the examples."""
    order, logits = [], []
    for rows, reading in readings(model, split):
        order.append(rows)
        logits.append(model.decide(reading).detach().cpu())
    return torch.cat(logits)[torch.from_numpy(np.argsort(np.concatenate(order)))]
