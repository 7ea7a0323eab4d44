"""Two roads to a model's answers to parts of texts: reading each part anew, or weighing what was read.

Units are deleted, never masked, and every part keeps its own length, as in leave-one-out (A25). Where no
token sees another, deleting some leaves the states of the others as they were: only attention is made again.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from attentest.evidence.erasure.leave_one_out import encoder_in_words
from attentest.evidence.erasure.parts import Answers, Chosen, Kept, answers_read_anew
from attentest.evidence.erasure.remainder import carried, parts_of, reweighed
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
