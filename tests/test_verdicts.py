"""One vocabulary of verdicts, and one way to judge: every case."""

import json
from itertools import product

import pytest

from attentest.claims.criterion import VERDICTS
from attentest.claims.verdict import Verdict, decided, over_counts, over_tests

YES, NO, OPEN = Verdict.SUPPORTED, Verdict.NOT_SUPPORTED, Verdict.UNDECIDED


def test_a_verdict_is_the_word_that_is_stored():
    for each in Verdict:
        assert each == each.value == str(each) == json.loads(json.dumps({"verdict": each}))["verdict"]
        assert repr({"verdict": each}) == repr({"verdict": each.value})
    assert {*VERDICTS} == {*Verdict} - {Verdict.REFUTED, Verdict.MIXED}


@pytest.mark.parametrize(
    ("speaks_for", "speaks_against", "said"),
    [(True, False, YES), (False, True, NO), (False, False, OPEN), (True, True, OPEN)],
)
def test_one_side_decides_and_a_contradiction_does_not(speaks_for, speaks_against, said):
    assert decided(speaks_for, speaks_against) == said
    refuted = Verdict.REFUTED if said == NO else said
    assert decided(speaks_for, speaks_against, against=Verdict.REFUTED) == refuted


@pytest.mark.parametrize(
    ("supported", "refuted", "points", "said"),
    [
        (0, 0, 0, OPEN),
        (0, 0, 3, OPEN),
        (1, 0, 3, OPEN),
        (1, 0, 2, YES),
        (2, 0, 3, YES),
        (0, 2, 3, Verdict.REFUTED),
        (0, 1, 3, OPEN),
        (1, 1, 9, Verdict.MIXED),
    ],
)
def test_at_least_half_of_the_grid_points_and_all_decided_ones(supported, refuted, points, said):
    assert over_counts(supported, refuted, points) == said


def test_a_criterion_needs_all_of_its_tests():
    for verdicts in product(VERDICTS, repeat=2):
        said = over_tests(verdicts)
        assert (said == YES) == (set(verdicts) == {YES})
        assert (said == NO) == (NO in verdicts)
        assert said == over_tests(verdicts[::-1])
    assert over_tests([Verdict.NOT_MEASURED, Verdict.NOT_APPLICABLE]) == Verdict.NOT_MEASURED
    assert over_tests([YES, Verdict.NOT_JUDGED]) == Verdict.NOT_JUDGED
    assert over_tests([YES, OPEN]) == over_tests([YES, Verdict.NOT_MEASURED]) == OPEN
