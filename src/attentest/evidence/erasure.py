"""Leave-one-out importance (JW-2): how far the output moves when one unit is deleted.

Deleting is a new input, so in principle every variant is read again; that is the road "whole", and it is
always there. But variants share almost everything, and what they share depends on the encoder: three roads
compute only what differs. Tokens are deleted, never masked, and every text keeps its own length (A25).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.corpus.batch import buckets
from attentest.evidence import erasure_convolutional, erasure_recurrent, erasure_tokenwise
from attentest.evidence.parts import answers_read_anew
from attentest.model.decoder import distribution
from attentest.model.divergence import total_variation
from attentest.model.encoders import Convolutional, Recurrent, TokenWise
from attentest.model.seam import AttentionModel, Reading
from attentest.model.selection import selected
from attentest.refusal import Refusal

Changes = Float[Tensor, "batch variant"]
Selected = Int[Tensor, " text"]  # rows of a batch, any of them any number of times


@dataclass(frozen=True)
class LeftOut:
    """The output change by unit left out, and the road that found it."""

    change: Float[Tensor, "batch unit"]  # 0 on padding; NaN where a text has one unit
    road: str


@dataclass(frozen=True)
class Road:
    """One way to the output changes of some texts' variants, and the memory that each variant takes."""

    changes: Callable[[AttentionModel, Reading, range], Changes]
    floats_per_variant: Callable[[AttentionModel, int], int]  # of a text of so many tokens


# Numbers held at a time: some 64 megabytes, yet enough variants for large products. A GPU waits for launches,
# not for arithmetic, and has the memory to be asked for more at once.
FLOATS, GPU_FLOATS = 16_000_000, 128_000_000
TEXTS = 512


def leave_one_out(model: AttentionModel, reading: Reading, *, road: str | None = None) -> LeftOut:
    """The total variation between each text's output and its output without each of its units.

    `reading` is one without noise. A text of one unit is NaN: nothing would be left to read.
    """
    name = _checked(model, road)
    with torch.no_grad():
        change = reading.scores.new_zeros(reading.mask.shape)
        for texts, lefts in _plan(model, reading, ROADS[name]):
            change[texts, lefts.start : lefts.stop] = ROADS[name].changes(
                model, selected(reading, texts), lefts
            )
        alone = (reading.mask.sum(1) < 2)[:, None]
        change = change.masked_fill(alone, float("nan")).masked_fill(~reading.mask, 0.0)
    return LeftOut(change, name)


def _checked(model: AttentionModel, road: str | None) -> str:
    fast = next((name for kind, name in FAST.items() if isinstance(model.encoder, kind)), "whole")
    if road not in (None, fast, "whole"):
        raise Refusal(
            f"leave-one-out with the encoder {model.config.encoder!r}",
            got=f"the road {road!r}",
            needs=" or ".join(dict.fromkeys([repr(fast), "'whole'"])),
            way_out="Leave the road out to take the fastest.",
        )
    return road or fast


def _plan(model: AttentionModel, reading: Reading, road: Road) -> Iterator[tuple[Selected, range]]:
    """Texts of alike size, and the units to leave out of them at a time: as many as memory allows."""
    units, tokens = reading.mask.sum(1), reading.batch.mask.sum(1)
    several = (units > 1).nonzero().squeeze(1)
    sizes = zip(units[several].tolist(), tokens[several].tolist(), strict=True)
    costs = np.array([count * road.floats_per_variant(model, length) for count, length in sizes])
    floats = FLOATS if reading.mask.device.type == "cpu" else GPU_FLOATS
    for group in buckets(costs, TEXTS, tokens=floats):
        texts = several[torch.from_numpy(group).to(several.device)]
        longest = int(units[texts].max())
        variant = road.floats_per_variant(model, int(tokens[texts].max()))
        at_once = max(1, floats // (len(texts) * variant))
        for begin in range(0, longest, at_once):
            yield texts, range(begin, min(begin + at_once, longest))


def whole(model: AttentionModel, reading: Reading, lefts: range) -> Changes:
    """Brute force: delete the unit's tokens and read what is left from the beginning."""
    texts, variants = reading.mask[:, lefts.start : lefts.stop].nonzero(as_tuple=True)
    kept = reading.mask[texts].scatter(1, variants[:, None] + lefts.start, False)
    own = distribution(model.decide(reading))
    found = own.new_zeros(len(own), len(lefts))
    answers = answers_read_anew(model, reading, texts, kept)
    found[texts, variants] = total_variation(distribution(answers), own[texts])
    return found


def _floats_to_read(model: AttentionModel, tokens: int) -> int:
    """Embeddings, a recurrence's gates both ways, a Transformer's maps, or less."""
    return (tokens + 2) * (2 * model.embedding.embedding_dim + 8 * model.encoder.width + 8 * tokens)


FAST = {TokenWise: "token-wise", Convolutional: "convolutional", Recurrent: "recurrent"}
ROADS = {
    "token-wise": Road(erasure_tokenwise.token_wise, erasure_tokenwise.floats_per_variant),
    "convolutional": Road(erasure_convolutional.convolutional, erasure_convolutional.floats_per_variant),
    "recurrent": Road(erasure_recurrent.recurrent, erasure_recurrent.floats_per_variant),
    "whole": Road(whole, _floats_to_read),
}
