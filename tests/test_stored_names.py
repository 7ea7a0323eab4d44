"""What stored names hold becomes data and is spelled again as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attentest.experiments.catalogue import CONCLUSIONS
from attentest.experiments.shared.numbered import number_in, numbered
from attentest.statistics.named import Named
from attentest.store.cell import Cell, seed_of, seed_role

NAMES = st.text("abcdefghij-_", min_size=1)
SETTINGS = st.text("0123456789.", max_size=8)


@given(NAMES, SETTINGS)
def test_a_setting_is_read_as_it_was_written(name, setting):
    assert Named.of(str(Named(name, setting))) == Named(name, setting)


@pytest.mark.parametrize("stored", ["emax-jsd-exact@0.01", "csr-random@10", "tau-gradient", "a@b@c"])
def test_a_stored_name_is_spelled_as_it_was(stored):
    assert str(Named.of(stored)) == stored


def test_every_card_is_of_a_name_without_a_setting():
    names = [name for conclusion in CONCLUSIONS.values() for name in conclusion.cards]
    assert len(names) > 100 and not [name for name in names if Named.of(name).setting]


@given(st.integers(0, 10**9 - 1))
def test_a_seed_is_read_as_it_was_written(seed):
    assert seed_of(seed_role(seed)) == seed


@pytest.mark.parametrize(
    "role", ["seed", "seed x", "seed 1.5", "seed -1", "sibling.seed 1", "seed 1 ", "model"]
)
def test_other_inputs_are_of_no_seed(role):
    assert seed_of(role) is None


def test_a_finding_knows_its_observations_by_seed_in_their_order():
    inputs = {"seed 2": "c", "model": "m", "seed 10": "a"}
    cell = Cell(stage="finding", version=1, config={}, inputs=inputs)
    assert list(cell.observations.items()) == [(2, "c"), (10, "a")]


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5))
def test_models_that_are_named_by_a_number_are_read_in_the_order_of_their_numbers(numbers):
    names = [f"lambda {number:g}" for number in numbers]
    found = numbered([*names, "lambda ten", "seed 3"], "lambda ")
    assert {*found} == {*names} and [*found.values()] == sorted(found.values())
    assert all(f"lambda {number_in(name, 'lambda '):g}" == name for name in names)
