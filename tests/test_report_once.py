"""A report of many models does nothing twice: calls are counted here, time is measured in `make bench`."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("altair")
pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

import altair as alt

from attentest.charts.scatter import texts_scatter
from attentest.charts.style import nothing, to_svg
from attentest.compare.stored import Stored, StoredFinding
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.experiments.figures import FIGURES
from attentest.experiments.information import conclude as information
from attentest.experiments.shared import orders
from attentest.gallery import pictures, site
from attentest.gallery.site import build
from attentest.statistics.estimates import estimates_alone
from attentest.store.store import Store
from tests.gallery import put, put_corpus
from tests.observed_information import ablation_rows, information_rows, sensitivity_rows

ROWS = {
    "information": information_rows,
    "information-ablation": ablation_rows,
    "information-sensitivity": sensitivity_rows,
}
STUDIES = ("jain-wallace-2019", "wen-2022")  # of those that are compared with published numbers


def counted(monkeypatch, owner, name, key=lambda *args, **kwargs: ""):
    """Count the calls of a function, by what `key` makes of their arguments."""
    calls, real = Counter(), getattr(owner, name)

    def counting(*args, **kwargs):
        calls[key(*args, **kwargs)] += 1
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, counting)
    return calls


@pytest.fixture
def store(tmp_path):
    """Two models on SST, of which the first of the paper's grid lacks the experiment that the other has."""
    store = Store(tmp_path / "store")
    corpus = put_corpus(store, "sst")
    put(store, "permutation", corpus)
    put(store, "importance", corpus, encoder="average")
    put(store, "information", corpus, information_rows())
    return store


@pytest.fixture
def undrawn(monkeypatch):
    """Drawing takes long, and one figure shows as much as all."""
    monkeypatch.setattr(pictures, "FIGURES", {"importance": FIGURES["importance"][:1]})
    monkeypatch.setattr(pictures, "svg_of", lambda specification: "<svg/>")
    monkeypatch.setattr(site, "to_svg", lambda chart: "<svg/>")


def test_a_paper_shows_the_figure_of_a_later_model_where_the_first_has_none(store, undrawn):
    page = build(store.url, {"sst": "here"}, version="1")["study-jain-wallace-2019.html"]
    [table] = [part for part in page.split("<details") if 'id="figure-importance-tau-gradient"' in part]
    [row] = [part for part in table.split("<tr>") if part.startswith('<th scope="row">sst<')]
    assert row.count("<td") == 6 and row.count("<img") == 1 and row.count("not run") == 5
    [row] = [part for part in table.split("<tr>") if part.startswith('<th scope="row">imdb<')]
    assert row.count("<td") == 1 and 'colspan="6"' in row


def test_the_store_is_listed_once_its_findings_are_read_once_and_claims_are_judged_once(
    store, undrawn, monkeypatch
):
    listed = counted(monkeypatch, Store, "descriptions")
    read = counted(monkeypatch, Store, "read", lambda self, key, name: (key, name))
    seen = counted(monkeypatch, StoredFinding, "rows", lambda self: self.cell.config["experiment"])
    judged = counted(monkeypatch, site, "judged", lambda study, points: study.study)
    build(store.url, {"sst": "here"}, version="1")
    assert listed.total() == 1
    tables = {key: count for (key, name), count in read.items() if name == "findings.parquet"}
    assert len(tables) == 3 and set(tables.values()) == {1}
    assert set(judged) >= {*STUDIES} and set(judged.values()) == {1}
    # Once for the model's page; over all models of a study once more, for its table and its figures alike.
    # Importance once more for the text of the first page.
    assert seen == {"permutation": 1, "importance": 2, "information": 2}


def test_a_figure_is_written_out_once_for_its_drawing_and_its_data(monkeypatch, drawn_afresh):
    chart = nothing("Nothing to see.", "A figure", "by nobody")
    written = counted(monkeypatch, alt.LayerChart, "to_dict")
    drawn = pictures.picture("figures/a.svg", "A figure", "It shows nothing.", chart)
    assert written.total() == 1 and drawn.svg == to_svg(chart) and drawn.spec == chart.to_dict()


def test_the_figure_that_every_explorer_has_is_made_once():
    assert texts_scatter() is texts_scatter()


def test_progress_counts_models_and_studies_and_ends_at_all_of_them(store, undrawn):
    told = []
    build(store.url, {"sst": "here"}, version="1", watch=lambda done, of: told.append((done, of)))
    done, of = zip(*told, strict=True)
    assert len(set(of)) == 1 and list(done) == sorted(done) and (done[0], done[-1]) == (0, of[0])
    assert set(done) == set(range(of[0] + 1)) and of[0] > 2  # two models, and the studies


# --- estimates of single seeds


@pytest.mark.parametrize("experiment", ROWS)
def test_for_estimates_alone_luck_is_drawn_for_the_model_itself_and_nobody_else(experiment, monkeypatch):
    owner = information if experiment == "information" else orders
    conclude, rows = CONCLUSIONS[experiment].conclude, ROWS[experiment]().query("seed == 0")
    dealt = counted(monkeypatch, owner, "dealt")
    whole = conclude(rows, mode="corrected", rng=np.random.default_rng(0))
    everybody = dealt.total()
    with estimates_alone():
        alone = conclude(rows, mode="corrected", rng=np.random.default_rng(0))
    assert everybody > 1 and dealt.total() == everybody + 1
    assert {one.group for one in alone} == {"overall"}
    asked = {one.measure: one.estimate for one in whole if one.group == "overall"}
    found = {one.measure: one.estimate for one in alone}
    # The twin is the whole conclusion. What is drawn itself depends on who draws first.
    drawn = set() if experiment == "information" else {"tau-p", "tau-null-95"}
    assert found.keys() == asked.keys() > drawn
    for measure in found.keys() - drawn:
        assert found[measure] == pytest.approx(asked[measure], rel=0, abs=0, nan_ok=True), measure


def test_a_finding_is_found_by_name_as_a_search_of_its_table_finds_it(store):
    for finding in Stored(store).every:
        table = finding.table
        for measure, group in {*zip(table["measure"], table["group"], strict=True), ("nothing", "overall")}:
            [*found] = table[(table["measure"] == measure) & (table["group"] == group)].to_dict("records")
            told = finding.row(measure, group)
            assert (told is None) == (not found) and repr(told) == repr(found[0] if found else None)


def test_single_rows_are_looked_up_in_records_that_were_made_once(store, undrawn, monkeypatch):
    made = counted(
        monkeypatch, pd.DataFrame, "to_dict", lambda self, *args, **how: "null" in self and "why" in self
    )
    build(store.url, {"sst": "here"}, version="1")
    assert made[True] == 3  # as many as there are findings
