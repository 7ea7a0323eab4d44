"""States that no training changes: read once, looked up at every step.

`held_reading` for a fleet, whose members may start from one model and then share their states, too: what
thirty frozen adversaries of one base (Meister et al. 2021, A33) would read in eighty epochs is read once.
"""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from attentest.fleet.shelf import Rows, Shelf
from attentest.fleet.stack import Read, Stack, StackedBatch
from attentest.model.batch import buckets
from attentest.model.network import AttentionModel
from attentest.model.precision import full_precision

PARTS = ("encoder.", "query_encoder.")
ROOM = 2**32  # bytes that may be spent on states
TEXTS = 64  # of each model in one pass


@final
class HeldStates:
    """The states of all texts of a shelf, for each of the different encoders of a stack."""

    def __init__(self, stack: Stack, different: Stack, of_member: list[int], shelf: Shelf) -> None:
        self.stack = stack
        self.of_member = torch.tensor(of_member, device=stack.table.device)[:, None]
        self.hidden, self.query = _read_all(different, shelf)

    def read(self, rows: Rows, batch: StackedBatch) -> Read:
        """What the members' encoders say of these texts, and how their attention scores it."""
        at = rows.clamp_min(0)
        hidden = self.hidden[self.of_member, at, : batch.mask.shape[2]]
        query = None if self.query is None else self.query[self.of_member, at]
        return self.stack.score(hidden, batch.mask, query)

    def keep(self, index: Int[Tensor, " kept"]) -> None:
        """Go on with some of the members."""
        self.of_member = self.of_member[index]


def held_states(stack: Stack, shelf: Shelf, *, frozen_words: bool) -> HeldStates | None:
    """The states, if nothing that they rest on is trained and there is room for them."""
    moves = any(p.requires_grad for name, p in stack.parameters.items() if name.startswith(PARTS))
    if moves or not frozen_words or stack.is_hierarchical():
        return None
    different: list[AttentionModel] = []
    of_member = []
    for model in stack.models:
        place = next((n for n, other in enumerate(different) if _reads_alike(model, other)), len(different))
        of_member.append(place)
        different += [model] if place == len(different) else []
    numbers = len(different) * shelf.tokens.numel() * stack.first.encoder.width
    if numbers * stack.table.element_size() > ROOM:
        return None
    return HeldStates(stack, Stack(different), of_member, shelf)


def _reads_alike(model: AttentionModel, other: AttentionModel) -> bool:
    own, theirs = model.state_dict(), other.state_dict()
    return all(torch.equal(own[n], theirs[n]) for n in own if n.startswith(("embedding.", *PARTS)))


@torch.no_grad()
def _read_all(stack: Stack, shelf: Shelf) -> tuple[Tensor, Tensor | None]:
    """In full precision: what is read once may be read well."""
    device, (texts, longest) = stack.table.device, shelf.tokens.shape
    hidden = stack.table.new_zeros(len(stack), texts, longest, stack.first.encoder.width)
    query = None
    with full_precision():
        for some in buckets(shelf.lengths, TEXTS):
            rows = torch.from_numpy(some).to(device)
            batch = shelf.batch(rows.expand(len(stack), -1), int(np.max(shelf.lengths[some])))
            found, _, asked = stack.encode(batch, stack.frames(batch), stack.look_up)
            hidden[:, rows, : found.shape[2]] = found
            if asked is not None:
                query = asked.new_zeros(len(stack), texts, asked.shape[-1]) if query is None else query
                query[:, rows] = asked
    return hidden, query
