"""The road of causal models: an edit of the deciding row changes the last position, which nobody looks at.

So the keys and values of all other positions stay what they were, in every layer above the edit. They are
kept from the reading, as a KV cache is, with the row of each layer's mask: windows and padding are in it.
Above the edit the variants of a text are run as one position each, on keys and values that they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attentest.foreign.editing import Call, Maps, Sums
from attentest.foreign.proof import Proof
from attentest.foreign.remainder import stack_of
from attentest.foreign.roads import (
    AbstractRemaining,
    AbstractRoad,
    Answers,
    LastRow,
    Rows,
    Suffix,
    TransformerReading,
    Whole,
)

LEAST = 32  # variants that are run together even on shorter texts


@final
@dataclass(frozen=True)
class Above:
    """What the layers above an edit look at: one row a text, the layers side by side."""

    keys: Float[Tensor, "batch layer group place each"]
    values: Float[Tensor, "batch layer group place each"]
    masks: Float[Tensor, "batch layer place"]

    @classmethod
    def of(cls, calls: Sequence[Call], deciding: Tensor) -> Above | None:
        """Of the calls of one pass; None where there is no layer above, or it shows no keys or no mask."""
        keys, values, masks = list[Tensor](), list[Tensor](), list[Tensor]()
        for call in calls:
            if call.made_of is None or call.made_of.mask is None or call.values is None:
                return None
            mask = call.made_of.mask[:, 0]
            keys.append(call.made_of.keys)
            values.append(call.values)
            masks.append(mask.gather(1, deciding[:, None, None].expand(-1, -1, mask.shape[2]))[:, 0])
        return cls(*(torch.stack(each, dim=1) for each in (keys, values, masks))) if calls else None

    def look(self, call: Call, deciding: Tensor, count: int) -> tuple[Sums, Maps]:
        """What the variants bring at their one position, `count` of them next to each other for each text."""
        layer, given = call.number - 1, call.made_of
        assert given is not None and call.values is not None, "checked when they were kept"
        query, own_keys, own_values = (
            each.unflatten(0, (-1, count)).squeeze(3).transpose(1, 2)
            for each in (given.query, given.keys, call.values)
        )
        keys = torch.cat([self.keys[:, layer], own_keys], dim=2)
        values = torch.cat([self.values[:, layer], own_values], dim=2)
        lowest = torch.finfo(self.masks.dtype).min
        others = self.masks[:, layer].scatter(1, deciding[:, None], lowest)
        own = torch.full((count, count), lowest, dtype=others.dtype, device=others.device).fill_diagonal_(0.0)
        mask = torch.cat([others[:, None].expand(-1, count, -1), own.expand(len(others), -1, -1)], dim=2)
        sums, _ = given.plain(query, keys, values, mask[:, None])
        return sums.flatten(0, 1)[:, None], call.weights


@final
class OnePosition(AbstractRemaining):
    """From the changed layer on, on the last position alone."""

    name = "position"

    def floats(self, reading: TransformerReading) -> int:
        """One position, and its rows over all others and over the variants beside it."""
        places, heads = reading.ids.shape[1], reading.row.shape[1]
        return 12 * self.model.config.hidden_size + 4 * heads * (places + max(places, LEAST)) + self.scored

    def some(self, reading: TransformerReading, rows: Rows) -> Answers:
        """Some at a time, as each of them has a key of its own that the others must not see."""
        parts = rows.split(max(rows.shape[3], LEAST), dim=1)
        return torch.cat([self._beside(reading, part) for part in parts], dim=1)

    def _beside(self, reading: TransformerReading, rows: Rows) -> Answers:
        above, count = reading.above, rows.shape[1]
        assert reading.entered is not None and above is not None
        sums = self.summed(reading, rows)

        def brought(call: Call) -> tuple[Sums, Maps]:
            if call.number == 0:
                return sums.to(call.weights.device), call.weights
            return Above(*above).look(call, reading.deciding, count)

        states = self.entering_alone(reading, count)
        alone = reading.laid.alone(reading.deciding).repeated(count)
        takes = "position_ids" in signature(self.model.forward).parameters
        places = {"position_ids": reading.deciding.repeat_interleave(count)[:, None]} if takes else {}
        return self._run(alone, states, brought, **places).unflatten(0, (-1, count))


def roads_to_try(model: nn.Module, proof: Proof, layer: int) -> list[type[AbstractRoad]]:
    """The roads from this layer that a model may have, fastest first."""
    single = proof.road == "interface" and proof.layers == tuple(range(len(proof.paths)))
    if not single or stack_of(model, proof.paths[layer]) is None:
        return [Whole]
    if layer == len(proof.paths) - 1:
        return [LastRow, Suffix, Whole]
    return [OnePosition, Suffix, Whole] if proof.rule == "last" else [Suffix, Whole]
