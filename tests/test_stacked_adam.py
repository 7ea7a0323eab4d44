"""The optimiser of a fleet: its rows are those of `RowAdam`, however often a batch names them."""

import torch

from attentest.model.optimiser import RowAdam
from attentest.model.stacked_adam import StackedRows


def test_rows_named_often_move_as_rows_named_once():
    rng = torch.Generator().manual_seed(0)
    table = torch.randn(12, 3, generator=rng, dtype=torch.float64)
    settings = {"lr": 0.05, "weight_decay": 0.01, "total_steps": 60}
    ours, theirs = StackedRows(table.clone(), **settings), RowAdam(table.clone(), **settings)
    for _ in range(50):
        named = torch.randint(12, (9,), generator=rng)
        slopes = torch.randn(9, 3, generator=rng, dtype=torch.float64)
        distinct, place = named.unique(return_inverse=True)
        ours.catch_up(named)
        ours.move(named, slopes)
        theirs.catch_up(distinct)
        theirs.move(distinct, torch.zeros(len(distinct), 3, dtype=torch.float64).index_add_(0, place, slopes))
        torch.testing.assert_close(ours.table[named], theirs.table[named], rtol=1e-9, atol=1e-12)
    ours.catch_up(torch.arange(12))
    theirs.catch_up()
    torch.testing.assert_close(ours.table, theirs.table, rtol=1e-9, atol=1e-12)
    assert not ours.gradient.any()
