"""Several classes: a far attention that keeps the output, and a bound that no attention can pass.

Let p be the own output over C classes and M what each token alone adds to each logit, so that an attention
alpha moves the logits by d = alpha M and makes p'_c = p_c exp(d_c - s), with s(d) = ln sum_c p_c exp(d_c).

*From outside.* A total variation of at most epsilon moves no single class by more than epsilon. So every such
alpha lies in the polytope where some number s has, for every c, ln((p_c - epsilon) / p_c) <= d_c - s <=
ln((p_c + epsilon) / p_c); the left side is open where p_c <= epsilon. The divergence D(alpha, a) is convex,
hence at most sum_t alpha_t D(e_t, a): the maximum of that over the polytope, one linear programme, bounds
them all.

*From inside.* Around an allowed attention x, let s~ be the tangent of s at x, and demand numbers theta_c >= 0
that sum to at most epsilon with d_c - s~ <= ln((p_c + theta_c) / p_c) for every c. As s is convex, s >= s~,
so p'_c <= p_c + theta_c, and the total variation, the sum of p'_c - p_c over the classes that gain, is at
most epsilon. The logarithm is concave in theta_c, so chords lie below it and make the demand linear, and
stricter; two chords that meet in what c gains at x leave x itself allowed. In this polytope the
convex-concave procedure climbs: maximise the tangent of the divergence, which cannot end below x; go there;
repeat around it. That ends in a local maximum, so there are several starts; and a step counts only if the
recomputed output agrees.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.optimize import Bounds, LinearConstraint, milp
from torch import Tensor

from attentest.model.divergence import at_corners, jensen_shannon, total_variation

STEPS = 12  # of one climb
FAVOURED = 1  # tokens that get a climb of their own
DIRECTIONS = 1  # random ones, each climbed both ways
SLACK = 1e-4  # of epsilon: more than the solver's tolerance of 1e-7 can cost
SOLVED_WITHIN = 1e-6  # what is added to a bound that is only as good as the solver
ENOUGH = 1e-5  # nats; a step that gains less is the last
# The divergence falls infinitely fast when a weight leaves zero. With the true slope a token of no weight
# would never be considered again; with the slope at this weight it is.
FLOOR = 0.01

Point = Float[Tensor, " token"]


class Polytope(NamedTuple):
    """`low <= rows @ variables <= high`: an attention first, then variables that are at least `least`."""

    rows: Float[Tensor, "row variable"]
    low: Float[Tensor, " row"]
    high: Float[Tensor, " row"]
    least: float  # 0, or minus infinity

    def furthest_along(self, objective: Point) -> Point | None:
        """Where the objective is largest, on the simplex again after rounding; None if the solver gave up.

        `milp` without integers is HiGHS on a plain linear programme; unlike `linprog` it takes rows with two
        sides, which is half the rows and half the time.
        """
        tokens, others = len(objective), self.rows.shape[1] - len(objective)
        sums_to_one = np.append(np.ones(tokens), np.zeros(others))
        constraints = LinearConstraint(
            np.vstack([self.rows.numpy(), sums_to_one]), np.append(self.low, 1.0), np.append(self.high, 1.0)
        )
        least = Bounds(np.append(np.zeros(tokens), np.full(others, self.least)), np.inf)
        solved = milp(np.append(-objective, np.zeros(others)), constraints=constraints, bounds=least)
        if not solved.success:
            return None
        point = torch.from_numpy(solved.x[:tokens]).clamp_min(0.0)
        return point / point.sum()


@final
@dataclass(frozen=True, kw_only=True)
class Text:
    """One text without padding and impossible answers: own weights, moves of the logits, own output."""

    weights: Point
    moves: Float[Tensor, "token class"]
    log_output: Float[Tensor, " class"]

    def output(self, point: Float[Tensor, "*variant token"]) -> Float[Tensor, "*variant class"]:
        """The probabilities under another attention."""
        return (self.log_output + point @ self.moves).softmax(-1)

    def change(self, point: Float[Tensor, "*variant token"]) -> Float[Tensor, "*variant"]:
        """Total variation of the output."""
        return total_variation(self.output(point), self.log_output.exp())

    def divergence(self, point: Point) -> float:
        """From the own attention."""
        return float(jensen_shannon(point, self.weights))

    def slope(self, point: Point) -> Point:
        """The gradient of the divergence, 0.5 ln(2x / (x + a)), with x kept off zero."""
        x = point.clamp_min(FLOOR)
        return 0.5 * (2.0 * x / (x + self.weights)).log()

    def around(self, point: Point, epsilon: float) -> Polytope:
        """The polytope inside: allowed attentions, among them `point`, which must be one; then the thetas."""
        output, moved = self.output(point), point @ self.moves
        tangent = (self.log_output + moved).logsumexp(-1) - output @ moved  # of s, where nothing moves
        ahead = self.moves.T - output @ self.moves.T  # d - s~, up to that number
        gained = (output - self.log_output.exp()).clamp_max(0.999 * epsilon)
        knot = torch.where(gained > 0.001 * epsilon, gained, epsilon / len(output))
        first, last = _raised(self.log_output, knot), _raised(self.log_output, torch.full_like(knot, epsilon))
        steep, flat = first / knot, (last - first) / (epsilon - knot)
        spent = torch.cat([torch.zeros_like(point), torch.ones_like(knot)])[None]
        rows = torch.cat([torch.cat([ahead, -chord.diag()], dim=1) for chord in (steep, flat)])
        high = torch.cat([tangent.expand_as(knot), tangent + first - flat * knot, knot.new_tensor([epsilon])])
        return Polytope(torch.cat([rows, spent]), torch.full_like(high, -math.inf), high, least=0.0)

    def outside(self, epsilon: float) -> Polytope:
        """The polytope outside: all allowed attentions, and more; then s."""
        high = _raised(self.log_output, torch.full_like(self.log_output, epsilon))
        share = (math.log(epsilon) - self.log_output).exp().clamp_max(1.0)
        rows = torch.cat([self.moves.T, -torch.ones_like(high)[:, None]], dim=1)
        return Polytope(rows, torch.log1p(-share), high, least=-math.inf)  # log1p(-1): open


def _raised(log_p: Tensor, more: Tensor) -> Tensor:
    """ln((p + t) / p), also where p underflows."""
    return torch.logaddexp(more.log() - log_p, torch.zeros_like(log_p))


def furthest_found(
    weights: Float[Tensor, "batch token"],
    moves: Float[Tensor, "batch token class"],
    log_output: Float[Tensor, "batch class"],
    mask: Bool[Tensor, "batch token"],
    answers: Bool[Tensor, "batch class"],
    epsilon: float,
) -> tuple[Float[Tensor, "batch token"], Float[Tensor, " batch"]]:
    """For each text the furthest attention found within epsilon, and a bound on the divergence of all."""
    found, bound = torch.zeros_like(weights), weights.new_zeros(len(weights))
    for row in range(len(weights)):
        tokens, classes = mask[row], answers[row]
        text = Text(
            weights=weights[row, tokens].cpu(),
            moves=moves[row, tokens][:, classes].cpu(),
            log_output=log_output[row, classes].cpu(),
        )
        point, above = _furthest_of(text, epsilon)
        found[row, tokens], bound[row] = point.to(found), above
    return found, bound


def _furthest_of(text: Text, epsilon: float) -> tuple[Point, float]:
    alone = at_corners(text.weights)
    attainable = float(alone.max())
    corners = torch.eye(len(alone), dtype=alone.dtype)
    within = text.change(corners) <= epsilon
    if within[alone.argmax()]:  # also whenever only one answer is possible
        return corners[alone.argmax()], attainable
    climbed = [_climb(text, start, epsilon) for start in _starts(alone)]
    best = max([*corners[within], *climbed], key=text.divergence)
    relaxed = text.outside(epsilon).furthest_along(alone)
    if relaxed is None:
        return best, attainable
    return best, min(attainable, float(relaxed @ alone) + SOLVED_WITHIN)


def _starts(alone: Point) -> Iterator[Point]:
    """First objectives: each token's divergence; the same in favour of a far token; random, both ways."""
    yield alone
    for token in alone.argsort(descending=True)[:FAVOURED]:
        yield alone + torch.nn.functional.one_hot(token, len(alone))
    rng = torch.Generator().manual_seed(0)  # a text's adversary does not depend on its batch
    for _ in range(DIRECTIONS):
        direction = torch.randn(len(alone), generator=rng, dtype=alone.dtype)
        yield direction
        yield -direction


def _climb(text: Text, objective: Point, epsilon: float) -> Point:
    """The convex-concave procedure from the own attention, whose slope is zero: hence a first objective."""
    here = text.weights
    for _ in range(STEPS):
        ahead = text.around(here, (1.0 - SLACK) * epsilon).furthest_along(objective)
        if ahead is None or text.change(ahead) > epsilon:
            break
        if text.divergence(ahead) <= text.divergence(here) + ENOUGH:
            break
        here, objective = ahead, text.slope(ahead)
    return here
