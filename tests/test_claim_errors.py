"""How often claims are decided wrongly: the size of every rule, Holm, the verdict over all grid points."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from attentest.claims import claims
from attentest.claims.claims import Claim, ClaimAtPoint, ClaimVerdict, corrected, over_points, overall
from attentest.claims.judging import Evidence, judged
from attentest.claims.measured import difference, estimate_of
from attentest.claims.rules import Estimate, above_p, inside_p, outside_p, parse, rule_p
from attentest.claims.verdict import Verdict
from attentest.statistics.multiplicity import holm

DRAWS = 1000
MOST = 0.05 + 3 * math.sqrt(0.05 * 0.95 / DRAWS)  # three standard errors of a simulated 5 %
POINT = {"attention": "additive", "projection": "softmax", "encoder": "average"}
ABOUT = {"experiment": "importance", "measure": "tau", "group": "overall"}


def seeds_of(rng, true, seeds, spread=0.1):
    """A finding as so many seeds give it, whose true value is known."""
    sample = rng.normal(true, spread, seeds)
    std = float(sample.std(ddof=1))
    numbers = {"estimate": float(sample.mean()), "seed_std": std, "seeds": seeds, "null": 0.2}
    return pd.Series({**ABOUT, **numbers, "error": std / math.sqrt(seeds), "freedom": seeds - 1.0})


def ps(rule, seeds, true, *, rivals=0, spread=0.1, rival_spread=0.3):
    """The p-values of a rule in many studies whose truth is `true`; of a difference, if there are rivals."""
    rng, conditions = np.random.default_rng(7), parse(rule)
    found = []
    for sample in rng.normal(true, spread, (DRAWS, seeds)):
        std = float(sample.std(ddof=1))
        own = Estimate(float(sample.mean()), std / math.sqrt(seeds), seeds - 1.0)
        known = {"estimate": own, "low": own, "high": own, "excess": replace(own, value=own.value - 0.2)}
        if rivals:
            row = pd.Series({**ABOUT, "estimate": own.value, "seed_std": std, "seeds": seeds})
            gap = difference(row, seeds_of(rng, 0.0, rivals, rival_spread))
            known = dict.fromkeys(("difference", "difference_low", "difference_high", "apart"), gap)
        found.append(rule_p(conditions, known))
    return np.array(found)


@pytest.mark.parametrize("seeds", [2, 5])
@pytest.mark.parametrize(
    "rule, border",
    [("low > 0.5", 0.5), ("high < 0.5", 0.5), ("estimate < 0.5", 0.5), ("excess > 0.3", 0.5)],
)
def test_at_the_border_a_rule_is_met_in_five_percent_of_studies(rule, border, seeds):
    found = ps(rule, seeds, border)
    assert 0.03 < (found < 0.05).mean() <= MOST
    # All of the distribution, not only its end: at the border every p-value is as likely as any other.
    assert stats.kstest(found, "uniform").pvalue > 0.001


def test_a_rule_of_two_conditions_is_met_in_five_percent_at_most():
    found = ps("estimate < 0.6 and low > 0.5", 5, 0.5, spread=0.02)
    assert 0.03 < (found < 0.05).mean() <= MOST, "the other condition is far away, and costs nothing"
    assert (ps("estimate < 0.6 and low > 0.5", 5, 0.5, spread=0.2) < 0.05).mean() < 0.03


@pytest.mark.parametrize(
    "rule",
    [
        "difference > 0.1",
        pytest.param("difference_high < 0.1", marks=pytest.mark.slow),
        pytest.param("difference > 0.1 and difference_low > 0", marks=pytest.mark.slow),
    ],
)
def test_a_difference_at_the_border_is_found_in_five_percent_of_studies(rule):
    assert 0.03 < (ps(rule, 5, 0.1, rivals=5) < 0.05).mean() <= MOST
    assert (ps(rule, 3, 0.1, rivals=10) < 0.05).mean() <= MOST


@pytest.mark.parametrize("true", [-0.4, pytest.param(0.4, marks=pytest.mark.slow)])
def test_models_that_are_as_far_apart_as_the_border_are_rarely_called_alike_or_apart(true):
    assert 0.03 < (ps("apart < 0.4", 8, true, rivals=8, rival_spread=0.1) < 0.05).mean() <= MOST
    assert 0.03 < (ps("apart > 0.4", 8, true, rivals=8, rival_spread=0.1) < 0.05).mean() <= MOST


def sizes(test, freedom, borders, draws=200_000):
    """The size of a test of |true value| at the border, for borders in units of the true error."""
    rng = np.random.default_rng(3)
    errors = np.sqrt(rng.chisquare(freedom, draws) / freedom)
    noise = rng.normal(size=draws)
    for border in borders:
        # A rejection needs |d| at most (at least) as large as its own error says: all draws at once.
        yield (test(border + noise, errors, border) < 0.05).mean()


@pytest.mark.parametrize("freedom", [1.0, 2.0, 4.0, 18.0])
def test_the_two_tails_of_apart_hold_the_level_whatever_the_border(freedom):
    def outside(values, errors, border):
        tails = [(np.abs(values) - border) / errors, (np.abs(values) + border) / errors]
        return stats.t.sf(tails, freedom).sum(axis=0)

    borders = (0, 0.1, 0.25, 0.5, 0.75, 1, 2, 5)
    found = list(sizes(outside, freedom, borders))
    assert min(found) > 0.037 and max(found) < 0.0515
    one = Estimate(0.7, 0.2, freedom)
    assert outside_p(one, 0.5) == pytest.approx(outside(0.7, 0.2, 0.5))
    assert outside_p(Estimate(-0.7, 0.2, freedom), 0.5) == outside_p(one, 0.5)

    # The smaller one-sided p-value alone would not: near 0 both sides reject.
    def one_tail(values, errors, border):
        return stats.t.sf((np.abs(values) - border) / errors, freedom)

    assert max(sizes(one_tail, freedom, borders)) > 0.09


@pytest.mark.parametrize("value", [-0.3, 0.0, 0.2, 0.9])
def test_apart_agrees_with_brute_force(value):
    """With a known error, p is how often a model at the border is at least as far apart (as near)."""
    drawn = np.random.default_rng(0).normal(0.4, 0.2, 400_000)
    one = Estimate(value, 0.2, math.inf)
    assert outside_p(one, 0.4) == pytest.approx((np.abs(drawn) >= abs(value)).mean(), abs=0.004)
    assert inside_p(one, 0.4) == pytest.approx((drawn <= abs(value)).mean(), abs=0.004)
    assert outside_p(one, -0.1) == 0.0, "every size is larger than a negative one"


def test_seeds_that_happen_to_say_the_same_are_not_certainty():
    """Each seed says yes or no, both as likely in truth: the size is held with few seeds, too."""
    rng = np.random.default_rng(2)
    for seeds in (2, 3, 5, 10):
        found = []
        for sample in rng.integers(0, 2, size=(400, seeds)):
            std = float(sample.std(ddof=1))
            row = {
                **ABOUT,
                "estimate": float(sample.mean()),
                "error": std / math.sqrt(seeds),
                "seed_std": std,
            }
            row |= {"freedom": seeds - 1.0, "seeds": seeds, "interval": "seeds", "null": 0.5}
            found.append(rule_p(parse("estimate > 0.5"), {"estimate": estimate_of(pd.Series(row))}))
        assert np.mean(np.array(found) < 0.05) < 0.09, seeds
        sure = pd.Series(row | {"estimate": 1.0, "error": 0.0, "seed_std": 0.0})
        assert rule_p(parse("estimate > 0.5"), {"estimate": estimate_of(sure)}) == 0.5**seeds
        apart = difference(sure, pd.Series({**sure, "estimate": 0.0}))
        assert rule_p(parse("difference > 0"), {"difference": apart}) == 1 / math.comb(2 * seeds, seeds)
        # Texts beside seeds: an answer that is the same for all of them is known.
        texts = estimate_of(pd.Series({**sure, "interval": "seeds, instances"}))
        assert rule_p(parse("estimate > 0.5"), {"estimate": texts}) == 0.0


# --- Holm


def test_holm_is_the_closed_test_of_all_subsets():
    """Brute force: a hypothesis falls if Bonferroni rejects every set of hypotheses that contains it."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        p = rng.uniform(size=5) ** 3
        sets = [[i for i in range(5) if number >> i & 1] for number in range(1, 32)]
        expected = [
            max(min(1.0, len(one) * p[one].min()) for one in sets if hypothesis in one)
            for hypothesis in range(5)
        ]
        assert holm(p) == pytest.approx(expected)


def test_holm_does_not_count_what_was_not_tested():
    assert holm(np.array([0.01, math.nan, 0.03])) == pytest.approx([0.02, math.nan, 0.03], nan_ok=True)
    assert len(holm(np.array([]))) == 0


RULES = {"supported_if": "low > 0.5", "refuted_if": "high < 0.5"}
CLAIM = Claim(says="Attention agrees.", statistic="importance/tau/overall", **RULES)


def grid(true, points, *, seed=0):
    """A study of so many corpora, in each of which the true value is `true`."""
    rng = np.random.default_rng(seed)
    rows = [seeds_of(rng, true, 5) for _ in range(points)]
    config = {**POINT, "experiment": "importance", "mode": "corrected", "model": {}, "parameters": {}}
    more = {"low": 0.0, "high": 1.0, "why": ""}
    return {
        str(number): Evidence(config | {"corpus": str(number)}, None, pd.DataFrame([{**row, **more}]))
        for number, row in enumerate(rows)
    }


def decided(evidence):
    return [said for _, said in judged([CLAIM], evidence) if said.verdict != "undecided"]


def test_a_hundred_grid_points_at_the_border_are_not_decided(monkeypatch):
    studies = [grid(0.5, 100, seed=seed) for seed in range(3)]
    assert sum(len(decided(one)) for one in studies) <= 1
    monkeypatch.setattr(claims, "holm", lambda p: p)  # a mutant without correction
    assert sum(len(decided(one)) for one in studies) >= 15


def test_a_rule_is_wrongly_met_anywhere_in_five_percent_of_studies():
    rng = np.random.default_rng(5)
    studies = [rng.uniform(size=100) for _ in range(5000)]
    wrong = [(holm(one) < 0.05).any() for one in studies]
    assert 0.04 < np.mean(wrong) < 0.06
    assert np.mean([(one < 0.05).any() for one in studies]) > 0.99, "uncorrected, in nearly every study"
    for one in studies[:20]:
        said = [found.verdict == "supported" for found in corrected([claims.Tested(CLAIM, p) for p in one])]
        assert said == (holm(one) < 0.05).tolist()


def test_the_two_directions_are_corrected_by_themselves_and_over_what_was_tested():
    tests = [
        claims.Tested(CLAIM, 0.02, 0.5),
        claims.Tested(CLAIM, 0.03),
        claims.Tested(CLAIM, reason="no findings"),
    ]
    first, second, third = corrected(tests)
    assert (first.p, first.p_corrected) == (0.02, 0.04) and first.verdict == "supported"
    assert (second.p, second.p_corrected) == (0.03, 0.04) and second.verdict == "supported"
    assert first.p_refutes_corrected == 0.5 and math.isnan(second.p_refutes_corrected)
    assert third == ClaimAtPoint(CLAIM, Verdict.UNDECIDED, "no findings")
    assert first.reason.endswith(
        "test that the true value is above 0.5: p = 0.040 after Holm over 2 grid points"
    )


def test_every_claim_is_corrected_by_itself():
    other = Claim(
        says="It does not.",
        statistic="importance/tau/overall",
        supported_if="high < 0.5",
        refuted_if="low > 0.5",
    )
    evidence = grid(0.62, 10)
    alone = list(judged([CLAIM], evidence))
    assert list(judged([CLAIM, other], evidence))[:10] == alone
    assert {said.verdict for _, said in alone} == {"supported", "undecided"}
    raw = [above_p(estimate_of(one.table.iloc[0]), 0.5) for one in evidence.values()]
    assert [said.p for _, said in alone] == pytest.approx(raw)
    assert [said.p_corrected for _, said in alone] == pytest.approx(holm(np.array(raw)))


# --- the claim's own verdict


@pytest.mark.parametrize(
    "supported, refuted, undecided, expected",
    [
        (1, 0, 0, "supported"), (0, 1, 0, "refuted"), (0, 0, 1, "undecided"), (0, 0, 0, "undecided"),
        (5, 0, 5, "supported"), (4, 0, 5, "undecided"), (0, 5, 5, "refuted"), (0, 4, 5, "undecided"),
        (9, 1, 0, "mixed"), (1, 1, 98, "mixed"), (5, 5, 0, "mixed"),
    ],
)  # fmt: skip
def test_the_verdict_over_all_grid_points(supported, refuted, undecided, expected):
    whole = ClaimVerdict(CLAIM, supported, refuted, undecided)
    assert (whole.verdict, whole.points) == (expected, supported + refuted + undecided)
    said = ["supported"] * supported + ["refuted"] * refuted + ["undecided"] * undecided
    assert over_points(CLAIM, [ClaimAtPoint(CLAIM, Verdict(one), "") for one in said]) == whole


def test_the_reason_counts_the_grid_points():
    assert ClaimVerdict(CLAIM, 7, 0, 2).reason == "of 9 grid points supported at 7, undecided at 2"
    assert ClaimVerdict(CLAIM, 0, 1, 0).reason == "of 1 grid point refuted at 1"


def test_claims_are_told_apart_over_their_grid_points():
    other = Claim(says=CLAIM.says, statistic="importance/tau-loo/overall", **RULES)
    said = [
        ClaimAtPoint(CLAIM, Verdict.SUPPORTED, ""),
        ClaimAtPoint(other, Verdict.REFUTED, ""),
        ClaimAtPoint(CLAIM, Verdict.UNDECIDED, ""),
    ]
    assert overall(said) == [ClaimVerdict(CLAIM, 1, 0, 1), ClaimVerdict(other, 0, 1, 0)]
    assert overall([]) == []
