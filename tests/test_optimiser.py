"""Row-sparse Adam against dense Adam: the same path, though rows are touched only when read."""

import pytest
import torch
from torch import nn

from attentest.model.training.optimiser import RowAdam


def gradients(steps, rows=6, width=3, seed=0):
    """Each step reads one to three rows (sometimes one twice); row 5 is read once, early, then idles."""
    torch.manual_seed(seed)
    for step in range(steps):
        read = torch.tensor([5, 0]) if step == 2 else torch.randint(0, rows - 1, (3,))
        yield read, torch.randn(len(read), width) * 10.0 ** float(torch.randint(-2, 2, (1,)))


def run(steps, weight_decay=0.0, catch_up=True):
    torch.manual_seed(1)
    start = torch.randn(6, 3)
    dense, sparse = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    adam = torch.optim.Adam([dense], lr=0.01, amsgrad=True, weight_decay=weight_decay)
    ours = RowAdam(sparse, lr=0.01, weight_decay=weight_decay, total_steps=steps)
    for read, slope in gradients(steps):
        ours.catch_up(read.unique())
        if catch_up:  # what the model would read is what dense Adam would have shown it
            torch.testing.assert_close(sparse[read].detach(), dense[read].detach(), atol=1e-5, rtol=1e-5)
        dense.grad = torch.zeros(6, 3).index_add_(0, read, slope)
        sparse.grad = torch.sparse_coo_tensor(read[None], slope, (6, 3), check_invariants=True)
        adam.step()
        ours.step()
    ours.catch_up()
    return dense.detach(), sparse.detach(), ours


@pytest.mark.parametrize("steps", [1, 3, 40, 400])
def test_rows_end_where_dense_adam_would_have_put_them(steps):
    dense, sparse, _ = run(steps)
    torch.testing.assert_close(sparse, dense, atol=2e-5, rtol=1e-5)


def test_a_row_glides_on_after_its_last_gradient():
    _, after_one, _ = run(4, catch_up=False)
    _, later, _ = run(60, catch_up=False)
    moved = (later[5] - after_one[5]).abs()
    assert (moved > 0.01).all(), "momentum should carry an idle row several times the learning rate"


def test_weight_decay_acts_on_rows_that_are_read():
    _, plain, _ = run(30)
    _, decayed, _ = run(30, weight_decay=0.5, catch_up=False)
    assert not torch.allclose(plain[:5], decayed[:5])


def test_state_survives_a_round_trip():
    torch.manual_seed(2)
    table = nn.Parameter(torch.randn(6, 3))
    one = RowAdam(table, lr=0.01, weight_decay=1e-5, total_steps=20)
    history = list(gradients(20))
    for read, slope in history[:9]:
        one.catch_up(read.unique())
        table.grad = torch.sparse_coo_tensor(read[None], slope, (6, 3), check_invariants=True)
        one.step()
    other_table = nn.Parameter(table.detach().clone())
    other = RowAdam(other_table, lr=0.01, weight_decay=1e-5, total_steps=20)
    other.restore({name: tensor.clone() for name, tensor in one.state().items()})
    for read, slope in history[9:]:
        for optimiser in (one, other):
            optimiser.catch_up(read.unique())
            optimiser.table.grad = torch.sparse_coo_tensor(read[None], slope, (6, 3), check_invariants=True)
            optimiser.step()
    one.catch_up()
    other.catch_up()
    assert torch.equal(table, other_table)
