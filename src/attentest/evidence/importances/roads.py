"""Two roads to a model's answers to parts of texts: reading each part anew, or weighing what was read.

Units are deleted, never masked, and every part keeps its own length, as in leave-one-out (A25). Where no
token sees another, deleting some leaves the states of the others as they were: only attention is made again.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from attentest.evidence.erasure.parts import Answers, Chosen, Kept, answers_read_anew
from attentest.evidence.erasure.remainder import carried, reweighed
from attentest.model.networks.encoders import TokenWise
from attentest.model.seam import AttentionModel, Reading
from attentest.refusal import Refusal

Road = Callable[[AttentionModel, Reading, Chosen, Kept], Answers]


def road_for(model: AttentionModel, road: str | None) -> Road:
    """The road of this name, or the fastest there is."""
    possible = ("token-wise", "whole") if isinstance(model.encoder, TokenWise) else ("whole",)
    if road not in (None, *possible):
        raise Refusal(
            f"parts of texts with the encoder {model.config.encoder!r}",
            got=f"the road {road!r}",
            needs=" or ".join(map(repr, possible)),
            way_out="Leave the road out to take the fastest.",
        )
    return ROADS[road or possible[0]]


def token_wise(model: AttentionModel, reading: Reading, texts: Chosen, kept: Kept) -> Answers:
    """Attention over the units kept, and the answer to what it sums up: nothing is read again."""
    weights = reweighed(model, reading.weights[texts], reading.scores[texts], kept)
    sums = torch.bmm(weights[:, None], carried(reading)[texts])[:, 0]
    if reading.bias is not None:
        logits = sums + reading.bias
    else:
        logits = model.decoder(sums, None if reading.query is None else reading.query[texts])
    if reading.batch.answers is None:
        return logits
    return logits.masked_fill(~reading.batch.answers[texts], float("-inf"))


ROADS: dict[str, Road] = {"token-wise": token_wise, "whole": answers_read_anew}
