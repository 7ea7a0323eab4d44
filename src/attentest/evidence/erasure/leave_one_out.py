"""Leave-one-out importance (JW-2): how far the output moves when one unit is deleted.

Deleting is a new input, so in principle every variant is read again; that is the road "whole", and it is
always there. But variants share almost everything, and what they share depends on the encoder: three roads
compute only what differs. Tokens are deleted, never masked, and every text keeps its own length (A25).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.evidence.erasure import convolutional as erasure_convolutional
from attentest.evidence.erasure import recurrent as erasure_recurrent
from attentest.evidence.erasure import tokenwise as erasure_tokenwise
from attentest.evidence.erasure import whole as erasure_whole
from attentest.evidence.erasure.drawn_units import Units
from attentest.evidence.erasure.known import KnownParts
from attentest.evidence.erasure.remainder import AbstractRemainder
from attentest.evidence.importances.given_attention import GivenAttention
from attentest.model.batch import buckets
from attentest.model.divergence import total_variation
from attentest.model.networks.decoder import distribution
from attentest.model.networks.encoders import Convolutional, Recurrent, TokenWise
from attentest.model.seam import Model, Reading
from attentest.model.subset import selected
from attentest.refusal import Refusal

Selected = Int[Tensor, " text"]  # rows of a batch, any of them any number of times


@final
@dataclass(frozen=True)
class LeftOut:
    """The output change by unit left out, and the road that found it."""

    change: Float[Tensor, "batch unit"]  # 0 on padding; NaN where a text has one unit
    fall: Float[Tensor, "batch unit"]  # of the predicted class's probability: positive speaks for it
    road: str
    under: Float[Tensor, "batch draw unit"] | None = None  # the same under each attention that was given


@final
@dataclass(frozen=True)
class Road:
    """One way to encode what is left of some texts, and the memory that each variant takes."""

    remainder: Callable[[Model, Reading, range], AbstractRemainder]
    floats_per_variant: Callable[[Model, int], int]  # of a text of so many tokens


# Numbers held at a time: some 64 megabytes, yet enough variants for large products. A GPU waits for launches,
# not for arithmetic, and has the memory to be asked for more at once.
FLOATS, GPU_FLOATS = 16_000_000, 128_000_000
TEXTS = 512


@torch.no_grad()
def leave_one_out(
    model: Model,
    reading: Reading,
    *,
    given: GivenAttention | None = None,
    road: str | None = None,
    known: KnownParts | None = None,
    units: Units | None = None,
) -> LeftOut:
    """The total variation between each text's output and its output without each of its units.

    `reading` is one without noise. A text of one unit is NaN: nothing would be left to read. Under a `given`
    attention the remaining units keep their given scores, which are projected again over them (13.9), and the
    change is from the output under the same attention of the whole text. What is answered is `known` after.

    Where `units` are named, the road "whole" leaves out no others: they are NaN.
    """
    name = _checked(model, road)
    own = distribution(model.decide(reading))
    change, fall = own.new_zeros(reading.mask.shape), own.new_zeros(reading.mask.shape)
    best = own.argmax(-1) if reading.explained is None else reading.explained
    under, of_given = None, None
    if given is not None:
        of_given = distribution(model.decide(reading, given.weights))
        under = own.new_zeros(*of_given.shape[:2], change.shape[1])
    units = units if name == "whole" else None
    for texts, lefts in _plan(model, reading, ROADS[name]):
        some, columns = selected(reading, texts), slice(lefts.start, lefts.stop)
        remainder: AbstractRemainder
        asked = some.mask if units is None else units[texts, : some.mask.shape[1]]
        if not asked[:, columns].any():
            continue
        if units is None:
            remainder = ROADS[name].remainder(model, some, lefts)
        else:
            remainder = erasure_whole.WholeRemainder(model, some, lefts, asked)
        logits = remainder.own()
        if known is not None:
            known.add_without(some, lefts, logits, asked)
        left = distribution(logits)
        change[texts, columns] = total_variation(left, own[texts][:, None])
        said = best[texts][:, None, None].expand(-1, left.shape[1], 1)
        fall[texts, columns] = own[texts, best[texts]][:, None] - left.gather(2, said)[..., 0]
        if given is not None and of_given is not None and under is not None:
            count = some.mask.shape[1]
            logits = remainder.under(given.weights[texts][..., :count], given.scores[texts][..., :count])
            under[texts, :, columns] = total_variation(distribution(logits), of_given[texts][:, :, None])
    asked = reading.mask if units is None else units
    change, fall = _defined(change, reading.mask, asked), _defined(fall, reading.mask, asked)
    if under is not None:
        under = _defined(under, reading.mask[:, None], asked[:, None])
    return LeftOut(change, fall, name, under)


def _defined(change: Float[Tensor, "batch *draw unit"], mask: Tensor, asked: Tensor) -> Tensor:
    """NaN where a text has one unit or nobody asked, 0 on padding."""
    undefined = (mask.sum(-1, keepdim=True) < 2) | ~asked
    return change.masked_fill(undefined, float("nan")).masked_fill(~mask, 0.0)


def _checked(model: Model, road: str | None) -> str:
    fast = fastest(model)
    if road not in (None, fast, "whole"):
        raise Refusal(
            f"leave-one-out with {encoder_in_words(model)}",
            got=f"the road {road!r}",
            needs=" or ".join(dict.fromkeys([repr(fast), "'whole'"])),
            way_out="Leave the road out to take the fastest.",
        )
    return road or fast


def fastest(model: Model) -> str:
    """The fastest road to leave-one-out; where an encoder is not known, the whole one."""
    encoder = None if model.network is None else model.network.encoder
    return next((name for kind, name in FAST.items() if isinstance(encoder, kind)), "whole")


def encoder_in_words(model: Model) -> str:
    """The encoder, as a refusal says it."""
    return (
        "an encoder of another library"
        if model.network is None
        else f"the encoder {model.network.config.encoder!r}"
    )


def _plan(model: Model, reading: Reading, road: Road) -> Iterator[tuple[Selected, range]]:
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


FAST = {TokenWise: "token-wise", Convolutional: "convolutional", Recurrent: "recurrent"}
ROADS = {
    "token-wise": Road(erasure_tokenwise.TokenWiseRemainder, erasure_tokenwise.floats_per_variant),
    "convolutional": Road(
        erasure_convolutional.ConvolutionalRemainder, erasure_convolutional.floats_per_variant
    ),
    "recurrent": Road(erasure_recurrent.RecurrentRemainder, erasure_recurrent.floats_per_variant),
    "whole": Road(erasure_whole.WholeRemainder, erasure_whole.floats_per_variant),
}
