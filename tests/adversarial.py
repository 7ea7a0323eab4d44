"""Texts for the adversary, and what holds of every attention it finds."""

from itertools import product

import numpy as np
import torch
from scipy.special import expit

from attentest.model.divergence import attainable
from attentest.statistics import comparison

EPSILONS = (0.001, 0.01, 0.1, 0.5)


def texts(lengths, *, classes=1, seed=0, scale=2.0, dtype=torch.float64):
    """A padded batch with attention and values drawn independently."""
    rng = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    scores = torch.randn(mask.shape, generator=rng, dtype=dtype).masked_fill(~mask, float("-inf"))
    values = scale * torch.randn(*mask.shape, classes, generator=rng, dtype=dtype)
    return scores.softmax(-1), values, torch.randn(classes, generator=rng, dtype=dtype), mask


def changes(weights, values, bias, mask, other):
    """The total variation of one-logit outputs, recomputed from scratch."""
    other, weights = (a.double().numpy() for a in (other, weights))
    values = np.where(mask.numpy(), values[:, :, 0].double().numpy(), 0.0)
    before, after = (expit((a * values).sum(1) + float(bias)) for a in (weights, other))
    return np.abs(after - before)


def assert_sound(found, weights, values, bias, mask, epsilon):
    """Whatever the road: attention over real tokens, within epsilon, with the divergence it claims."""
    assert (found.weights >= 0).all() and (found.weights.masked_fill(mask, 0.0) == 0).all()
    torch.testing.assert_close(found.weights.sum(1), torch.ones(len(mask)).double(), atol=1e-6, rtol=0)
    assert (found.output_change <= epsilon).all()
    assert (found.divergence >= 0).all() and (found.divergence <= found.bound + 1e-12).all()
    assert (found.bound <= attainable(weights.double(), mask) + 1e-9).all()
    claimed = comparison.jensen_shannon(found.weights.numpy(), weights.double().numpy())
    np.testing.assert_allclose(found.divergence.numpy(), claimed, atol=1e-12)
    if values.shape[2] == 1:
        assert (changes(weights, values, bias, mask, found.weights) <= epsilon).all()


def no_road(*_):
    raise AssertionError("this road was not to be taken")


def simplex_grid(tokens, steps):
    """Every distribution over the tokens in multiples of 1 / steps."""
    cuts = np.array([c for c in product(range(steps + 1), repeat=tokens - 1) if sum(c) <= steps])
    return np.column_stack([cuts, steps - cuts.sum(1)]) / steps
