"""What is made of a text whose unit was left out: attention over the rest, and the output that follows.

Every road to leave-one-out ends here. Units keep their places and the one left out is masked, which no
projection can tell from a shorter text; the query and the possible answers stay the original's.
"""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor

from attentest.model.decoder import distribution
from attentest.model.divergence import total_variation
from attentest.model.log_odds import LogOddsAttention
from attentest.model.projection import Projection
from attentest.model.seam import AttentionModel, Reading
from attentest.shapes import Hidden, Logits, Weights

Scalars = Float[Tensor, "batch variant unit"]
Kept = Bool[Tensor, "batch variant unit"]
Carried = Float[Tensor, "batch variant width"]


def renormalises(projection: Projection) -> bool:
    """Whether the remaining weights keep their proportions; sparse projections change them."""
    return projection.name in ("softmax", "gumbel-softmax", "tempered-softmax", "uniform", "stored")


def kept(reading: Reading, lefts: range) -> Kept:
    """Which units remain in the variants that leave out each of `lefts`."""
    remain = reading.mask[:, None].repeat(1, len(lefts), 1)
    remain.diagonal(lefts.start, dim1=1, dim2=2).fill_(False)
    return remain


def rescored(model: AttentionModel, reading: Reading, hidden: Hidden) -> Weights | None:
    """The raw scores of new hidden states, any number a text; None where scores depend on words alone."""
    if isinstance(model.attention, LogOddsAttention):
        return None
    assert model.attention is not None, "without attention there is one unit, and nothing to leave out"
    return model.attention(hidden, reading.query)


def reweighed(model: AttentionModel, stored: Tensor, scores: Tensor, remain: Tensor) -> Tensor:
    """The weights over the units that remain; all three have one row a variant after any axes.

    Stored weights have no scores to project again, so they are renormalised: NaN where nothing is left.
    """
    if model.projection.name == "stored":
        weights = stored.masked_fill(~remain, 0.0)
        return weights / weights.sum(-1, keepdim=True)
    units = scores.shape[-1]
    return model.projection(scores.reshape(-1, units), remain.reshape(-1, units)).view_as(scores)


def carried(reading: Reading) -> Float[Tensor, "batch unit width"]:
    """What attention sums up: values where the decision is affine, hidden states where it is not."""
    return reading.hidden if reading.values is None else reading.values


def answered(model: AttentionModel, reading: Reading, sums: Carried) -> Logits:
    """The logits of variants, from what attention summed up in each."""
    logits = model.decoder(sums, reading.query) if reading.bias is None else sums + reading.bias
    if reading.batch.answers is None:
        return logits
    return logits.masked_fill(~reading.batch.answers[:, None], float("-inf"))


def output_change(
    model: AttentionModel, reading: Reading, logits: Float[Tensor, "batch variant class"]
) -> Float[Tensor, "batch variant"]:
    """The total variation between each variant's output and the text's own."""
    return total_variation(distribution(logits), distribution(model.decide(reading))[:, None])
