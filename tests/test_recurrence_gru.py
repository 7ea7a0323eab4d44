"""The GRU of a stack of models, against torch's on each model and text by itself, with all gradients."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attentest.fleet.recurrence_gru import StackedGRU

NAMES = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")


def test_a_stack_is_torchs_gru_of_each_model():
    rng = torch.Generator().manual_seed(0)
    models, batch, steps, emb, width = 3, 4, 6, 5, 7
    cells = [nn.GRU(emb, width, batch_first=True, bidirectional=True).double() for _ in range(models)]
    embedded = torch.randn(models, batch, steps, emb, generator=rng, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([[6, 1, 4, 3], [2, 6, 5, 6], [1, 1, 3, 2]])  # none fills the stack in the last
    weighed = torch.randn(models, batch, steps, 2 * width, generator=rng, dtype=torch.float64)
    weighed *= (torch.arange(steps) < lengths[..., None])[..., None]
    stacked = [
        torch.stack([torch.stack([getattr(c, n), getattr(c, f"{n}_reverse")]) for c in cells]).detach()
        for n in NAMES
    ]
    given = [embedded, *(each.requires_grad_() for each in stacked)]
    hidden = StackedGRU.apply(embedded, lengths, *stacked)
    slopes = torch.autograd.grad((hidden * weighed).sum(), given)
    for number, cell in enumerate(cells):
        own = embedded[number].detach().requires_grad_()
        packed = pack_padded_sequence(own, lengths[number], batch_first=True, enforce_sorted=False)
        expected, _ = pad_packed_sequence(cell(packed)[0], batch_first=True, total_length=steps)
        (expected * weighed[number]).sum().backward()
        real = weighed[number] != 0
        torch.testing.assert_close(hidden[number][real], expected[real])
        torch.testing.assert_close(slopes[0][number], own.grad)
        for name, slope in zip(NAMES, slopes[1:], strict=True):
            torch.testing.assert_close(slope[number, 0], getattr(cell, name).grad)
            torch.testing.assert_close(slope[number, 1], getattr(cell, f"{name}_reverse").grad)


def test_an_empty_line_does_no_harm():
    """In a grid of sentences some lines are of no text: their states are finite, and nobody looks."""
    embedded = torch.zeros(1, 2, 3, 4, requires_grad=True)
    shapes = ((1, 2, 6, 4), (1, 2, 6, 2), (1, 2, 6), (1, 2, 6))
    weights = [torch.ones(shape, requires_grad=True) for shape in shapes]
    hidden = StackedGRU.apply(embedded, torch.tensor([[0, 3]]), *weights)
    (hidden[:, 1]).sum().backward()
    assert all(each.grad.isfinite().all() for each in (embedded, *weights))
    assert not embedded.grad[0, 0].any()
