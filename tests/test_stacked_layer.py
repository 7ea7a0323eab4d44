"""A stacked Transformer's steps: what they say they are, with the gradients that follow from it."""

import math

import pytest
import torch

from attentest.fleet import stacked_layer as steps
from attentest.fleet.stacked_layer import Look, add_and_norm, biased_relu
from attentest.model.precision import full_precision


def drawn(*shape, **more):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)), **more)


def test_looking_is_softmax_attention_and_what_is_absent_is_not_looked_at():
    projected = drawn(3, 5, 12, dtype=torch.float64).requires_grad_()
    absent = torch.zeros(3, 5, dtype=torch.float64)
    absent[1, 3:] = absent[2, 1:] = -math.inf
    query, key, value = projected.chunk(3, dim=-1)
    plain = (query @ key.transpose(1, 2) / 2 + absent[:, None]).softmax(2) @ value
    torch.testing.assert_close(Look.apply(projected, absent), plain)
    torch.autograd.gradcheck(lambda given: Look.apply(given, absent), projected)


def test_a_residual_with_its_norm_is_that_of_every_model_by_itself():
    stayed, added = drawn(3, 7, 8), drawn(3, 7, 8) + 1
    bias, weight, shift = (drawn(3, 8) + n for n in range(3))
    found = add_and_norm(stayed, added, bias, weight, shift)
    for own in range(3):
        norm = torch.nn.LayerNorm(8)
        norm.load_state_dict({"weight": weight[own], "bias": shift[own]})
        torch.testing.assert_close(found[own], norm(stayed[own] + added[own] + bias[own]))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("models, rows, width", [(3, 37, 16), (2, 300, 128), (5, 128, 8)])
def test_kernels_and_torch_agree(monkeypatch, models, rows, width):
    given = [drawn(models, rows, width).cuda().requires_grad_() for n in range(2)]
    given += [(drawn(models, width) + n).cuda().requires_grad_() for n in range(3)]
    slope = drawn(models, rows, width).cuda()
    ways = (add_and_norm, given), (biased_relu, [given[0], given[2]])
    with full_precision():
        assert steps.is_fast(given[0])
        fast = [(way(*of), torch.autograd.grad(way(*of), of, slope)) for way, of in ways]
        monkeypatch.setattr(steps, "is_fast", lambda rows: False)
        slow = [(way(*of), torch.autograd.grad(way(*of), of, slope)) for way, of in ways]
    torch.testing.assert_close(fast, slow, rtol=1e-4, atol=1e-4)


def test_a_width_that_is_no_power_of_two_goes_by_torch():
    assert not steps.is_fast(torch.zeros(1, 1, 12))
