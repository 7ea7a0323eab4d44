"""k-means of all ranks and restarts in lockstep: the road of a GPU, walked here beside the other one."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from attentest.evidence.information import quantisation, quantisation_together
from attentest.evidence.information.quantisation import _lloyd, k_means, nearest, rank_symbols, small_share
from attentest.evidence.information.quantisation_together import Codebooks, lloyd, tightest
from attentest.evidence.information.ranked import output_symbols
from attentest.evidence.information.seeding import seeds
from attentest.model.precision import full_precision
from attentest.refusal import Refusal
from tests.toys import seeded

ROADS = {"in turn": False, "in lockstep": True}


def states(ranks=3, texts=200, width=6, seed=0, dtype=torch.float64):
    """Vectors about zero, other ones at every rank; they form no clusters, so that there are many steps."""
    vectors = torch.randn(ranks, texts, width, generator=seeded(seed), dtype=dtype)
    return vectors - vectors.mean(1, keepdim=True)


def blobs(texts, places, width=8, seed=0):
    """Vectors about a few places that are far apart, and the place of each."""
    rng = np.random.default_rng(seed)
    own = np.arange(texts) % places
    centres = 3 * rng.normal(size=(places, width))
    return torch.tensor(centres[own] + 0.05 * rng.normal(size=(texts, width)), dtype=torch.float32), own


def same_partition(one, other):
    pairs = set(zip(np.asarray(one).tolist(), np.asarray(other).tolist(), strict=True))
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def begun(vectors, number, restarts=4, seed=0):
    """The rank of every run, and its seeds."""
    drawn = seeds(vectors, vectors.mT, number, restarts, seeded(seed))
    places, real = (of_ranks.flatten(0, 1) for of_ranks in drawn)
    rank = torch.arange(len(vectors)).repeat_interleave(restarts)
    return rank, places, real


@pytest.fixture(params=ROADS)
def road(request, monkeypatch):
    monkeypatch.setattr(quantisation, "on_gpu", lambda vectors: ROADS[request.param])


@pytest.fixture
def lockstep(monkeypatch):
    monkeypatch.setattr(quantisation, "on_gpu", lambda vectors: True)


# Seeds


def seeds_by_hand(vectors, luck):
    """One run of k-means++ over the luck of its steps: every distance from its differences."""
    chosen = []
    for one in luck:
        far = np.ones(len(vectors))
        if chosen:
            far = ((vectors[:, None] - vectors[chosen]) ** 2).sum(2).min(1)
        if not far.any():
            break
        chosen.append(int(np.searchsorted(np.cumsum(far), one * far.sum(), side="right")))
    return chosen


@pytest.mark.parametrize("copies", [False, True])
def test_every_run_of_every_rank_draws_its_own_seeds(copies):
    vectors = states(ranks=3, texts=40)
    if copies:  # the second rank has six places, the third has one
        vectors[1], vectors[2] = vectors[1, torch.arange(40) % 6], 0.0
    drawn = seeds(vectors, vectors.mT, 9, 5, seeded(7))
    luck = torch.rand(9, 3, 5, 1, dtype=torch.float64, generator=seeded(7)).numpy()
    for rank in range(3):
        for run in range(5):
            found = drawn.places[rank, run][drawn.real[rank, run]].tolist()
            assert found == seeds_by_hand(vectors[rank].numpy(), luck[:, rank, run, 0])
    assert drawn.real.sum(2).tolist() == [[9] * 5, [6 if copies else 9] * 5, [1 if copies else 9] * 5]


def test_seeds_of_one_rank_are_those_without_ranks():
    vectors = states(ranks=1, dtype=torch.float32)
    many = seeds(vectors, vectors.mT, 20, 6, seeded())
    one = seeds(vectors[0], vectors[0].T.contiguous(), 20, 6, seeded())
    assert torch.equal(many.places[0], one.places) and torch.equal(many.real[0], one.real)


# Lloyd's steps


@pytest.mark.parametrize("iterations", [0, 1, 3, 300])
@pytest.mark.parametrize("number", [1, 4, 25])
def test_runs_together_end_where_each_ends_alone(number, iterations):
    vectors = states()
    rank, places, real = begun(vectors, number)
    found = lloyd(vectors, rank, vectors[rank[:, None], places], real, iterations)
    for run, own in enumerate(vectors[rank]):
        alone = _lloyd(own, own.T.contiguous(), own[places[run]], iterations)
        assert torch.equal(found.symbols[run], alone.symbols)
        torch.testing.assert_close(found.centres[run], alone.centres)
        assert float(found.inertia[run]) == pytest.approx(alone.inertia, rel=1e-12)


def test_single_precision_ends_there_too():
    vectors = states(ranks=2, texts=400, width=24, dtype=torch.float32)
    rank, places, real = begun(vectors, 12)
    found = lloyd(vectors, rank, vectors[rank[:, None], places], real, 300)
    double = lloyd(vectors.double(), rank, vectors.double()[rank[:, None], places], real, 300)
    assert found.centres.dtype == torch.float32 and found.inertia.dtype == torch.float64
    torch.testing.assert_close(found.inertia, double.inertia, rtol=1e-3, atol=0)
    for run, own in enumerate(vectors[rank]):
        alone = _lloyd(own, own.T.contiguous(), own[places[run]], 300)
        assert float(found.inertia[run]) == pytest.approx(alone.inertia, rel=1e-3)


def test_centres_that_are_not_real_are_nobodys_and_an_empty_cluster_keeps_its_centre():
    vectors = torch.tensor([[[-4.0], [-3.0], [3.0], [4.0]]])
    centres = torch.tensor([[[-9.0], [-3.5], [9.0], [1.0]], [[-3.5], [-3.4], [3.4], [50.0]]])
    real = torch.tensor([[False, True, True, False], [True] * 4])
    found = lloyd(vectors, torch.tensor([0, 0]), centres, real, 300)
    assert found.symbols.tolist() == [[1, 1, 2, 2], [0, 1, 2, 2]]
    assert found.centres[0, 1:3, 0].tolist() == [-3.5, 3.5]
    assert found.centres[1, :, 0].tolist() == [-4.0, -3.0, 3.5, 50.0]
    assert (found.inertia + vectors.square().sum()).tolist() == [1.0, 0.5]


def test_a_tie_goes_to_the_first():
    vectors = torch.tensor([[[-1.0], [0.0], [1.0]]])
    found = lloyd(vectors, torch.tensor([0]), vectors[:, [0, 2]], torch.ones(1, 2, dtype=torch.bool), 0)
    assert found.symbols.tolist() == [[0, 0, 1]]


def test_a_run_that_has_arrived_leaves(monkeypatch):
    """Together the runs take as many steps as one after another, and the longest says how many there are."""
    measured, assigned = [], quantisation_together._assigned

    def counted(vectors, rank, centres, real):
        measured.append(len(rank))
        return assigned(vectors, rank, centres, real)

    monkeypatch.setattr(quantisation_together, "_assigned", counted)
    vectors = states()
    rank, places, real = begun(vectors, 10)
    centres = vectors[rank[:, None], places]
    lloyd(vectors, rank, centres, real, 300)
    together, measured[:] = measured[:], []
    alone = []
    for run in range(len(rank)):
        lloyd(vectors, rank[run, None], centres[run, None], real[run, None], 300)
        alone.append(len(measured) - sum(alone))
    assert together == [sum(steps > step for steps in alone) for step in range(max(alone))]
    assert len(set(together)) > 3


@pytest.mark.parametrize("size", [1, 30_000])
def test_some_texts_at_a_time_are_all_of_them(monkeypatch, size):
    vectors = states()
    whole = tightest(vectors, 15, rng=seeded(), restarts=3, iterations=300)
    monkeypatch.setattr(quantisation_together, "BYTES", size)
    some = tightest(vectors, 15, rng=seeded(), restarts=3, iterations=300)
    assert torch.equal(whole.symbols, some.symbols)
    torch.testing.assert_close(whole.inertia, some.inertia)


# The tightest of every rank


def test_every_rank_has_the_tightest_of_its_own_restarts():
    vectors = states(ranks=4)
    rank, places, real = begun(vectors, 12, restarts=5)
    runs = lloyd(vectors, rank, vectors[rank[:, None], places], real, 300)
    found = tightest(vectors, 12, rng=seeded(), restarts=5, iterations=300)
    for of_rank in range(4):
        best = min((run for run in range(20) if rank[run] == of_rank), key=lambda run: runs.inertia[run])
        assert torch.equal(found.symbols[of_rank], runs.symbols[best])
        assert found.inertia[of_rank] == runs.inertia[best]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_rank_ends_where_the_other_road_does(lockstep, monkeypatch, dtype):
    """The draws are the same, and so are the seeds."""
    vectors = states(ranks=1, texts=300, dtype=dtype)[0] + 5
    together = k_means(vectors, 8, rng=seeded(), restarts=6)
    monkeypatch.setattr(quantisation, "on_gpu", lambda vectors: False)
    in_turn = k_means(vectors, 8, rng=seeded(), restarts=6)
    assert torch.equal(together.symbols, in_turn.symbols)
    torch.testing.assert_close(together.centres, in_turn.centres)
    assert together.inertia == pytest.approx(in_turn.inertia, rel=1e-5)


def smooth(texts=700, width=32):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(texts, width))
    return torch.tensor(np.tanh(rng.normal(size=(texts, 6)) @ rng.normal(size=(6, width)) + 0.3 * noise))


@pytest.mark.parametrize("number", [5, 40, 100])
def test_from_the_same_seeds_scikit_learn_goes_the_same_way(number):
    vectors = (smooth() - smooth().mean(0))[None]
    rank, places, real = begun(vectors, number)
    centres = vectors[rank[:, None], places]
    found = lloyd(vectors, rank, centres, real, 300)
    for run, start in enumerate(centres.numpy()):
        theirs = KMeans(number, init=start, n_init=1, tol=0, algorithm="lloyd").fit(vectors[0].numpy())
        assert found.symbols[run].tolist() == theirs.labels_.tolist()
        assert float(found.inertia[run] + vectors.square().sum()) == pytest.approx(theirs.inertia_)


@pytest.mark.parametrize("number", [5, 40, 100])
def test_clusters_are_as_tight_as_scikit_learns(lockstep, number):
    """Up to its seeds: each is the best of some candidates, ours are drawn once, on either road.

    At seven vectors a cluster that is 2 to 5 % by the draw; at more it is next to nothing.
    """
    ours = k_means(smooth().float(), number, rng=seeded())
    theirs = KMeans(number, n_init=10, random_state=0).fit(smooth().numpy())
    assert ours.inertia == pytest.approx(theirs.inertia_, rel=0.03 if number < 100 else 0.05)


def arrived(vectors, found: Codebooks):
    """Whether every rank's clustering is one that Lloyd's steps leave as it is."""
    for own, centres, real, symbols, inertia in zip(vectors, *found, strict=True):
        apart = ((own[:, None] - centres) ** 2).sum(2).masked_fill(~real, np.inf)
        left = apart.gather(1, symbols[:, None])[:, 0]
        assert real[symbols].all() and (left <= apart.min(1).values + 1e-9).all()
        assert float(inertia + own.square().sum()) == pytest.approx(float(left.sum()), abs=1e-9)
        for symbol in symbols.unique():
            torch.testing.assert_close(centres[symbol], own[symbols == symbol].mean(0))


@settings(max_examples=40)
@given(
    st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 40), st.integers(1, 3), st.booleans(), st.data()
)
def test_whatever_the_vectors_all_ranks_arrive(seed, ranks, texts, restarts, copies, data):
    number = data.draw(st.integers(1, texts))
    rng = np.random.default_rng(seed)
    shape = (ranks, texts, 2)
    vectors = torch.tensor(rng.integers(3, size=shape) * 1.0 if copies else rng.normal(size=shape))
    vectors = vectors - vectors.mean(1, keepdim=True)
    found = tightest(vectors, number, rng=seeded(seed), restarts=restarts, iterations=300)
    arrived(vectors, found)
    places = [len(own.unique(dim=0)) for own in vectors]
    assert found.real.sum(1).tolist() == [min(number, one) for one in places]


# Where there is little to tell apart


def test_vectors_that_are_all_equal_are_one_cluster(road):
    codebook = k_means(torch.full((20, 4), 0.3), 5, rng=seeded())
    assert codebook.symbols.tolist() == [0] * 20 and codebook.centres.shape == (1, 4)
    assert codebook.inertia == pytest.approx(0, abs=1e-9)
    found = rank_symbols(torch.full((3, 20, 4), 0.3), (10, 5), rng=seeded())
    assert found.number == 5 and found.small == 0.8 and not found.symbols.any()


def test_too_few_places_are_too_few_clusters(road):
    words = torch.randn(7, 16, generator=seeded())
    vectors = words[torch.arange(70) % 7] * (1 + 1e-7 * torch.randn(70, 1, generator=seeded()))
    codebook = k_means(vectors, 12, rng=seeded())
    assert same_partition(codebook.symbols, np.arange(70) % 7) and codebook.centres.shape == (7, 16)
    assert small_share(codebook.symbols, 12) == pytest.approx(5 / 12)
    assert (nearest(vectors, codebook.centres) == codebook.symbols).all()


def test_ranks_of_few_places_and_of_many_are_quantised_together(road):
    words = torch.randn(3, 8, generator=seeded())
    few, many = words[torch.arange(60) % 3], blobs(60, 10)[0]
    found = rank_symbols(torch.stack([many, few]), (10,), rng=seeded())
    assert same_partition(found.symbols[0], np.arange(60) % 10)
    assert same_partition(found.symbols[1], np.arange(60) % 3) and found.small == 0.7


def test_as_many_clusters_as_vectors_are_the_vectors(road):
    vectors = torch.randn(9, 3, generator=seeded())
    codebook = k_means(vectors, 9, rng=seeded())
    torch.testing.assert_close(codebook.centres[codebook.symbols], vectors)
    assert len(codebook.symbols.unique()) == 9 and codebook.inertia == pytest.approx(0, abs=1e-5)


def test_one_cluster_is_about_the_mean(road):
    vectors = torch.randn(50, 3, generator=seeded(), dtype=torch.float64)
    codebook = k_means(vectors, 1, rng=seeded(), restarts=2)
    torch.testing.assert_close(codebook.centres[0], vectors.mean(0))
    assert codebook.inertia == pytest.approx(float((vectors - vectors.mean(0)).square().sum()))


def test_what_cannot_be_is_refused_on_both_roads(road):
    with pytest.raises(Refusal, match="4 vectors, 5 clusters"):
        k_means(torch.zeros(4, 2), 5, rng=seeded())
    with pytest.raises(Refusal, match="0 restarts"):
        rank_symbols(torch.zeros(2, 9, 3), (5,), rng=seeded(), restarts=0)
    with pytest.raises(Refusal, match="9 texts that are long enough for 10 clusters"):
        rank_symbols(torch.zeros(2, 9, 3), (20, 10), rng=seeded())


# The number of clusters, and the outputs


def test_the_largest_number_without_small_clusters_is_chosen(road):
    tight = torch.stack([blobs(60, 10, seed=seed)[0] for seed in (0, 1)])
    found = rank_symbols(tight, (5, 10), rng=seeded())
    assert found.number == 10 and found.small == 0
    assert all(same_partition(symbols, np.arange(60) % 10) for symbols in found.symbols)
    alone = tight.clone()
    alone[1, 0] += 100  # one text that is like no other: at the second rank it is a cluster of its own
    strict = rank_symbols(alone, (10, 5), rng=seeded())
    assert strict.number == 5 and strict.small == pytest.approx(0.2)
    lenient = rank_symbols(alone, (11, 5), rng=seeded(), singletons=0.1)
    assert lenient.number == 11 and lenient.small == pytest.approx(1 / 11)


def test_outputs_are_clustered_on_both_roads(road):
    logit = torch.cat([torch.full((10,), value) + 0.01 * torch.arange(10) for value in (-5.0, 0.0, 5.0)])
    assert same_partition(output_symbols(logit[:, None], 3, rng=seeded()), np.arange(30) // 10)


# Precision, and the machine


newer = pytest.mark.skipif(
    not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="this torch has the older switch alone"
)


@pytest.fixture
def matmul():
    switch = torch.backends.cuda.matmul
    older, newer = switch.allow_tf32, switch.fp32_precision
    yield switch
    switch.allow_tf32 = older  # sets both
    switch.fp32_precision = newer


@newer
def test_there_is_no_tf32_inside_and_outside_as_before(matmul, monkeypatch):
    seen = []

    def watched(*given):
        seen.append(matmul.fp32_precision)
        return seeds(*given)

    monkeypatch.setattr(quantisation_together, "seeds", watched)
    matmul.allow_tf32 = True
    tightest(states(), 3, rng=seeded(), restarts=2, iterations=5)
    assert seen == ["ieee"] and matmul.allow_tf32
    with pytest.raises(ZeroDivisionError), full_precision():
        raise ZeroDivisionError
    assert matmul.allow_tf32


@newer
def test_the_switch_may_have_been_set_by_its_newer_name(matmul):
    matmul.fp32_precision = "tf32"
    with full_precision():
        assert matmul.fp32_precision == "ieee"
    assert matmul.fp32_precision == "tf32"


def test_an_older_torch_has_the_older_switch_alone(monkeypatch):
    class Older:
        allow_tf32 = True

    monkeypatch.setattr(torch.backends.cuda, "matmul", Older)
    with full_precision():
        assert not Older.allow_tf32
    assert Older.allow_tf32 and not hasattr(Older, "fp32_precision")


def test_a_cpu_goes_in_turn(monkeypatch):
    monkeypatch.setattr(quantisation, "tightest", None)
    vectors = torch.stack([blobs(60, 10, seed=seed)[0] for seed in (0, 1)])
    assert rank_symbols(vectors, (10,), rng=seeded()).small == 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_goes_in_lockstep_and_finds_what_a_cpu_does(monkeypatch):
    vectors = torch.stack([blobs(300, 20, width=64, seed=seed)[0] for seed in range(3)])
    here = k_means(vectors[0], 20, rng=seeded())
    monkeypatch.setattr(quantisation, "_lloyd", None)
    there = k_means(vectors[0].cuda(), 20, rng=seeded())
    assert there.symbols.is_cuda and same_partition(there.symbols.cpu(), here.symbols)
    assert there.inertia == pytest.approx(here.inertia, rel=1e-3)
    found = rank_symbols(vectors.cuda(), (20, 5), rng=seeded())
    assert found.number == 20 and found.small == 0
    assert all(same_partition(symbols.cpu(), np.arange(300) % 20) for symbols in found.symbols)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_steps_as_a_cpu_does_and_gives_the_same_bits_again():
    vectors = states(ranks=4, texts=500, width=32)
    here = tightest(vectors, 25, rng=seeded(), restarts=5, iterations=300)
    there, again = (tightest(vectors.cuda(), 25, rng=seeded(), restarts=5, iterations=300) for _ in range(2))
    assert torch.equal(there.symbols.cpu(), here.symbols)
    torch.testing.assert_close(there.inertia.cpu(), here.inertia)
    assert all(torch.equal(one, other) for one, other in zip(there, again, strict=True))
