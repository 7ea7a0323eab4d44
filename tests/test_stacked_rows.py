"""The rows of a fleet are those of `RowAdam`, however often a batch names them, by torch and by kernels."""

import pytest
import torch

from attentest.fleet.stacked_rows import StackedRows
from attentest.model.training.optimiser import RowAdam

SETTINGS = {"lr": 0.05, "weight_decay": 0.01, "total_steps": 60}


def walked(ours, theirs, *, device, rtol, atol):
    """Fifty steps of both on the same rows, which ours may name several times, or none (-1)."""
    rng = torch.Generator().manual_seed(0)
    words, wide = theirs.table.shape
    for _ in range(50):
        named = torch.randint(words, (9,), generator=rng)
        named[named == 0] = -1  # the row of padding, which is zero, is never named
        slopes = torch.randn(9, wide, generator=rng, dtype=torch.float64)
        real = named >= 0
        distinct, place = named[real].unique(return_inverse=True)
        ours.catch_up(named.to(device))
        ours.move(named.to(device), slopes.to(device, ours.table.dtype))
        theirs.catch_up(distinct)
        theirs.move(distinct, slopes.new_zeros(len(distinct), wide).index_add_(0, place, slopes[real]))
        found = ours.table.cpu().double()[distinct]
        torch.testing.assert_close(found, theirs.table[distinct], rtol=rtol, atol=atol)
    ours.catch_up(torch.arange(words, device=device))
    theirs.catch_up()
    torch.testing.assert_close(ours.table.cpu().double(), theirs.table, rtol=rtol, atol=atol)
    assert not ours.gradient.any()


def test_rows_named_often_move_as_rows_named_once():
    table = torch.randn(12, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    table[0] = 0.0
    ours, theirs = StackedRows(table.clone(), **SETTINGS), RowAdam(table.clone(), **SETTINGS)
    assert not ours.is_fast()
    walked(ours, theirs, device="cpu", rtol=1e-9, atol=1e-12)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("wide", [3, 50, 300])
def test_the_kernels_move_them_to_the_same_places(wide):
    table = torch.randn(12, wide, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    table[0] = 0.0
    ours = StackedRows(table.to("cuda", torch.float32), **SETTINGS)
    assert ours.is_fast()
    walked(ours, RowAdam(table.clone(), **SETTINGS), device="cuda", rtol=1e-4, atol=1e-5)
