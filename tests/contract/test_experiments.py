"""One contract for every experiment of the catalogue, and proof that it can fail.

Rows were made by real `observe` and stored (`tests/pinned_store.py`); from them findings are concluded,
claims judged, figures drawn and the section of a page built. A new experiment joins by a few lines in
`tests/data/pinned/pinned.toml` and `python -m tests.pinned_store`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("altair")
pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

import altair
import vl_convert

from attentest.bench.conclusion import generator
from attentest.claims.claims import Claim, verdict
from attentest.compare.points import GridPoint
from attentest.compare.stored import Stored, StoredFinding
from attentest.experiments.cards import CARDS, card
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.experiments.observers import EXPERIMENTS
from attentest.gallery.pages import Section
from attentest.gallery.pictures import FIGURES
from attentest.gallery.rows import PointRows
from attentest.gallery.sections import point_page
from attentest.refusal import Refusal
from attentest.statistics.record import COLUMNS, to_frame
from attentest.store.store import Store
from tests import pinned_store

every = pytest.mark.parametrize("name", EXPERIMENTS)
WHO = ["seed", "subject", "id"]
OPTIONAL = {
    "importance": {"gradient", "loo"},  # of texts that are kept whole
    # Without random words of one number no message of that number, without the joint explainer nothing on it.
    "communication": {"agrees_random@1", "agrees_random@3", "words_joint"},
}
NO_MEASUREMENT = ("heat-map",)  # a picture of one text has no error


@dataclass(frozen=True)
class Case:
    """An experiment with stored rows, the findings stored beside them, and what concludes them."""

    name: str
    stored: StoredFinding
    rows: pd.DataFrame
    conclude: Callable
    drawn: Section | None = None  # the section of its page, where it was built before

    def findings(self, rows=None):
        """Findings with the draws that those in the store were made with."""
        rows = self.rows if rows is None else rows
        mode, rng = self.stored.cell.config["mode"], generator(self.stored.cell.key)
        return to_frame(self.conclude(rows.copy(), mode=mode, rng=rng))

    def section(self):
        """The section of a page that has nothing but this experiment."""
        if self.drawn is not None:
            return self.drawn
        point = GridPoint([self.stored], f"{self.name}.html")
        rows = PointRows(point, {self.stored.cell.key: self.rows})
        page, _ = point_page(rows, [], {}, private=False)
        (section,) = page.sections
        return section


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return Stored(Store(pinned_store.unpack(tmp_path_factory.mktemp("pinned"))))


@pytest.fixture
def case_of(stored):
    def case(name):
        found = [each for each in stored.every if each.cell.config["experiment"] == name]
        assert found, f"no rows of {name}: add it to tests/data/pinned/pinned.toml"
        # Of most rows, which are those of the model without context: every experiment was run on it.
        best = max(
            found, key=lambda each: (each.cell.config["mode"] == "corrected", len(each.rows()), each.cell.key)
        )
        return Case(name, best, best.rows(), CONCLUSIONS[name].conclude)

    return case


@pytest.fixture
def undrawn(monkeypatch):
    """Specifications are made and checked, but not drawn, which would take most of the time."""
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", lambda *args, **kwargs: "<svg/>")


# --- the checks


def check_rows_are_one_a_text(case):
    """Each row says which seed, model and text it is about, and no two are about the same."""
    assert set(WHO) <= set(case.rows.columns)
    assert not case.rows.duplicated(WHO).any()
    assert case.rows["seed"].nunique() == 2


def check_rows_suffice(case):
    """Every column that the conclusion asks for is observed."""
    assert len(case.findings())


def check_findings_are_the_stored_ones(case):
    pinned_store.same_findings(case.findings(), case.stored.table)


def check_is_deterministic(case):
    pd.testing.assert_frame_equal(case.findings(), case.findings(), check_exact=True)


def check_is_blind_to_the_order_of_rows(case):
    shuffled = case.rows.sample(frac=1, random_state=1)
    pinned_store.same_findings(case.findings(shuffled), case.stored.table)


def check_findings_are_whole(case):
    """Columns and types as every table of findings has them; one finding for each measure and group."""
    found = case.findings()
    assert {name: str(found[name].dtype) for name in found} == {
        name: str(to_frame([])[name].dtype) for name in COLUMNS
    }
    assert set(found["experiment"]) == {case.name}
    assert not found.duplicated(["measure", "group"]).any()
    assert found["n"].gt(0).any()


def check_every_measure_has_a_card(case):
    for found in case.findings().to_dict("records"):
        low, high = card(found["experiment"], found["measure"]).range
        if math.isfinite(found["estimate"]):
            assert low - 1e-9 <= found["estimate"] <= high + 1e-9, found["measure"]


def check_a_claim_on_it_is_judged(case):
    """A rule far on the right side of an estimate is supported, and its opposite refuted."""
    table = case.findings()
    sure = table[np.isfinite(table["estimate"]) & (table["error"] > 0) & (table["seeds"] > 1)]
    about = (sure if len(sure) else table).iloc[0]
    assert len(sure) or case.name in NO_MEASUREMENT, "no finding has an error"
    far = float(about["estimate"] + 1e6 * max(about["error"], 1e-3) if len(sure) else 1.0)
    rules = {"supported_if": f"high < {far:.9g}", "refuted_if": f"low > {far:.9g}"}
    statistic = "/".join(about[["experiment", "measure", "group"]])
    said = [
        verdict(Claim(says="far", statistic=statistic, **each), table) for each in (rules, swapped(rules))
    ]
    if len(sure):
        assert [one.verdict for one in said] == ["supported", "refuted"], said[0].reason
    else:
        assert {one.verdict for one in said} == {"undecided"}
        assert "findings are about" not in said[0].reason


def swapped(rules):
    supported, refuted = rules.values()
    return {"supported_if": refuted, "refuted_if": supported}


def check_every_figure_is_drawn_or_says_why_not(case):
    figures = FIGURES.get(case.name, ())
    pictures = case.section().pictures
    assert len(pictures) == len(figures)
    for picture in pictures:
        if picture.spec is None:
            assert len(picture.missing) > 20
        else:
            assert picture.svg and drawn_rows(picture.spec), picture.title


def drawn_rows(specification):
    """What a figure draws; a figure of nothing has one row that says why."""
    return sum(len(table) for table in specification.get("datasets", {}).values())


def check_the_section_shows_every_finding(case):
    section = case.section()
    assert section.title and section.asks and not section.missing
    lines = [*section.lines.first, *section.lines.others]
    shown = sorted((line.finding["measure"], line.finding["group"]) for line in lines)
    assert shown == sorted(case.findings()[["measure", "group"]].itertuples(index=False, name=None))
    assert all(line.card is not None for line in lines)


CHECKS = (
    check_is_blind_to_the_order_of_rows,  # first: see Once
    check_rows_are_one_a_text,
    check_rows_suffice,
    check_findings_are_whole,
    check_every_measure_has_a_card,
    check_a_claim_on_it_is_judged,
    check_every_figure_is_drawn_or_says_why_not,
    check_the_section_shows_every_finding,
)


class Once:
    """A conclusion that computes once for the same rows, in whatever order, since many checks ask for it.

    The first check of all compares findings from shuffled rows with the stored ones, so order is settled.
    """

    def __init__(self, conclude):
        self.conclude, self.known = conclude, {}

    def __call__(self, rows, **about):
        key = frozenset(rows.index)
        if key not in self.known:
            self.known[key] = self.conclude(rows, **about)
        return self.known[key]


@every
def test_every_experiment_keeps_the_contract(name, case_of, undrawn):
    case = case_of(name)
    case = replace(case, conclude=Once(case.conclude), drawn=case.section())
    for check in CHECKS:
        check(case)


@pytest.mark.slow
@every
def test_every_figure_becomes_a_drawing(name, case_of):
    pictures = [picture for picture in case_of(name).section().pictures if picture.spec is not None]
    assert all(picture.svg.startswith("<svg") and "NaN" not in picture.svg for picture in pictures)


@pytest.mark.slow
@every
def test_a_column_that_is_not_there_is_refused_by_name_or_takes_its_own_findings_along(name, case_of):
    """Nothing is concluded otherwise for want of a column; only what `OPTIONAL` columns tell is left out."""
    case = case_of(name)
    refused, fewer = 0, set()
    stored = case.stored.table.set_index(["measure", "group"])["estimate"]
    for column in case.rows.columns:
        try:
            found = case.findings(case.rows.drop(columns=column))
        except Refusal as refusal:
            assert column in str(refusal)
            refused += 1
        else:
            left = found.set_index(["measure", "group"])["estimate"]
            pd.testing.assert_series_equal(left, stored[left.index], check_exact=True)
            fewer |= {column} if len(left) < len(stored) else set()
    assert refused > len(WHO)
    assert fewer == OPTIONAL.get(name, set())


# --- proof that each check can fail


def drops_a_group(conclude):
    return lambda rows, **about: conclude(rows, **about)[1:]


def drops_a_seed(conclude):
    return lambda rows, **about: conclude(rows[rows["seed"] == 0], **about)


def flips_a_sign(conclude):
    def flipped(rows, **about):
        first, *others = conclude(rows, **about)
        return [replace(first, estimate=-first.estimate - 0.1), *others]

    return flipped


def leans_on_the_first_row(conclude):
    def leaning(rows, **about):
        first, *others = conclude(rows, **about)
        return [replace(first, estimate=float(rows["length"].iloc[0])), *others]

    return leaning


def draws_anew(conclude):
    def drawn(rows, **about):
        first, *others = conclude(rows, **about)
        return [replace(first, estimate=np.random.default_rng().random()), *others]

    return drawn


def says_it_twice(conclude):
    def twice(rows, **about):
        found = conclude(rows, **about)
        return [*found, found[0]]

    return twice


def names_it_anew(conclude):
    def named(rows, **about):
        first, *others = conclude(rows, **about)
        return [replace(first, measure="a-measure-without-a-card"), *others]

    return named


def forgets_its_error(conclude):
    def forgetful(rows, **about):
        return [replace(each, error=math.nan, freedom=math.nan) for each in conclude(rows, **about)]

    return forgetful


@pytest.mark.parametrize(
    ("check", "spoil"),
    [
        (check_findings_are_the_stored_ones, drops_a_group),
        (check_findings_are_the_stored_ones, drops_a_seed),
        (check_findings_are_the_stored_ones, flips_a_sign),
        (check_is_blind_to_the_order_of_rows, leans_on_the_first_row),
        (check_is_deterministic, draws_anew),
        (check_findings_are_whole, says_it_twice),
        (check_every_measure_has_a_card, names_it_anew),
        (check_every_measure_has_a_card, flips_a_sign),
        (check_a_claim_on_it_is_judged, forgets_its_error),
        (check_the_section_shows_every_finding, drops_a_group),
    ],
)
def test_a_conclusion_that_is_wrong_fails(check, spoil, case_of, undrawn):
    case = case_of("permutation")
    check(case)
    with pytest.raises((AssertionError, Refusal)):
        check(replace(case, conclude=spoil(case.conclude)))


@pytest.mark.parametrize("column", ["seed", "predicted", "median_change"])
def test_rows_without_a_column_fail(column, case_of):
    case = case_of("permutation")
    check_rows_suffice(case)
    with pytest.raises(Refusal, match=column):
        check_rows_suffice(replace(case, rows=case.rows.drop(columns=column)))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda rows: pd.concat([rows, rows.iloc[:1]]),
        lambda rows: rows[rows["seed"] == 0],
        lambda rows: rows.drop(columns="subject"),
    ],
    ids=["twice", "one seed", "no subject"],
)
def test_rows_that_are_not_one_a_text_fail(spoil, case_of):
    case = case_of("permutation")
    check_rows_are_one_a_text(case)
    with pytest.raises(AssertionError):
        check_rows_are_one_a_text(replace(case, rows=spoil(case.rows)))


def test_a_measure_whose_card_is_gone_fails(case_of, monkeypatch):
    case = case_of("permutation")
    monkeypatch.delitem(CARDS, "permutation/share-unmoved")
    with pytest.raises(Refusal, match="share-unmoved"):
        check_every_measure_has_a_card(case)


def with_figure(monkeypatch, draw):
    """The first figure of the experiment drawn otherwise."""
    first, *others = FIGURES["permutation"]
    monkeypatch.setitem(FIGURES, "permutation", (replace(first, draw=draw), *others))


def test_a_figure_that_breaks_fails(case_of, undrawn, monkeypatch):
    case = case_of("permutation")
    with_figure(monkeypatch, lambda rows, view, title: rows["a column that nobody observed"])
    with pytest.raises(KeyError):
        check_every_figure_is_drawn_or_says_why_not(case)


def test_a_figure_of_nothing_fails(case_of, undrawn, monkeypatch):
    case = case_of("permutation")
    empty = altair.Chart(pd.DataFrame({"x": []})).mark_point().encode(x="x:Q")
    with_figure(monkeypatch, lambda rows, view, title: altair.layer(empty))
    with pytest.raises(AssertionError):
        check_every_figure_is_drawn_or_says_why_not(case)


def test_a_figure_that_is_missing_without_a_reason_fails(case_of, undrawn, monkeypatch):
    case = case_of("permutation")

    def refuses(rows, view, title):
        raise Refusal("", got="", needs="", way_out="")

    with_figure(monkeypatch, refuses)
    with pytest.raises(AssertionError):
        check_every_figure_is_drawn_or_says_why_not(case)
