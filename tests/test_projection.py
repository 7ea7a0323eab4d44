"""Projections: on the simplex, blind to padding, unmoved by a shift, equivariant, with the right gradient."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from attentest.model.networks.projection import (
    PROJECTIONS,
    Projection,
    entmax15,
    gumbel_softmax,
    softmax,
    sparsegen,
    sparsemax,
    uniform,
)
from attentest.refusal import Refusal

WRITTEN = (
    "softmax",
    "sparsemax",
    "entmax15",
    "sparsegen(0.5)",
    "sparsegen(-3)",
    "gumbel-softmax(0.8)",
    "tempered-softmax(0.8)",
    "uniform",
)
scores = arrays.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 7)), elements=st.floats(-8, 8))


def all_real(z):
    return torch.ones(z.shape, dtype=torch.bool)


@pytest.mark.parametrize("written", WRITTEN)
@given(z=scores)
def test_weights_lie_on_the_simplex_and_ignore_a_shift(written, z):
    project, z = Projection.parse(written), torch.from_numpy(z)
    weights = project(z, all_real(z))
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(z), dtype=z.dtype))
    torch.testing.assert_close(project(z + 3.5, all_real(z)), weights)


@pytest.mark.parametrize("written", WRITTEN)
@given(z=scores, more=st.integers(1, 4), noise=st.floats(-1e6, 1e6))
def test_padding_is_silent_whatever_its_scores(written, z, more, noise):
    project, z = Projection.parse(written), torch.from_numpy(z)
    wide = torch.nn.functional.pad(z, (0, more), value=noise)
    mask = torch.nn.functional.pad(all_real(z), (0, more))
    weights = project(wide, mask)
    torch.testing.assert_close(weights[:, : z.shape[1]], project(z, all_real(z)))
    assert (weights[:, z.shape[1] :] == 0).all()


@pytest.mark.parametrize("written", WRITTEN)
@given(z=scores, seed=st.integers(0, 99))
def test_reordering_tokens_reorders_their_weights(written, z, seed):
    project, z = Projection.parse(written), torch.from_numpy(z)
    order = torch.randperm(z.shape[1], generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(project(z[:, order], all_real(z)), project(z, all_real(z))[:, order])


def by_sorting(z):
    """Sparsemax as the papers write it: the threshold from the sorted scores."""
    ranked = np.sort(z)[::-1]
    support = [k for k in range(1, len(z) + 1) if 1 + k * ranked[k - 1] > ranked[:k].sum()]
    threshold = (ranked[: support[-1]].sum() - 1) / support[-1]
    return np.maximum(z - threshold, 0)


@given(z=scores)
def test_sparsemax_equals_its_definition(z):
    weights = sparsemax(torch.from_numpy(z), all_real(torch.from_numpy(z)))
    np.testing.assert_allclose(weights.numpy(), [by_sorting(row) for row in z], atol=1e-9)


@given(z=scores, sparsity=st.floats(-20, 0.9))
def test_sparsegen_is_sparsemax_of_stretched_scores(z, sparsity):
    z = torch.from_numpy(z)
    torch.testing.assert_close(
        sparsegen(z, all_real(z), sparsity=sparsity), sparsemax(z / (1 - sparsity), all_real(z))
    )
    torch.testing.assert_close(sparsegen(z, all_real(z), sparsity=0.0), sparsemax(z, all_real(z)))


def test_sparsegen_runs_from_uniform_to_one_hot():
    z, mask = torch.tensor([[0.1, 0.5, 0.2]]), torch.ones(1, 3, dtype=torch.bool)
    torch.testing.assert_close(sparsegen(z, mask, sparsity=-1e5), uniform(z, mask), atol=1e-4, rtol=0)
    assert sparsegen(z, mask, sparsity=0.999).tolist() == [[0.0, 1.0, 0.0]]


@pytest.mark.parametrize("project", [softmax, sparsemax, entmax15, uniform])
def test_a_row_without_tokens_gets_no_weight_and_no_crash(project):
    z, mask = torch.zeros(2, 3), torch.tensor([[False] * 3, [True, True, False]])
    weights = project(z, mask)
    assert weights[0].tolist() == [0, 0, 0] and float(weights[1].sum()) == pytest.approx(1)


@pytest.mark.parametrize("project", [softmax, sparsemax, entmax15])
def test_gradients_are_right_in_double_precision_beside_padding(project):
    z = torch.tensor([[0.3, -0.2, 1.1, 0.0], [0.5, 0.45, 9.0, 9.0]], dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    assert torch.autograd.gradcheck(lambda z: project(z, mask), (z,))


def test_gumbel_noise_needs_a_generator_and_follows_it():
    z, mask = torch.zeros(4000, 2), torch.ones(4000, 2, dtype=torch.bool)
    quiet = gumbel_softmax(z, mask, temperature=0.8)
    assert torch.equal(quiet, softmax(z, mask))

    def noisy(seed):
        return gumbel_softmax(z, mask, temperature=0.8, rng=torch.Generator().manual_seed(seed))

    assert torch.equal(noisy(1), noisy(1)) and not torch.equal(noisy(1), noisy(2))
    # The difference of two Gumbel draws is logistic, of variance pi^2 / 3.
    logit = 0.8 * torch.logit(noisy(3).double())[:, 0]
    assert abs(float(logit.mean())) < 0.1 and abs(float(logit.var()) - np.pi**2 / 3) < 0.25


@given(z=scores, seed=st.integers(0, 99))
def test_a_tempered_softmax_is_gumbel_softmax_that_never_has_noise(z, seed):
    z, noise = torch.from_numpy(z), torch.Generator().manual_seed(seed)
    quiet, noisy = (Projection.parse(name) for name in ("tempered-softmax(0.8)", "gumbel-softmax(0.8)"))
    assert torch.equal(quiet(z, all_real(z), noise), noisy(z, all_real(z)))
    torch.testing.assert_close(quiet(z, all_real(z)), softmax(z / 0.8, all_real(z)))


@pytest.mark.parametrize(
    "written",
    [
        "sparsegen",
        "sparsegen(1)",
        "sparsegen(x)",
        "sparsegen(nan)",
        "gumbel-softmax(0)",
        "tempered-softmax",
        "tempered-softmax(-1)",
        "tempered-softmax(1e-320)",
        "sparsegen(-1e308)",
        "sparsegen(inf)",
        "softmax(1)",
        "soft max",
        "",
        "sparsegen()",
    ],
)
def test_a_projection_that_makes_no_sense_is_refused(written):
    with pytest.raises(Refusal):
        Projection.parse(written)


def test_every_projection_of_the_catalogue_can_be_written():
    assert {Projection.parse(written).name for written in (*WRITTEN, "stored")} == set(PROJECTIONS)
