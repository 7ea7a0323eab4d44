"""Permutation (Jain & Wallace 2019, JW-4): the same weights on other tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.model.networks.decoder import distribution
from attentest.model.seam import Model, Reading

# Sorting keys of this many numbers at a time keeps memory in the tens of megabytes for any text length.
CHUNK = 4_000_000
KEY_BITS = 24  # of a random float in single precision


def orders(
    mask: Bool[Tensor, "batch unit"], count: int, *, rng: torch.Generator
) -> Int[Tensor, "batch variant unit"]:
    """`count` random orders of each row's real units; padding stays where it is.

    Sorting independent uniform keys gives every order the same chance. Padding gets keys above one, so it
    sorts behind all real units. A key is a multiple of 2^-24, so key and unit fit into one integer: sorting
    those is many times faster than asking for the places of a sort.
    """
    batch, units = mask.shape
    keys = torch.rand(batch, count, units, generator=rng).mul_(2**KEY_BITS)
    bits = units.bit_length()
    whole = torch.int32 if KEY_BITS + 1 + bits < 32 else torch.int64
    numbered = keys.to(whole).masked_fill_(~mask[:, None].cpu(), 2**KEY_BITS)
    numbered = numbered.bitwise_left_shift_(bits).bitwise_or_(torch.arange(units, dtype=whole))
    numbered.numpy().sort(axis=-1)
    return numbered.bitwise_and_(2**bits - 1).to(mask.device, torch.int64)


def permuted(
    weights: Float[Tensor, "batch unit"],
    mask: Bool[Tensor, "batch unit"],
    count: int,
    *,
    rng: torch.Generator,
) -> Float[Tensor, "batch variant unit"]:
    """Each row's weights in `count` random orders over its real units."""
    return weights[:, None].expand(-1, count, -1).gather(2, orders(mask, count, rng=rng))


def shared_orders(
    lengths: Int[Tensor, " batch"], count: int, *, rng: torch.Generator
) -> Iterator[tuple[Int[Tensor, " text"], Int[Tensor, "unit variant"]]]:
    """For every length in the batch its texts and `count` random orders that they share, one a column.

    What permuting does is asked of one text at a time, and for each text the orders are independent and
    uniform; that its neighbour meets the same ones changes nothing about its median and saves nearly all the
    drawing. An order of n units becomes one of n + 1 when the new unit takes a random place and the one that
    stood there goes to the end (Fisher and Yates, inside out), so all lengths grow one set of orders.
    """
    longest = int(lengths.max())
    drawn = torch.rand(longest, count, generator=rng, dtype=torch.float64).numpy()
    places = (drawn * np.arange(1, longest + 1)[:, None]).astype(np.int64)  # uniform over 0..n for unit n
    grown = torch.empty(longest, count, dtype=torch.int64)
    order, columns, units = grown.numpy(), np.arange(count), 0
    sizes, texts = np.unique_counts(lengths.cpu().numpy())
    by_length = lengths.argsort(stable=True).split(texts.tolist())
    for size, alike in zip(sizes.tolist(), by_length, strict=True):
        for unit in range(units, size):
            order[unit] = order[places[unit], columns]
            order[places[unit], columns] = unit
        units = size
        yield alike, grown[:size].to(lengths.device, copy=True)


def output_changes(
    model: Model, reading: Reading, count: int, *, rng: torch.Generator
) -> Float[Tensor, "batch variant"]:
    """The total variation between the output and that of each of `count` permutations.

    Nothing is encoded again. `permuted_logits` takes the fast road where the decision is affine.
    """
    own = distribution(model.decide(reading))[:, None]
    at_once = max(1, CHUNK // reading.weights.numel())
    changes = []
    for begun in range(0, count, at_once):
        logits = permuted_logits(model, reading, min(at_once, count - begun), rng=rng)
        changes.append(0.5 * (distribution(logits) - own).abs().sum(-1))
    return torch.cat(changes, dim=1)


def permuted_logits(
    model: Model, reading: Reading, count: int, *, rng: torch.Generator
) -> Float[Tensor, "batch variant class"]:
    """The logits under `count` permutations of each text's weights, orders being shared by texts of a length.

    An affine decision needs a text's permuted weights only for as long as it takes to weigh its values with
    them: they never leave the cache. Any other is asked with all of them at once.
    """
    shape = reading.weights.shape[1:] if reading.values is None else reading.values.shape[2:]
    found = reading.weights.new_zeros(len(reading.mask), count, *shape)  # logits, or weights to decide under
    for texts, order in shared_orders(reading.mask.sum(1), count, rng=rng):
        size = len(order)
        moved = reading.weights.index_select(0, texts).index_select(-1, order.flatten())
        moved = moved.unflatten(-1, (size, count))  # one order for all heads, where there are several
        if reading.values is not None:
            found[texts] = (reading.values.index_select(0, texts)[:, :size].mT @ moved).mT
        else:
            found[texts, ..., :size] = moved.movedim(-1, 1)
    if reading.values is None or reading.bias is None:
        return model.decide(reading, found)
    logits = found + reading.bias
    if reading.batch.answers is not None:
        logits = logits.masked_fill(~reading.batch.answers[:, None], float("-inf"))
    return logits


def medians(changes: Float[Tensor, "batch variant"]) -> Float[np.ndarray, " batch"]:
    """Each text's median: of an even number of draws the mean of the middle two.

    Numpy finds the middle without sorting the rest; torch's quantile would take as long as all the above.
    """
    values = changes.detach().cpu().numpy()
    middle = [(values.shape[1] - 1) // 2, values.shape[1] // 2]
    return np.partition(values, middle, axis=1)[:, middle].astype(np.float64).mean(1)
