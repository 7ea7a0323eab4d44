"""Our LSTM against torch's: the same numbers by two roads, and proof that ours was the one taken."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attentest.fleet.recurrence_stacked import StackedLSTM
from attentest.model.networks import encoders, recurrence, recurrence_gpu
from attentest.model.networks.encoders import OWN_ROAD_FROM, Recurrent
from attentest.model.networks.recurrence import BidirectionalLSTM, reversal
from attentest.model.precision import fast_products, full_precision


def by_torch(encoder, rows, places, present):
    embedded = nn.functional.embedding(places, rows)
    lengths = present.sum(1)
    packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(encoder.cell(packed)[0], batch_first=True, total_length=places.shape[1])[0]


def text(lengths, words=7, emb=5, dtype=torch.float32):
    torch.manual_seed(0)
    rows = torch.randn(words, emb, dtype=dtype, requires_grad=True)
    places = torch.randint(0, words, (len(lengths), max(lengths)))
    present = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return rows, places, present


@pytest.mark.parametrize("lengths", [(6, 3, 1, 5), (1,), (2, 2), (1, 1, 1), (40, 7)])
def test_our_lstm_equals_torchs_in_values_and_gradients(lengths, monkeypatch):
    calls = []
    apply = BidirectionalLSTM.apply
    monkeypatch.setattr(encoders.BidirectionalLSTM, "apply", lambda *given: calls.append(1) or apply(*given))
    rows, places, present = text(lengths)
    encoder = Recurrent(5, OWN_ROAD_FROM, nn.LSTM)
    probe = torch.randn(len(lengths), max(lengths), encoder.width) * present[..., None]

    def gradients(hidden):
        encoder.zero_grad()
        rows.grad = None
        (hidden * probe).sum().backward()
        return [rows.grad.clone(), *(p.grad.clone() for p in encoder.parameters())]

    ours = encoder(rows, places, present)
    assert calls == [1], "the road under test was not taken"
    torchs = by_torch(encoder, rows, places, present)
    torch.testing.assert_close(ours.hidden[present], torchs[present], atol=1e-6, rtol=1e-5)
    for mine, other in zip(gradients(ours.hidden), gradients(torchs), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-4, rtol=1e-4)


def test_the_last_state_joins_the_ends_of_both_directions():
    rows, places, present = text((4, 2))
    encoder = Recurrent(5, OWN_ROAD_FROM, nn.LSTM)
    packed = pack_padded_sequence(
        nn.functional.embedding(places, rows), present.sum(1), batch_first=True, enforce_sorted=False
    )
    _, (last, _) = encoder.cell(packed)
    torch.testing.assert_close(encoder(rows, places, present).last, torch.cat([last[0], last[1]], dim=1))


def test_the_adjoint_is_right_in_double_precision():
    rows, places, present = text((4, 2, 1), words=4, emb=3, dtype=torch.float64)
    torch.manual_seed(1)
    sizes = [(16, 3), (2, 8, 2), (16,)]
    weights = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes]

    def hidden(rows, *weights):
        out = BidirectionalLSTM.apply(rows, places, present.sum(1), *weights)
        return out * present[..., None]

    assert torch.autograd.gradcheck(hidden, (rows, *weights))


@pytest.mark.parametrize(("cell", "hidden"), [(nn.LSTM, OWN_ROAD_FROM - 1), (nn.GRU, OWN_ROAD_FROM)])
def test_narrow_lstms_and_grus_take_torchs_road(cell, hidden):
    assert not Recurrent(5, hidden, cell).takes_own_road(torch.device("cpu"))


def test_reversing_twice_changes_nothing():
    turn = reversal(torch.tensor([3, 1, 5]), 5)
    assert turn[:, 0].tolist() == [2, 1, 0, 3, 4]
    assert torch.equal(turn.gather(0, turn), torch.arange(5)[:, None].expand(5, 3))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("width", (*recurrence_gpu.WIDTHS, *recurrence_gpu.WIDEST))
def test_a_kernel_walks_through_time_as_the_loop_does(width):
    rng = torch.Generator().manual_seed(0)
    steps, batch = 40, 19  # one tile of texts and a part of another
    gates = torch.randn(2, steps, batch, 4 * width, generator=rng)
    weights = 1.6 / width**0.5 * torch.randn(2, 4 * width, width, generator=rng)
    arriving = torch.randn(2, steps, batch, width, generator=rng)
    found = []
    for run, back, device in (
        (recurrence.run, recurrence.back, "cpu"),
        (recurrence_gpu.run, recurrence_gpu.back, "cuda"),
    ):
        opened = gates.to(device).clone()
        states = [torch.empty(2, steps, batch, width, device=device) for _ in range(3)]
        run(opened, weights.to(device), *states)
        slopes = back(arriving.to(device), weights.to(device), opened, *states[:2])
        found.append([opened, *states, slopes])
    for here, there in zip(*found, strict=True):
        torch.testing.assert_close(there.cpu(), here, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("width", "device", "dtype", "alone", "stacked"),
    [
        (32, "cuda", torch.float32, True, True),
        (128, "cuda", torch.float32, False, True),
        (50, "cuda", torch.float32, False, False),
        (32, "cpu", torch.float32, False, False),
        (32, "cuda", torch.float64, False, False),
    ],
)
def test_kernels_are_for_powers_of_two_in_single_precision_on_a_gpu(
    monkeypatch, width, device, dtype, alone, stacked
):
    monkeypatch.setattr(recurrence_gpu, "triton", object())  # as where it is installed
    assert recurrence_gpu.fits(width, torch.device(device), dtype) == alone
    assert recurrence_gpu.fits_stack(width, torch.device(device), dtype) == stacked
    road = Recurrent(5, width, nn.LSTM).to(dtype).takes_own_road(torch.device(device))
    assert road == (alone if device == "cuda" else width >= OWN_ROAD_FROM)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("width", recurrence_gpu.WIDTHS)
def test_an_lstm_of_that_width_takes_the_kernel_on_a_gpu(width):
    assert Recurrent(5, width, nn.LSTM).takes_own_road(torch.device("cuda"))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize(
    "width, within, apart",
    [
        (32, full_precision, 1e-3),
        (64, full_precision, 1e-3),
        (128, full_precision, 1e-3),
        (128, fast_products, 2e-2),
    ],
)
def test_a_stack_takes_the_kernels_on_a_gpu(width, within, apart, monkeypatch):
    """Three models of two directions each, against the loops, with all gradients."""
    rng, taken = torch.Generator().manual_seed(0), []
    models, batch, steps, emb = 3, 19, 23, 6
    given = [
        torch.randn(models, batch, steps, emb, generator=rng),
        torch.randn(models, 8 * width, emb, generator=rng),
        torch.randn(models, 2, 4 * width, width, generator=rng) / width**0.5,
        torch.randn(models, 8 * width, generator=rng),
    ]
    lengths = torch.randint(1, steps + 1, (models, batch), generator=rng)
    run = recurrence_gpu.run
    monkeypatch.setattr(recurrence_gpu, "run", lambda *all: (taken.append(width), run(*all)))
    found = []
    for device in ("cpu", "cuda"):
        embedded, *weights = (each.detach().to(device, copy=True).requires_grad_() for each in given)
        with within():
            hidden = StackedLSTM.apply(embedded, lengths.to(device), *weights)
            hidden.square().sum().backward()
        found.append([hidden.detach(), *(each.grad for each in (embedded, *weights))])
    assert taken == [width]
    for here, there in zip(*found, strict=True):
        torch.testing.assert_close(
            there.cpu(), here, atol=apart * max(1.0, float(here.abs().max())), rtol=apart
        )


def test_one_batched_product_as_on_a_gpu_is_each_side_by_itself(monkeypatch):
    rng = torch.Generator().manual_seed(2)
    sides, steps, batch, width = 6, 5, 4, 3
    given = torch.randn(sides, steps, batch, 4 * width, generator=rng, dtype=torch.float64)
    weights = torch.randn(sides, 4 * width, width, generator=rng, dtype=torch.float64)
    arriving = torch.randn(sides, steps, batch, width, generator=rng, dtype=torch.float64)

    def walked():
        gates = given.clone()
        states = [torch.empty_like(arriving) for _ in range(3)]
        recurrence.run(gates, weights, *states)
        return [gates, *states, recurrence.back(arriving, weights, gates, *states[:2])]

    each = walked()
    monkeypatch.setattr(recurrence, "_sides", lambda step: (step,))
    for one, other in zip(each, walked(), strict=True):
        torch.testing.assert_close(other, one)


@pytest.mark.parametrize("width", [3, 8])
def test_a_stack_is_each_of_its_models(width):
    """Against the LSTM of one model, hidden states and all gradients, in double precision."""
    rng = torch.Generator().manual_seed(1)
    models, batch, steps, emb = 3, 4, 5, 6
    embedded = torch.randn(models, batch, steps, emb, generator=rng, dtype=torch.float64)
    weights = [
        torch.randn(models, 8 * width, emb, generator=rng, dtype=torch.float64),
        torch.randn(models, 2, 4 * width, width, generator=rng, dtype=torch.float64),
        torch.randn(models, 8 * width, generator=rng, dtype=torch.float64),
    ]
    lengths = torch.randint(1, steps + 1, (models, batch), generator=rng)
    real = (torch.arange(steps) < lengths[..., None])[..., None]
    leaves = [each.clone().requires_grad_() for each in (embedded, *weights)]
    together = StackedLSTM.apply(leaves[0], lengths, *leaves[1:])
    (together * real).square().sum().backward()
    for number in range(models):
        own = [each[number].clone().requires_grad_() for each in (embedded, *weights)]
        places = torch.arange(batch * steps).view(batch, steps)
        alone = BidirectionalLSTM.apply(own[0].flatten(0, 1), places, lengths[number], *own[1:])
        (alone * real[number]).square().sum().backward()
        torch.testing.assert_close(together[number] * real[number], alone * real[number])
        for leaf, each in zip(leaves, own, strict=True):
            torch.testing.assert_close(leaf.grad[number], each.grad)
