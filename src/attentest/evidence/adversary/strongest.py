"""The strongest adversary (Jain & Wallace 2019, JW-5): the furthest attention that keeps the output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attentest.evidence.adversary.affine import affine_parts, check_affine
from attentest.evidence.adversary.polytopes import furthest_found
from attentest.evidence.adversary.slab import Line, furthest, line_up, slab
from attentest.model.divergence import attainable, jensen_shannon, total_variation
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal

NAN = float("nan")
MASS_TOLERANCE = 4e-3  # half-precision attention misses one by up to 2^-9; beyond it there is no distribution

AnyFloat = Float[Tensor, "..."]  # shapes are checked here, in a sentence, and not by the annotations
AnyBool = Bool[Tensor, "..."]


@final
@dataclass(frozen=True, kw_only=True)
class Adversary:
    """For each text another attention, its divergence from the own one, and what it does to the output."""

    weights: Float[Tensor, "batch token"]  # float64; zero on padding
    divergence: Float[Tensor, " batch"]  # Jensen-Shannon, from the own attention; 0 for one token
    output_change: Float[Tensor, " batch"]  # total variation, recomputed; never above epsilon
    exact: bool  # the divergence is the proven maximum, for every text
    bound: Float[Tensor, " batch"]  # no attention within epsilon diverges more; the divergence where exact


class Texts(NamedTuple):
    """A batch in double precision, with padding silenced and undefined texts replaced by harmless ones."""

    weights: Float[Tensor, "batch token"]
    values: Float[Tensor, "batch token class"]
    bias: Float[Tensor, " class"]
    mask: Bool[Tensor, "batch token"]
    answers: Bool[Tensor, "batch class"]
    defined: Bool[Tensor, " batch"]

    def logits(self, weights: Float[Tensor, "batch token"]) -> Float[Tensor, "batch class"]:
        """Under any attention; an impossible answer has minus infinity."""
        logits = (weights[:, None] @ self.values)[:, 0] + self.bias
        return logits.masked_fill(~self.answers, float("-inf"))

    def outputs(self, weights: Float[Tensor, "batch token"]) -> Float[Tensor, "batch outcome"]:
        """Probabilities under any attention."""
        return distribution(self.logits(weights))

    def moves(self) -> Float[Tensor, "batch token class"]:
        """What resting on each token alone would add to the logits."""
        return self.values - self.weights[:, None] @ self.values

    def binary(self) -> bool:
        """One logit or two, so that the output is one number."""
        return self.values.shape[2] <= 2


def strongest_adversary(
    weights: AnyFloat,
    values: AnyFloat | None,
    bias: AnyFloat | None,
    mask: AnyBool,
    epsilon: float | int,
    *,
    answers: AnyBool | None = None,
) -> Adversary:
    """The attention furthest from `weights` under which the output changes by at most `epsilon`.

    Logits are `weights @ values + bias`; one class is a sigmoid logit. One and two logits have an exact
    answer; more get the best that a search finds, and a `bound`. `answers` marks each text's possible
    classes. A text with NaN, or whose weights are no distribution, gets NaN.
    """
    _check_epsilon(epsilon)
    texts = _texts(weights, values, bias, mask, answers)
    return _strongest(texts, _line(texts), float(epsilon))


def epsilon_curve(
    weights: AnyFloat,
    values: AnyFloat | None,
    bias: AnyFloat | None,
    mask: AnyBool,
    epsilons: Sequence[float | int],
    answers: AnyBool | None = None,
) -> Float[Tensor, "epsilon batch"]:
    """The divergence of the strongest adversary for each of several epsilons, in the order given.

    An attention within one epsilon is within every larger one, so what was found there counts here too.
    """
    for epsilon in epsilons:
        _check_epsilon(epsilon)
    texts = _texts(weights, values, bias, mask, answers)
    line = _line(texts)
    curve = texts.weights.new_zeros(len(epsilons), len(texts.weights))
    reached = texts.weights.new_zeros(len(texts.weights))
    for place in sorted(range(len(epsilons)), key=lambda place: epsilons[place]):
        reached = reached.maximum(_strongest(texts, line, float(epsilons[place])).divergence)
        curve[place] = reached
    return curve


def _strongest(texts: Texts, line: Line | None, epsilon: float) -> Adversary:
    own = texts.outputs(texts.weights)
    if line is None:
        log_output = texts.logits(texts.weights).log_softmax(-1)
        found, bound = furthest_found(
            texts.weights, texts.moves(), log_output, texts.mask, texts.answers, epsilon
        )
    else:
        found, bound = furthest(line, *slab(_log_odds(texts), epsilon)), attainable(texts.weights, texts.mask)
    # What was found counts only if the recomputed output agrees. The own attention always does.
    single = texts.mask.sum(1) == 1
    agrees = single | (total_variation(texts.outputs(found), own) <= epsilon)
    found = torch.where((agrees & ~single)[:, None], found, texts.weights)
    divergence = jensen_shannon(found, texts.weights)
    proven = single if line is None else agrees
    undefined = ~texts.defined
    return Adversary(
        weights=found.masked_fill(undefined[:, None] & texts.mask, NAN),
        divergence=divergence.masked_fill(undefined, NAN),
        output_change=total_variation(texts.outputs(found), own).masked_fill(undefined, NAN),
        exact=line is not None and bool(proven.all()),
        bound=torch.where(proven, divergence, bound).masked_fill(undefined, NAN),
    )


def _line(texts: Texts) -> Line | None:
    """The tokens in the order in which they move a binary output; None where there are more classes."""
    if not texts.binary():
        return None
    return line_up(texts.weights, _contrast(texts.moves(), texts.answers), texts.mask)


def _log_odds(texts: Texts) -> Float[Tensor, " batch"]:
    logits = texts.logits(texts.weights).masked_fill(~texts.answers, 0.0)
    return _contrast(logits[:, None], texts.answers)[:, 0]


def _contrast(
    logits: Float[Tensor, "batch place class"], answers: Bool[Tensor, "batch class"]
) -> Float[Tensor, "batch place"]:
    """The one logit, or the second minus the first; constant where one of two answers is impossible."""
    if logits.shape[2] == 1:
        return logits[:, :, 0]
    return (logits[:, :, 1] - logits[:, :, 0]) * answers.all(1, keepdim=True)


def _texts(
    weights: Tensor, values: Tensor | None, bias: Tensor | None, mask: Tensor, answers: Tensor | None
) -> Texts:
    values, bias = affine_parts("the strongest adversary", values, bias)
    check_affine("the strongest adversary", weights, values, bias, mask, answers)
    if answers is None:
        answers = torch.ones(len(values), values.shape[2], dtype=torch.bool, device=values.device)
    # Padding and impossible answers may hold anything, even NaN.
    weights = weights.detach().double().masked_fill(~mask, 0.0)
    values = values.detach().double().masked_fill(~(mask[:, :, None] & answers[:, None]), 0.0)
    bias = bias.detach().double()
    finite = values.isfinite().flatten(1).all(1) & (bias.isfinite() | ~answers).all(1)
    mass_is_one = (weights.sum(1) - 1.0).abs() <= MASS_TOLERANCE  # False for NaN
    defined = finite & mass_is_one & (weights >= 0).all(1) & answers.any(1)
    uniform = mask.double() / mask.sum(1, keepdim=True)
    return Texts(
        weights=torch.where(defined[:, None], weights, uniform),
        values=torch.where(defined[:, None, None], values, 0.0),
        bias=torch.where(bias.isfinite(), bias, 0.0),
        mask=mask,
        answers=answers | ~defined[:, None],
        defined=defined,
    )


def _check_epsilon(epsilon: float | int) -> None:
    if not 0 < epsilon <= 1:  # NaN is not
        raise Refusal(
            "the strongest adversary",
            got=f"epsilon {epsilon}",
            needs="a number above 0 and at most 1: how much the output may change",
            way_out="The papers use 0.01 for classification and 0.05 for question answering.",
        )
