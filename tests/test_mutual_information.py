"""The estimators of information on data whose information is known; k-means beside scikit-learn."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.feature_selection import mutual_info_classif

from attentest.evidence.information.neighbours import neighbours
from attentest.evidence.information.quantisation import _seeds, k_means, nearest, rank_symbols, small_share
from attentest.evidence.information.ranked import output_symbols
from attentest.experiments.information.conclude import nearest_neighbour
from attentest.experiments.shared.by_rank import depth
from attentest.refusal import Refusal
from attentest.statistics.comparison import mutual_information, weighted_kendall
from attentest.statistics.ranking_null import dealt, p_value, scipy_tau, weighted_tau
from attentest.statistics.tables import entropy, floors, miller_madow, plug_in, standard_error, tables
from tests.toys import seeded


def blobs(n, places, width=8, spread=0.05, seed=0):
    """Vectors about a few places that are far apart, and the place of each."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(places, width))
    own = np.arange(n) % places
    return torch.tensor(centres[own] + spread * rng.normal(size=(n, width)), dtype=torch.float32), own


def same_partition(one, other):
    pairs = set(zip(np.asarray(one).tolist(), np.asarray(other).tolist(), strict=True))
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


# Tables


@given(st.integers(0, 2**31), st.integers(1, 60), st.integers(1, 7), st.integers(1, 4))
def test_tables_give_the_plug_in_estimate_of_every_rank(seed, n, of_x, of_y):
    rng = np.random.default_rng(seed)
    symbols, output = rng.integers(of_x, size=(n, 3)), rng.integers(of_y, size=n)
    expected = [mutual_information(symbols[:, rank], output) for rank in range(3)]
    assert plug_in(tables(symbols, output)) == pytest.approx(expected, abs=1e-12)


def entropy_mm(labels):
    """Miller and Madow's entropy, as they write it."""
    counts = np.array(list(map(list(labels).count, set(labels))))
    return stats.entropy(counts) + (len(counts) - 1) / (2 * len(labels))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=40))
def test_miller_madow_is_three_corrected_entropies(pairs):
    x, y = (list(column) for column in zip(*pairs, strict=True))
    expected = entropy_mm(x) + entropy_mm(y) - entropy_mm(pairs)
    assert miller_madow(tables(np.array(x)[:, None], np.array(y)))[0] == pytest.approx(expected, abs=1e-12)


def test_a_copy_has_the_entropy_and_independence_the_known_bias():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=4000)
    assert plug_in(tables(y[:, None], y))[0] == pytest.approx(entropy(y))
    x = rng.integers(10, size=(4000, 200))
    counts = tables(x, y)
    closed = 9 * 3 / 8000
    assert plug_in(counts).mean() == pytest.approx(closed, rel=0.1)
    assert abs(miller_madow(counts).mean()) < 0.1 * closed
    noise, corrected = floors(x[:, :20], y, 20, rng)
    assert noise.mean() == pytest.approx(closed, rel=0.1) and abs(corrected.mean()) < 0.1 * closed


def test_the_floor_is_right_where_the_closed_form_is_not():
    """Fewer texts than cells: the closed form says more than the output's entropy."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(50, size=(60, 40)), rng.integers(5, size=60)
    closed = 49 * 4 / 120
    found = plug_in(tables(x, y)).mean()
    assert closed > math.log(5)
    assert floors(x, y, 40, rng)[0].mean() == pytest.approx(found, rel=0.05)


def test_the_standard_error_is_the_spread_of_the_estimate():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=(500, 400))
    x = np.where(rng.uniform(size=y.shape) < 0.5, y, rng.integers(3, size=y.shape))
    counts = np.stack([tables(a[:, None], b)[0] for a, b in zip(x.T, y.T, strict=True)])
    assert standard_error(counts).mean() == pytest.approx(miller_madow(counts).std(), rel=0.12)


# Known information: an output with noise, and classes that are Gaussians


def noisy(n, faithful, classes, rng):
    y = rng.integers(classes, size=n)
    x = np.where(rng.uniform(size=n) < faithful, y, rng.integers(classes, size=n))
    right = faithful + (1 - faithful) / classes
    wrong = (1 - faithful) / classes
    known = math.log(classes) + right * math.log(right) + (classes - 1) * wrong * math.log(wrong)
    return x, y, known


def test_discrete_information_is_found_by_all_three_estimates():
    rng = np.random.default_rng(0)
    x, y, known = noisy(6000, 0.6, 4, rng)
    counts = tables(x[:, None], y)
    assert plug_in(counts)[0] == pytest.approx(known, abs=0.02)
    assert miller_madow(counts)[0] == pytest.approx(known, abs=0.02)
    vectors = torch.nn.functional.one_hot(torch.tensor(x)).double()
    near = neighbours(vectors[:2000], torch.tensor(y[:2000]))
    found = nearest_neighbour(near.alike.numpy()[:, None], near.within.numpy()[:, None], y[:2000])[0]
    assert found == pytest.approx(known, abs=0.03)


def test_the_correction_is_worth_having_where_texts_are_few():
    rng = np.random.default_rng(0)
    off = []
    for _ in range(200):
        x, y, known = noisy(150, 0.6, 6, rng)
        counts = tables(x[:, None], y)
        off.append((plug_in(counts)[0] - known, miller_madow(counts)[0] - known))
    plain, corrected = np.mean(off, axis=0)
    assert plain > 0.05 and abs(corrected) < plain / 3


def gaussian_information(apart):
    """Two equally likely classes at 0 and `apart`, variance one: H(X) - H(X | Y), on a fine grid."""
    grid = np.linspace(-12, apart + 12, 200_001)
    mixed = (stats.norm.pdf(grid) + stats.norm.pdf(grid - apart)) / 2
    return float(-np.trapezoid(mixed * np.log(mixed), grid) - 0.5 * math.log(2 * math.pi * math.e))


@pytest.mark.parametrize("apart", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("width", [1, 12])
def test_gaussian_classes_are_told_apart_as_much_as_they_can_be(apart, width):
    """Directions that say nothing change nothing about the information."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=2500)
    x = rng.normal(size=(2500, width))
    x[:, 0] += apart * y
    x[:, 1:] *= 0.1  # else neighbours in twelve dimensions are far away, and the estimate is low
    known = gaussian_information(apart)
    near = neighbours(torch.tensor(x), torch.tensor(y))
    found = nearest_neighbour(near.alike.numpy()[:, None], near.within.numpy()[:, None], y)[0]
    assert found == pytest.approx(known, abs=0.05)
    codebook = k_means(torch.tensor(x, dtype=torch.float32), 30, rng=seeded(), restarts=3)
    counts = tables(codebook.symbols.numpy()[:, None], y)
    # A cluster knows no more than its members; the first direction carries nearly all of the spread.
    assert miller_madow(counts)[0] == pytest.approx(known, abs=0.05)


# Neighbours


def neighbours_by_hand(vectors, symbols, number):
    found = []
    for text, (own, symbol) in enumerate(zip(vectors, symbols, strict=True)):
        apart = ((vectors - own) ** 2).sum(1)
        others = (np.arange(len(vectors)) != text) & (np.bincount(symbols)[symbols] > 1)
        same = others & (symbols == symbol)
        if not same.any():
            found.append((0, 0))
            continue
        reach = np.sort(apart[same])[min(number, same.sum()) - 1] + 1e-9
        found.append(((apart[same] <= reach).sum(), (apart[others] <= reach).sum()))
    return np.array(found)


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.integers(2, 40), st.integers(1, 5), st.booleans())
def test_neighbours_are_those_of_the_loop(seed, n, number, copies):
    rng = np.random.default_rng(seed)
    vectors = rng.integers(3, size=(n, 2)) * 1.0 if copies else rng.normal(size=(n, 3))
    symbols = rng.integers(4, size=n)
    near = neighbours(torch.tensor(vectors), torch.tensor(symbols), number)
    found = np.stack([near.alike.numpy(), near.within.numpy()], axis=1)
    assert (found == neighbours_by_hand(vectors, symbols, number)).all()


def test_single_precision_finds_the_same_neighbours_of_hidden_states():
    vectors, _ = blobs(300, 12, width=64, spread=0.5)
    symbols = torch.arange(300) % 5
    vectors[100:150] = vectors[0]  # a word that occurs often
    single, double = neighbours(vectors, symbols), neighbours(vectors.double(), symbols)
    assert (single.alike == double.alike).all() and (single.within == double.within).all()


def test_neighbours_in_pieces_are_neighbours_at_once(monkeypatch):
    vectors, own = blobs(90, 9)
    whole = neighbours(vectors, torch.tensor(own % 3))
    monkeypatch.setattr("attentest.evidence.information.neighbours.CELLS", 700)
    pieces = neighbours(vectors, torch.tensor(own % 3))
    assert all((a == b).all() for a, b in zip(whole, pieces, strict=True))


def test_the_estimate_is_scikit_learns_in_one_dimension():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [300, 200, 99, 1])  # an output of one text, which both leave out
    x = rng.normal(size=600) + y
    near = neighbours(torch.tensor(x)[:, None], torch.tensor(y))
    ours = nearest_neighbour(near.alike.numpy()[:, None], near.within.numpy()[:, None], y)[0]
    assert ours == pytest.approx(mutual_info_classif(x[:, None], y, random_state=0)[0], abs=1e-3)


def test_outputs_that_nobody_shares_have_no_neighbours():
    y = np.arange(5)
    near = neighbours(torch.randn(5, 2, generator=seeded()), torch.tensor(y))
    assert np.isnan(nearest_neighbour(near.alike.numpy()[:, None], near.within.numpy()[:, None], y)).all()
    with pytest.raises(Refusal, match="0-th neighbour"):
        neighbours(torch.zeros(5, 2), torch.zeros(5, dtype=torch.long), 0)


# k-means


def test_places_that_are_far_apart_are_the_clusters():
    vectors, own = blobs(400, 20)
    codebook = k_means(vectors, 20, rng=seeded())
    assert same_partition(codebook.symbols, own)
    assert same_partition(
        codebook.symbols, KMeans(20, n_init=10, random_state=0).fit(vectors.numpy()).labels_
    )
    assert (nearest(vectors, codebook.centres) == codebook.symbols).all()


@pytest.mark.parametrize("number", [5, 40, 100])
def test_clusters_are_as_tight_as_scikit_learns(number):
    rng = np.random.default_rng(0)
    vectors = np.tanh(rng.normal(size=(700, 6)) @ rng.normal(size=(6, 32)) + 0.3 * rng.normal(size=(700, 32)))
    ours = k_means(torch.tensor(vectors, dtype=torch.float32), number, rng=seeded())
    theirs = KMeans(number, n_init=10, random_state=0).fit(vectors)
    assert ours.inertia == pytest.approx(theirs.inertia_, rel=0.03)
    y = (vectors[:, 0] > 0) * 2 + (vectors[:, 1] > 0)
    if number < 10:
        return  # two tight clusterings into few are two different ones
    by_ours, by_theirs = (mutual_information(one, y) for one in (ours.symbols.numpy(), theirs.labels_))
    assert by_ours == pytest.approx(by_theirs, rel=0.1)


def lloyd_by_hand(vectors, centres):
    """Every distance anew at every step."""
    symbols = None
    while True:
        apart = ((vectors[:, None] - centres) ** 2).sum(2)
        if symbols is not None and (apart.argmin(1) == symbols).all():
            return symbols
        symbols = apart.argmin(1)
        members = [vectors[symbols == one] for one in range(len(centres))]
        centres = np.stack(
            [own.mean(0) if len(own) else old for own, old in zip(members, centres, strict=True)]
        )


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.integers(2, 12))
def test_measuring_moved_centres_alone_is_lloyds_algorithm(seed, number):
    """One restart in double precision, and its seeds, which the same generator gives again."""
    vectors = torch.tensor(np.random.default_rng(seed).normal(size=(80, 3)))
    vectors -= vectors.mean(0)
    (places,) = _seeds(vectors, vectors.T.contiguous(), number, 1, seeded(seed))
    codebook = k_means(vectors, number, rng=seeded(seed), restarts=1)
    expected = lloyd_by_hand(vectors.numpy(), vectors[places].numpy())
    assert (codebook.symbols.numpy() == expected).all()
    left = ((vectors - codebook.centres[codebook.symbols]) ** 2).sum()
    assert codebook.inertia == pytest.approx(float(left), rel=1e-9)


def test_restarts_only_help_and_the_same_draws_give_the_same_symbols():
    vectors = torch.randn(300, 4, generator=seeded(1))
    once, again = (k_means(vectors, 20, rng=seeded(), restarts=8) for _ in range(2))
    assert (once.symbols == again.symbols).all()
    few = [k_means(vectors, 20, rng=seeded(seed), restarts=1).inertia for seed in range(8)]
    assert once.inertia <= np.median(few)


def test_seeds_are_drawn_by_squared_distance():
    """Three places on a line: the second seed lies on the far one with its share of the squares."""
    vectors = torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64)
    drawn = torch.stack(_seeds(vectors, vectors.T.contiguous(), 2, 30_000, seeded())).numpy()
    for first, (near, far) in enumerate([(1, 2), (0, 2), (0, 1)]):
        squares = (vectors[:, 0] - vectors[first, 0]) ** 2
        seconds = drawn[drawn[:, 0] == first, 1]
        assert (seconds == far).mean() == pytest.approx(
            float(squares[far] / (squares[near] + squares[far])), abs=0.02
        )


def test_copies_are_one_place_and_too_few_places_are_too_few_clusters():
    words = torch.randn(7, 16, generator=seeded())
    vectors = words[torch.arange(70) % 7] * (1 + 1e-7 * torch.randn(70, 1, generator=seeded()))
    codebook = k_means(vectors, 12, rng=seeded())
    assert same_partition(codebook.symbols, np.arange(70) % 7)
    assert small_share(codebook.symbols, 12) == pytest.approx(5 / 12)


def test_more_clusters_than_vectors_are_refused():
    with pytest.raises(Refusal, match="4 vectors, 5 clusters"):
        k_means(torch.zeros(4, 2), 5, rng=seeded())
    with pytest.raises(Refusal, match="9 texts that are long enough for 10 clusters"):
        rank_symbols(torch.zeros(2, 9, 3), (20, 10), rng=seeded())


# The number of clusters


def test_the_largest_number_without_small_clusters_is_chosen():
    tight = torch.stack([blobs(60, 10, seed=seed)[0] for seed in (0, 1)])
    assert rank_symbols(tight, (5, 10), rng=seeded()).number == 10
    alone = tight.clone()
    alone[1, 0] += 100  # one text that is like no other: at the second rank it is a cluster of its own
    strict = rank_symbols(alone, (10, 5), rng=seeded())
    assert strict.number == 5 and strict.small == pytest.approx(0.2)  # the smallest fails too, and says so
    lenient = rank_symbols(alone, (11, 5), rng=seeded(), singletons=0.1)
    assert lenient.number == 11 and lenient.small == pytest.approx(1 / 11)


def test_one_number_serves_all_ranks_and_too_large_ones_are_passed_over():
    vectors = torch.stack([blobs(40, 4, seed=seed)[0] for seed in range(3)])
    found = rank_symbols(vectors, (50, 4), rng=seeded())
    assert found.symbols.shape == (3, 40) and found.number == 4 and found.small == 0
    for symbols in found.symbols:
        assert same_partition(symbols, np.arange(40) % 4)


# Output symbols


def test_two_classes_are_clusters_of_the_logit_and_more_are_classes():
    logit = torch.tensor([-4.0, -3.9, -1.0, -1.1, 0.0, 0.1, 2.0, 2.1, 5.0, 5.1])
    expected = np.repeat(np.arange(5), 2)
    assert same_partition(output_symbols(logit[:, None], 5, rng=seeded()), expected)
    pair = torch.stack([torch.full((10,), 7.0), logit + 7], dim=1)
    assert same_partition(output_symbols(pair, 5, rng=seeded()), expected)
    three = torch.tensor([[0.0, 1.0, -math.inf], [2.0, 1.0, 0.0]])
    assert output_symbols(three, 5, rng=seeded()).tolist() == [1, 0]
    impossible = torch.tensor([[0.0, -math.inf], [0.0, 1.0]])
    assert output_symbols(impossible, 2, rng=seeded()).tolist() == [0, 1]


# The number of ranks


def padded(rows):
    width = max(map(len, rows))
    return np.array([[*row, *[math.nan] * (width - len(row))] for row in rows]), np.array(
        [len(row) for row in rows]
    )


def test_ranks_go_as_far_as_lengths_and_attention_do():
    assert depth(*padded([[0.5, 0.3, 0.2]] * 10)) == (3, 3)
    sharp = [[1.0, 1e-6, 0.0]] * 10
    assert depth(*padded(sharp)) == (3, 1) and depth(*padded(sharp)).k == 1
    assert depth(*padded(sharp), least=1e-7) == (3, 2)
    some = [[0.5, 0.5]] * 7 + [[1.0, 0.0]] * 3
    assert depth(*padded(some)).by_attention == 1 and depth(*padded(some), share=0.7).by_attention == 2
    uneven = [[1.0]] + [[0.5, 0.5]] * 8 + [[0.25] * 4]
    assert depth(*padded(uneven)) == (1, 4) and depth(*padded(uneven), percentile=50.0).k == 2
    assert depth(np.zeros((0, 3)), np.zeros(0, dtype=int)).k == 0


# Tau and its null


@pytest.mark.parametrize("information, tau", [([3, 2, 1, 0], 1), ([0, 1, 2, 3], -1), ([1, 1, 1, 1], 0)])
def test_tau_of_orders_that_are_clear(information, tau):
    assert weighted_tau(
        np.array(information, dtype=float), np.array([0.5, 0.3, 0.15, 0.05])
    ) == pytest.approx(tau)


def test_a_dominant_weight_leaves_the_pairs_of_its_rank():
    weights = np.array([1.0, 1e-9, 1e-9, 1e-9])
    assert weighted_tau(np.array([5.0, 1.0, 2.0, 3.0]), weights) == pytest.approx(1, abs=1e-6)
    assert weighted_tau(np.array([2.5, 1.0, 2.0, 3.0]), weights) == pytest.approx(1 / 3, abs=1e-6)


def test_the_null_depends_on_the_weights_alone():
    """Dealing tokens makes every order of the ranks alike: with halving weights luck reaches 0.85."""
    rng = np.random.default_rng(0)
    weights = 0.5 ** np.arange(10)
    orders = [weighted_kendall(rng.permutation(10), weights, weights) for _ in range(4000)]
    assert np.quantile(orders, 0.95) == pytest.approx(0.85, abs=0.02)
    output = rng.integers(4, size=200)
    joint = np.where(
        rng.uniform(size=(200, 10)) < np.linspace(0.9, 0, 10),
        output[:, None],
        rng.integers(4, size=(200, 10)),
    )
    null = np.array([weighted_tau(one, weights) for one in dealt(joint, output, 400, rng)])
    assert stats.ks_2samp(null, orders).pvalue > 0.01
    assert p_value(weighted_tau(plug_in(tables(joint, output)), weights), null) < 0.05


def test_dealing_keeps_each_texts_own_symbols():
    """All tokens of a text alike: dealing changes nothing at all."""
    output = np.arange(12) % 3
    joint = np.repeat(output[:, None], 4, axis=1)
    assert dealt(joint, output, 5, np.random.default_rng(0)) == pytest.approx(math.log(3))


def test_p_values_are_never_zero_and_know_ties():
    null = np.array([0.1, 0.2, 0.3, 0.4])
    assert p_value(0.5, null) == pytest.approx(1 / 5) and p_value(-1.0, null) == 1
    assert p_value(0.4, null) == pytest.approx(2 / 5) and math.isnan(p_value(math.nan, null))


def test_scipys_tau_weighs_by_rank():
    information, attention = np.array([3.0, 1.0, 2.0]), np.array([0.9, 0.09, 0.01])
    additive = {(i, j): 1 / (i + 1) + 1 / (j + 1) for i, j in itertools.combinations(range(3), 2)}
    sign = {(0, 1): 1, (0, 2): 1, (1, 2): -1}
    by_attention = sum(additive[pair] * sign[pair] for pair in sign) / sum(additive.values())
    by_information = (additive[0, 2] + additive[0, 1] - additive[1, 2]) / sum(additive.values())
    assert scipy_tau(information, attention) == pytest.approx((by_attention + by_information) / 2)
    assert math.isnan(scipy_tau(np.array([1.0]), np.array([1.0]))) and math.isnan(
        scipy_tau(np.ones(3), attention)
    )
