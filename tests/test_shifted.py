"""What the offsets of a convolution say, added where they speak of: against slices, with gradients."""

import pytest
import torch
from torch.nn import functional

from attentest.model.networks.shifted import ShiftedSum


def by_slices(said):
    places, offsets = said.shape[2:4]
    padded = functional.pad(said, (0, 0, 0, 0, offsets // 2, offsets // 2))
    return torch.stack([padded[:, :, o : o + places, o] for o in range(offsets)]).sum(0)


@pytest.mark.parametrize("places, offsets", [(6, 1), (6, 3), (2, 5), (1, 7), (9, 9)])
def test_a_window_is_the_sum_of_slices(places, offsets):
    rng = torch.Generator().manual_seed(0)
    said = torch.randn(2, 3, places, offsets, 4, generator=rng, dtype=torch.float64, requires_grad=True)
    weighed = torch.randn(2, 3, places, 4, generator=rng, dtype=torch.float64)
    found = []
    for add in (by_slices, ShiftedSum.apply):
        summed = add(said)
        found.append((summed, *torch.autograd.grad((summed * weighed).sum(), said)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-12, atol=1e-12)
