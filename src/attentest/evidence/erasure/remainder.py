"""What is made of a text whose unit was left out: attention over the rest, and the output that follows.

Every road to leave-one-out ends here. Units keep their places and the one left out is masked, which no
projection can tell from a shorter text; the query and the possible answers stay the original's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attentest.model.networks.log_odds import LogOddsAttention
from attentest.model.networks.projection import Projection
from attentest.model.seam import Model, Network, Reading, network_of
from attentest.shapes import Hidden, Logits, Weights

Scalars = Float[Tensor, "batch variant unit"]
Kept = Bool[Tensor, "batch variant unit"]
Carried = Float[Tensor, "batch variant width"]
Answers = Float[Tensor, "batch variant class"]
Drawn = Float[Tensor, "batch draw *head unit"]


class AbstractRemainder(ABC):
    """Some texts without each of the units `lefts`, encoded: what the model answers under which attention."""

    def __init__(self, model: Model, reading: Reading, lefts: range) -> None:
        self.model, self.reading, self.lefts = model, reading, lefts

    @abstractmethod
    def own(self) -> Answers:
        """The logits of every variant under the model's own attention: what remains is scored again."""

    @abstractmethod
    def under(self, weights: Drawn, scores: Drawn) -> Float[Tensor, "batch draw variant class"]:
        """The logits where the remaining units keep these scores, which are projected again over them."""


class AbstractWeighedRemainder(AbstractRemainder):
    """For encoders whose new states are known by (text, variant, unit), as far as they differ."""

    def __init__(self, model: Model, reading: Reading, lefts: range) -> None:
        super().__init__(model, reading, lefts)
        self.network = parts_of(model)

    @abstractmethod
    def scores(self) -> Scalars:
        """The raw scores of all units in all variants, from the new states."""

    @abstractmethod
    def sums(self, weights: Scalars) -> Carried:
        """What attention sums up under weights for every variant; the weights may be used up."""

    @abstractmethod
    def pair_values(self) -> Float[Tensor, "batch variant unit class"]:
        """The values of every unit in every variant; asked for only where the decision is affine."""

    def own(self) -> Answers:
        """Score, project, sum up, decide."""
        remain = kept(self.reading, self.lefts)
        return self._answers(reweighed(self.network, self.reading.weights[:, None], self.scores(), remain))

    def under(self, weights: Drawn, scores: Drawn) -> Float[Tensor, "batch draw variant class"]:
        """All draws in one product where the rest renormalises, one after the other where it does not."""
        if renormalises(self.network.projection) and self.reading.values is not None:
            return self._renormalised(weights)
        remain, draws = kept(self.reading, self.lefts), []
        for drawn, scored in zip(weights.unbind(1), scores.unbind(1), strict=True):
            held = scored[:, None].expand(remain.shape)
            draws.append(self._answers(reweighed(self.network, drawn[:, None], held, remain)))
        return torch.stack(draws, dim=1)

    def _renormalised(self, weights: Drawn) -> Float[Tensor, "batch draw variant class"]:
        """`sum_{u != t} a_u v_u / sum_{u != t} a_u`: the values of t are set to 0, the mass is divided."""
        batch, variants, units, classes = (values := self.pair_values()).shape
        values = values.masked_fill(~kept(self.reading, self.lefts)[..., None], 0.0)
        beside = values.transpose(1, 2).reshape(batch, units, variants * classes)
        sums = (weights @ beside).unflatten(2, (variants, classes))
        exact = weights.double()
        mass = exact.sum(-1, keepdim=True) - exact[..., self.lefts.start : self.lefts.stop]
        return answered(self.network, self.reading, sums / mass[..., None].to(sums.dtype))

    def _answers(self, weights: Scalars) -> Answers:
        return answered(self.network, self.reading, self.sums(weights))


def parts_of(model: Model) -> Network:
    """The model with its parts, without which no faster way than reading again is known."""
    return network_of(model, "a fast road of leave-one-out")


def renormalises(projection: Projection) -> bool:
    """Whether the remaining weights keep their proportions; sparse projections change them."""
    return projection.name in ("softmax", "gumbel-softmax", "tempered-softmax", "uniform", "stored")


def kept(reading: Reading, lefts: range) -> Kept:
    """Which units remain in the variants that leave out each of `lefts`."""
    remain = reading.mask[:, None].repeat(1, len(lefts), 1)
    remain.diagonal(lefts.start, dim1=1, dim2=2).fill_(False)
    return remain


def rescored(model: Network, reading: Reading, hidden: Hidden) -> Weights | None:
    """The raw scores of new hidden states, any number a text; None where scores depend on words alone."""
    if isinstance(model.attention, LogOddsAttention):
        return None
    assert model.attention is not None, "without attention there is one unit, and nothing to leave out"
    return model.attention(hidden, reading.query)


def reweighed(model: Network, stored: Tensor, scores: Tensor, remain: Tensor) -> Tensor:
    """The weights over the units that remain; all three have one row a variant after any axes.

    Stored weights have no scores to project again, so they are renormalised: NaN where nothing is left.
    """
    if model.projection.name == "stored":
        weights = stored.masked_fill(~remain, 0.0)
        return weights / weights.sum(-1, keepdim=True)
    units = scores.shape[-1]
    return model.projection(scores.reshape(-1, units), remain.reshape(-1, units)).view_as(scores)


def over_units(model: Model, reading: Reading, weights: Tensor, scores: Tensor, remain: Tensor) -> Tensor:
    """Given weights over the units that remain, as the model itself would spread attention over them.

    A model of ours projects the scores again. Of a model made elsewhere only weights are known: they are
    renormalised to what the reading's own units have together, so what rests on special tokens stays.
    """
    if model.network is not None:
        return reweighed(model.network, weights, scores, remain)
    if weights.ndim > remain.ndim:  # heads
        remain = remain.unsqueeze(-2)
    rest = weights.masked_fill(~remain, 0.0)
    together = reading.weights.sum(-1, keepdim=True)
    return rest / rest.sum(-1, keepdim=True) * (together[:, None] if rest.ndim > together.ndim else together)


def carried(reading: Reading) -> Float[Tensor, "batch unit width"]:
    """What attention sums up: values where the decision is affine, hidden states where it is not."""
    return reading.hidden if reading.values is None else reading.values


def answered(model: Network, reading: Reading, sums: Float[Tensor, "batch *draw variant width"]) -> Logits:
    """The logits of variants, from what attention summed up in each."""
    logits = model.decoder(sums, reading.query) if reading.bias is None else sums + reading.bias
    if (answers := reading.batch.answers) is None:
        return logits
    possible = answers.view(len(answers), *[1] * (logits.ndim - 2), -1)
    return logits.masked_fill(~possible, float("-inf"))
