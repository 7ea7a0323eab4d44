"""`attentest report`: pages that say what the store says, trust nobody's text, overwrite nobody's file."""

import csv
import functools
import io
import json
import math
import re
import shutil
from html import escape
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("altair")
pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

from attentest.charts.overview import MainNumber, main_numbers
from attentest.charts.style import to_svg
from attentest.claims import claims
from attentest.claims.claims import Claim, corrected, verdict
from attentest.cli.main import run
from attentest.compare.formats import FORMATS
from attentest.compare.pairs import decimal
from attentest.compare.points import grid_points, told_apart
from attentest.compare.stored import Stored
from attentest.compare.table import compare
from attentest.compare.verdicts import asks_for, command, judged
from attentest.experiments.cards import CARDS
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.gallery import extra, folder, pictures, site
from attentest.gallery.folder import MARKER, checked, publish
from attentest.gallery.lines import MAIN
from attentest.gallery.pictures import FIGURES
from attentest.gallery.site import build
from attentest.gallery.texts import A_CLASS, MOST, most_opposed
from attentest.refusal import Refusal
from attentest.statistics.moderated import by_priors
from attentest.store.store import Store
from attentest.studies.recipe import load_study, names
from attentest.studies.seed_deviations import load_seed_deviations
from tests.gallery import (
    HOSTILE,
    ROWS,
    SETTINGS,
    WORDS,
    hostile,
    opposed_rows,
    put,
    put_corpus,
    put_everything,
)
from tests.observed import importance_rows
from tests.shared import made_once

PAPERS = [name for name in names() if not name.startswith("demo")]  # studies that always have a page
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:"
STUDY = """
study = "mine"
title = "Ours <i>too</i>"

[grid]
corpus = ["mine"]
encoder = ["bilstm", "average"]

[model]
epochs = 8

[[experiment]]
name = "importance"

[[claim]]
says = "Attention agrees <b>well</b>."
statistic = "importance/tau-gradient/overall"
supported_if = "low > 0.3"
refuted_if = "high < 0.3"

[[claim]]
says = "Average agrees better."
statistic = "importance/tau-gradient/overall"
where = { encoder = ["average"] }
against = { encoder = "bilstm" }
supported_if = "difference > 0.1"
refuted_if = "difference < 0.1"
"""


def built(store, **options):
    return build(store.url, {}, version="1", **options)


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """A store with every experiment at one grid point, one bare grid point, and the report of it."""

    def make(folder):
        store = Store(folder / "store")
        cells = put_everything(store)
        put(store, "importance", put_corpus(store), encoder="average")
        keys = {experiment: cell.key for experiment, cell in cells.items()}
        (folder / "made.json").write_text(json.dumps({"keys": keys, "files": built(store)}))

    folder = made_once(tmp_path_factory, "whole", make)
    store, made = Store(folder / "store"), json.loads((folder / "made.json").read_text())
    return store, {name: store.cell(key) for name, key in made["keys"].items()}, made["files"]


FEW = ("importance", "permutation", "adversary", "heat-map")


@pytest.fixture(scope="session")
def few(tmp_path_factory):
    """A store with few experiments, which is reported of in a fraction of the time."""
    store = Store(tmp_path_factory.mktemp("few") / "store")
    corpus = put_corpus(store)
    for experiment in FEW:
        put(store, experiment, corpus)
    return store


@pytest.fixture
def undrawn(monkeypatch):
    """No figures, for tests that are about something else: to draw takes most of the time."""
    monkeypatch.setattr(pictures, "FIGURES", {})
    monkeypatch.setattr(site, "to_svg", lambda chart: "<svg/>")


def pages(files):
    return {name: text for name, text in files.items() if name.endswith(".html")}


@functools.lru_cache(maxsize=32)
def tree(page):
    """A page as a tree: everything is closed, so the parser of XML can read it."""
    return ElementTree.fromstring(page.removeprefix("<!doctype html>\n"))


def words(element):
    return " ".join(" ".join(element.itertext()).split())


def rows_of(page, kind):
    return [
        words(row)
        for table in tree(page).iter("table")
        if table.get("class") == kind
        for row in table.iter("tr")
    ]


# --- what is on the pages


def test_there_is_a_page_for_every_grid_point_and_an_overview(whole):
    _, _, files = whole
    assert set(pages(files)) == {
        *("index.html", "texts.html", "compare.html", "calibration.html", "catalogue.html", "about.html"),
        *(f"{page}mine-{name}-additive.html" for page in ("", "explore-") for name in ("bilstm", "average")),
        *(f"study-{name}.html" for name in PAPERS),
    }
    index = tree(files["index.html"])
    links = [link.get("href") for link in index.iter("a")]
    assert {"mine-bilstm-additive.html", "mine-average-additive.html"} <= set(links)


def test_every_link_and_every_picture_of_every_page_is_there(whole):
    _, _, files = whole
    for page in pages(files).values():
        anchors = {element.get("id") for element in tree(page).iter() if element.get("id")}
        for element in tree(page).iter():
            target = element.get("href") or element.get("src")
            if target:
                parts = urlsplit(target)
                assert not parts.scheme and not parts.netloc, target
                assert unquote(parts.path) in files or (not parts.path and parts.fragment in anchors), target


def test_the_overview_shows_each_main_number_with_its_interval_null_and_counts(whole):
    store, cells, files = whole
    [row] = [
        line for line in rows_of(files["index.html"], "overview") if line.startswith("bilstm + additive")
    ]
    stored = {finding.cell.key: finding for finding in Stored(store).every}
    run_here = [name for name in MAIN if name.split("/")[0] in cells]
    for name in run_here:
        experiment, measure = name.split("/")
        at = "@0.01" if experiment == "adversary" else ""
        found = stored[cells[experiment].key].row(f"{measure}{at}", "overall")
        said = f"{found['estimate']:.3f} {found['low']:.3f} to {found['high']:.3f}"
        said += "" if math.isnan(found["null"]) else f" null {found['null']:.3f}"
        assert f"{said} n {found['n']:,}" in row.replace("−", "-")
        if found["excluded"]:
            assert f"n {found['n']:,}, {found['excluded']:,} left out" in row
    [bare] = [
        line for line in rows_of(files["index.html"], "overview") if line.startswith("average + additive")
    ]
    assert bare.count("not run") == len(run_here) - 2, "the other model has nothing but importances"


@pytest.mark.parametrize("experiment", sorted(set(ROWS) - {"heat-map"}))
def test_a_page_shows_every_finding_in_words_with_what_it_takes_to_doubt_it(whole, experiment):
    store, cells, files = whole
    page = files["mine-bilstm-additive.html"]
    said = [line.replace("−", "-") for line in rows_of(page, "findings")]
    [finding] = [f for f in Stored(store).every if f.cell.key == cells[experiment].key]
    for found in finding.table.to_dict("records"):
        card = CARDS[f"{experiment}/{found['measure'].partition('@')[0]}"]
        numbers = [found["estimate"], found["low"], found["null"]]
        shown = [f"{number:.3f}" for number in numbers if not np.isnan(number)]
        matching = [
            line
            for line in said
            if line.startswith(card.measure)
            and all(number in line for number in shown)
            and f"{found['n']:,}" in line
            and (found["group"] == "overall" or found["group"].replace("\x1b", "\ufffd") in line)
        ]
        assert matching, found
        if found["excluded"]:
            assert any(f"{found['excluded']:,} ({found['why']})" in line for line in matching)
    assert card.formula in words(tree(page)) and card.direction in words(tree(page))


def test_a_page_says_which_cell_and_which_command_made_it(whole):
    _, cells, files = whole
    page = words(tree(files["mine-bilstm-additive.html"]))
    for cell in cells.values():
        assert f"Cell {cell.key[:12]}" in page and f"attentest run-cell {cell.key[:12]}" in page


def test_every_figure_of_the_experiments_is_drawn(whole):
    _, _, files = whole
    drawn = {
        name.removeprefix("figures/mine-bilstm-additive-")
        for name in files
        if "bilstm" in name and ".svg" in name
    }
    assert {
        "importance-tau-gradient.svg",
        "importance-tau-loo.svg",
        "importance-tau-length-gradient.svg",
        "importance-tau-length-loo.svg",
        "importance-tau-differences.svg",
        "permutation-permutation.svg",
        "adversary-jsd.svg",
        "adversary-jsd-violins.svg",
        "adversary-epsilon.svg",
        "adversary-search.svg",
        "single-weight-djs.svg",
        "single-weight-negative.svg",
        "single-weight-flips.svg",
        "removal-fraction.svg",
        "removal-mass.svg",
        "removal-survival.svg",
        "uniform-baseline-scores.svg",
        "uniform-baseline-lost.svg",
        "seed-variance-seeds.svg",
        "seed-variance-output.svg",
        "seed-variance-beyond.svg",
        "guided-scores.svg",
        "guided-gains.svg",
        "trained-adversary-plane.svg",
        "trained-adversary-exact.svg",
        "trained-adversary-search.svg",
        "trained-adversary-search-output.svg",
        "deception-penalties.svg",
    } <= drawn
    assert drawn == {
        f"{experiment}-{figure.name}.svg" for experiment in ROWS for figure in FIGURES.get(experiment, ())
    }
    for name in files:
        if name.startswith("figures/"):
            assert ElementTree.fromstring(files[name]).tag.endswith("svg")


def test_the_main_numbers_are_drawn_where_they_are_and_what_is_none_is_not():
    numbers = [
        MainNumber(measure="a", model="m", estimate=-0.5, low=-0.75, high=-0.25, null=np.nan),
        MainNumber(measure="a", model="n\x1b", estimate=0.0, low=np.nan, high=np.nan, null=0.0),
        MainNumber(measure="b", model="m", estimate=np.nan, low=np.nan, high=np.nan, null=0.5),
    ]
    drawn = main_numbers(numbers).to_dict()
    records = [r for some in drawn["datasets"].values() for r in some if "estimate" in r]
    assert [(r["measure"], r["estimate"], r["low"], r["null"]) for r in records] == [
        ("a", -0.5, -0.75, None),
        ("a", 0.0, None, 0.0),
    ]
    assert drawn["layer"][3]["encoding"]["x"]["scale"]["domain"] == [-0.75, 1.0]
    assert "No main number" in to_svg(main_numbers(numbers[2:])) and "\x1b" not in str(drawn)


def test_heat_maps_show_the_words_under_three_attentions(whole):
    _, _, files = whole
    maps = [
        s for s in tree(files["mine-bilstm-additive.html"]).iter("section") if s.get("class") == "heatmap"
    ]
    assert len(maps) == 2 * A_CLASS + 1, (
        "three of each predicted class, and the text of the heat-map experiment"
    )
    for drawn in maps:
        assert [words(strong) for strong in drawn.iter("strong")] == [
            "the model's attention",
            "found by the search",
            "furthest with the same output",
        ]
        tokens = [token.text for token in drawn.iter("bdi")]
        assert tokens.count("secretword") == 3 and tokens.count(HOSTILE.token) == 3
    assert "output 0.750; τ of attention and gradient 0.250; median change when permuted 0.125" in words(
        maps[-1]
    )
    assert "output changes by 0.010; JSD 0.625" in words(maps[-1])


def test_the_same_store_gives_the_same_bytes(store, drawn_afresh):
    corpus = put_corpus(store)
    for experiment in ("permutation", "heat-map"):
        put(store, experiment, corpus)
    assert built(store) == built(store)


@pytest.mark.slow
def test_the_same_store_gives_the_same_bytes_of_every_experiment(whole, drawn_afresh):
    store, _, files = whole
    assert built(store) == files


# --- nobody's text is trusted


def test_pages_forbid_everything_but_their_own_files(whole):
    _, _, files = whole
    for page in pages(files).values():
        [policy] = [m for m in tree(page).iter("meta") if m.get("http-equiv") == "Content-Security-Policy"]
        assert policy.get("content") == POLICY
        for element in tree(page).iter():
            assert element.tag not in ("style", "iframe", "object")
            if element.tag == "svg":  # a line of a forest plot, whose words are attributes
                assert element.get("class") == "forest" and {mark.tag for mark in element} <= {
                    "line",
                    "circle",
                }
            if element.tag == "script":
                assert element.get("src") in files and not element.text, "a script is a file of its own"
            assert not [name for name in element.attrib if name == "style" or name.startswith("on")]


def test_hostile_names_are_shown_as_they_are_and_do_nothing(whole):
    _, _, files = whole
    page = files["mine-bilstm-additive.html"]
    assert escape(HOSTILE.label) in page and HOSTILE.label in words(tree(page))
    assert HOSTILE.label not in "".join(pages(files).values()) and "onerror=alert" in words(tree(page))
    assert HOSTILE.query in words(tree(page)), "a question is shown, too"
    for name, text in files.items():
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text), name
        if name.startswith("figures/"):
            assert "<script" not in text


def test_a_hostile_study_is_shown_as_it_is(few, tmp_path, undrawn):
    (tmp_path / "mine.toml").write_text(STUDY)
    files = built(few, studies=[str(tmp_path / "mine.toml")])
    page = files["study-mine.html"]
    assert words(next(tree(page).iter("h1"))) == "Ours <i>too</i>"
    assert "Attention agrees <b>well</b>." in words(tree(page))


@pytest.mark.parametrize("private", [True, False])
def test_texts_that_need_credentials_are_on_no_page_unless_asked_for(whole, private, undrawn):
    store, _, files = whole
    said = "".join((built(store, private=["mine"]) if private else files).values())
    assert ("secretword" in said) is not private
    assert ("t0001" in said) is not private, "an id may name a person"
    assert ("need credentials" in said) is private


# --- what is missing is shown as missing


@pytest.fixture
def stripped(tmp_path, undrawn):
    """The report of a copy of a store without the files of some name."""

    def of(store, name):
        shutil.copytree(store.url, tmp_path / "copy")
        for file in (tmp_path / "copy").rglob(name):
            file.unlink()
        return built(Store(tmp_path / "copy"))

    return of


def test_a_store_without_texts_says_so(stripped, few):
    page = stripped(few, "examples.parquet")["mine-bilstm-additive.html"]
    assert "passed on without its texts" in words(tree(page))
    assert "secretword" in page, "the heat-map experiment keeps the words of its own texts"


def test_a_store_without_rows_still_shows_its_findings(stripped, whole):
    files = stripped(whole[0], "rows.parquet")
    page = words(tree(files["mine-bilstm-additive.html"]))
    assert page.count("not the rows they were concluded from") == len(ROWS)
    assert not [name for name in files if name.startswith("figures/mine")]
    assert rows_of(files["mine-bilstm-additive.html"], "findings") == rows_of(
        whole[2]["mine-bilstm-additive.html"], "findings"
    )


def test_a_store_without_the_corpus_still_reports(stripped, few):
    files = stripped(few, "corpus.json")
    assert "does not hold the corpus itself" in words(tree(files["index.html"]))


def test_what_was_not_run_is_named(whole):
    page = words(tree(whole[2]["mine-average-additive.html"]))
    assert "no findings on: Performance; Permutation; Adversarial attention" in page


def test_weights_of_sentences_are_not_drawn_over_words(store, undrawn):
    corpus = put_corpus(store)
    put(store, "adversary", corpus, hostile(opposed_rows(words=2)))
    assert "weighs sentences, not words" in words(tree(built(store)["mine-bilstm-additive.html"]))


def test_where_no_optimum_is_known_the_search_stands_in_and_says_so(store):
    rows = opposed_rows()
    rows[[name for name in rows if name.startswith(("exact@", "shuffled@", "bound@", "uniform@"))]] = np.nan
    put(store, "adversary", put_corpus(store), hostile(rows))
    files = built(store)
    assert "by the published search" in words(tree(files["index.html"]))
    assert "not looked for" in files["mine-bilstm-additive.html"]
    assert "published search, last iterate" in files["figures/mine-bilstm-additive-adversary-jsd.svg"]


def test_a_measure_that_has_no_card_goes_by_its_name(store, undrawn, monkeypatch):
    put(store, "importance", put_corpus(store))
    monkeypatch.delitem(CARDS, "importance/tau-gradient")
    said = rows_of(built(store)["mine-bilstm-additive.html"], "findings")
    assert any(line.startswith("tau gradient ") for line in said)


def test_every_experiment_has_a_title_a_question_and_what_it_shows():
    assert all(conclusion.about.asks.endswith("?") for conclusion in CONCLUSIONS.values())
    assert set(FIGURES) <= set(CONCLUSIONS)
    for some in FIGURES.values():
        assert len({figure.name for figure in some}) == len(some)


def test_groups_that_are_models_stand_together_by_measure_with_one_card_each(whole):
    page = tree(whole[2]["mine-bilstm-additive.html"])
    [section] = [s for s in page.iter("section") if s.get("id") == "guided"]
    assert "numbers, model by model" in words(section)
    first = [words(next(row.iter("th"))) for row in section.iter("tr")][1:]
    cards = [row for row in section.iter("tr") if next(row.iter("details"), None) is not None]
    assert len(cards) == len({line.split(" formula ")[0] for line in first})
    measures = [line.split(" formula ")[0] for line in first]
    assert measures == sorted(measures, key=measures.index), "no measure comes back later"


def test_the_setting_in_a_measures_name_is_named_as_what_it_is(whole):
    said = rows_of(whole[2]["mine-bilstm-additive.html"], "findings")
    unflipped = [line for line in said if "not yet flipped" in line]
    assert any("(share removed = 0.25)" in line for line in unflipped)
    assert not any("ε" in line for line in unflipped) and any("(ε = 0.05)" in line for line in said)


def test_a_store_of_one_paper_has_only_its_columns(store, undrawn):
    put(store, "removal", put_corpus(store))
    page = words(tree(built(store)["index.html"]))
    assert "share of items removed by attention" in page and "τ of attention" not in page


def test_the_page_of_the_paper_shows_how_a_weight_is_removed_and_that_it_is_made(whole):
    _, _, files = whole
    page = files["study-serrano-smith-2019.html"]
    [image] = [e for e in tree(page).iter("img") if e.get("src", "").startswith("figures/")]
    assert "made example, not a finding" in files[image.get("src")]
    assert "made up" in words(tree(page))
    assert "zero-and-renormalise" not in files["study-jain-wallace-2019.html"]


# --- grid points


def test_models_that_differ_in_their_settings_have_pages_of_their_own(store, undrawn):
    corpus = put_corpus(store)
    for epochs in (4, 8):
        put(store, "importance", corpus, epochs=epochs)
    points = grid_points(Stored(store))
    assert len({point.file for point in points}) == 2
    assert sorted(told_apart(points)) == ["epochs 4", "epochs 8"]
    assert {"epochs 4", "epochs 8"} <= set(re.findall(r"epochs \d", words(tree(built(store)["index.html"]))))


def test_the_same_experiment_done_in_two_ways_has_two_sections(store):
    corpus = put_corpus(store)
    put(store, "permutation", corpus)
    put(store, "permutation", corpus, mode="as-published")
    files = built(store)
    page = tree(files["mine-bilstm-additive.html"])
    sections = [s.get("id") for s in page.iter("section") if (s.get("id") or "").startswith("permutation")]
    assert len(set(sections)) == 2 and "as-published" in words(page)
    assert len([name for name in files if name.endswith("permutation.svg")]) == 2


def test_the_most_opposed_texts_are_few_of_each_class_and_the_furthest():
    rows = opposed_rows()
    rows = rows[rows["subject"] == "trained"]
    rows["best@0.01"] = 0.1
    chosen = most_opposed(rows, 0.01)
    first = rows[rows["seed"] == 0]
    for label, some in chosen.groupby("predicted"):
        own = first[(first["predicted"] == label)]["exact@0.01"].dropna()
        assert sorted(some["far"], reverse=True) == sorted(own, reverse=True)[:A_CLASS]
    many = rows.assign(predicted=[f"answer {n % 30}" for n in range(len(rows))])
    assert len(most_opposed(many, 0.01)) == MOST and most_opposed(many, 0.01)["predicted"].is_unique
    assert most_opposed(rows.assign(**{"exact@0.01": np.nan}), 0.01)["far"].eq(0.1).all()
    assert most_opposed(pd.DataFrame(), 0.01).empty


# --- studies


def test_claims_are_judged_as_findings_say_and_shown_on_both_pages(store, tmp_path, undrawn):
    (tmp_path / "mine.toml").write_text(STUDY)
    corpus = put_corpus(store)
    own, other = importance_rows(), importance_rows()
    other["tau_gradient"] = (other["tau_gradient"] - 0.3).clip(-1, 1)
    for encoder, rows in (("average", own), ("bilstm", other)):
        put(store, "importance", corpus, rows, encoder=encoder)
    # A rival that is further away in its settings is not asked for by the study, and not compared with.
    put(store, "importance", corpus, own, encoder="bilstm", epochs=3)
    study = load_study(str(tmp_path / "mine.toml"))
    points = grid_points(Stored(store))
    found = list(judged(study, points))
    tables = {(p.axes["encoder"], p.settings["epochs"]): p.findings[0].table for p in points}
    of_one, of_two = (Claim(**written.model_dump()) for written in study.claim)
    expected = [
        *corrected([claims.tested(of_one, tables[encoder, 8]) for encoder in ("average", "bilstm")]),
        verdict(of_two, tables["average", 8], tables["bilstm", 8], by_priors(load_seed_deviations())),
    ]
    assert [one.verdict for one in found] == expected
    assert expected[2].verdict == "supported"
    files = built(store, studies=[str(tmp_path / "mine.toml")])
    assert expected[2].reason in words(tree(files["mine-average-additive.html"]))
    page = tree(files["study-mine.html"])
    [table] = [t for t in page.iter("table") if "average" in words(t) and "bilstm" not in words(t)]
    assert words(table).endswith("mine supported")
    [article] = [one for one in page.iter("article") if table in one.iter("table")]
    assert "supported (of 1 grid point supported at 1)" in words(article)
    # The verdict over all grid points comes before the table of them.
    [whole] = [p for p in article.iter("p") if p.get("class") == "overall"]
    order = list(article.iter())
    assert order.index(whole) < order.index(table)
    rows = list(csv.DictReader(io.StringIO(files["study-mine-claims.csv"])))
    assert [row["claim verdict"] for row in rows] == ["undecided", "undecided", "supported"]
    assert rows[2]["claim because"] == "of 1 grid point supported at 1"
    for row, one in zip(rows, expected, strict=True):
        for name in ("p", "p_corrected", "p_refutes", "p_refutes_corrected"):
            assert float(row[name]) == pytest.approx(getattr(one, name), rel=1e-3)
    assert not [one for one in found if one.point.settings["epochs"] == 3]


def test_a_study_asks_only_for_what_its_recipe_names(store, tmp_path):
    (tmp_path / "mine.toml").write_text(STUDY)
    study = load_study(str(tmp_path / "mine.toml"))
    corpus = put_corpus(store)
    put(store, "importance", corpus)
    put(store, "importance", corpus, mode="as-published")
    put(store, "importance", corpus, epochs=3)
    put(store, "importance", put_corpus(store, "other"))
    put(store, "permutation", corpus)
    asked = [f for f in Stored(store).every if asks_for(study, f)]
    assert [(f.cell.config["corpus"], f.settings, f.cell.config["mode"]) for f in asked] == [
        ("mine", SETTINGS, "corrected")
    ]
    said = command({str(tmp_path / "mine.toml"): study}, asked[0])
    assert said == "attentest study mine.toml --corpus mine --seeds 2"
    assert command({}, asked[0]) == ""


def test_two_studies_of_one_name_are_refused(whole, tmp_path):
    (tmp_path / "other.toml").write_text(STUDY.replace('"mine"\ntitle', '"demo"\ntitle'))
    with pytest.raises(Refusal, match="which another study has"):
        built(whole[0], studies=[str(tmp_path / "other.toml")])


def test_published_numbers_stand_beside_ours_and_can_be_taken_along(store, undrawn):
    put(store, "importance", put_corpus(store, "babi-1-simulated"), importance_rows())
    files = built(store)
    document = compare("jain-wallace-2019", store.url, {})
    for suffix, form in ((".md", "markdown"), (".tex", "latex"), (".csv", "csv")):
        assert files[f"study-jain-wallace-2019{suffix}"] == FORMATS[form](document)
    page = tree(files["study-jain-wallace-2019.html"])
    assert {link.get("href") for link in page.iter("a") if link.get("download") is not None} >= {
        f"study-jain-wallace-2019{suffix}" for suffix in (".md", ".tex", ".csv")
    }
    rows = [line for line in rows_of(files["study-jain-wallace-2019.html"], "pairs") if "stands in" in line]
    shown = [*document["rows"], *document["sizes"]]
    assert len(rows) == len(shown) > len(document["rows"]) > 0, "pairs first, then sizes"
    for pair, line in zip(shown, rows, strict=True):
        assert pair["measure"] in line and decimal(pair["ours"]) in line
    assert document["rule"] in words(page)


# --- the folder


def test_a_report_replaces_a_report_and_nothing_else(tmp_path):
    out = tmp_path / "deep" / "pages"
    publish({"index.html": "one", "figures/a.svg": "a"}, out)
    publish({"index.html": "two"}, out)
    assert {path.name for path in out.iterdir()} == {"index.html", MARKER}
    assert (out / "index.html").read_text() == "two"
    assert [path.name for path in out.parent.iterdir()] == ["pages"], "nothing is left beside it"
    (out / "notes.txt").write_text("mine")
    with pytest.raises(Refusal, match=r"notes\.txt"):
        publish({"index.html": "three"}, out)
    assert (out / "notes.txt").read_text() == "mine" and (out / "index.html").read_text() == "two"


def test_a_folder_of_somebody_is_refused(tmp_path):
    (tmp_path / "theirs" / "empty").mkdir(parents=True)
    with pytest.raises(Refusal, match="empty, which no report has written"):
        checked(tmp_path / "theirs")
    (tmp_path / "theirs" / MARKER).write_text("[]")
    with pytest.raises(Refusal, match="and more"):
        checked(tmp_path / "theirs")
    (tmp_path / "file").write_text("x")
    with pytest.raises(Refusal, match="a file"):
        checked(tmp_path / "file")
    with pytest.raises(Refusal, match="cannot be written"):
        publish({"a": "b"}, tmp_path / "file" / "below")
    with pytest.raises(Refusal, match="cannot be written"):
        checked(tmp_path / "nul\0")
    (tmp_path / "new").mkdir()
    publish({"index.html": "x"}, tmp_path / "new")
    assert (tmp_path / "new" / "index.html").exists(), "an empty folder may be filled"


def test_a_report_that_cannot_be_finished_leaves_the_old_one(tmp_path, monkeypatch):
    publish({"index.html": "old"}, tmp_path / "pages")
    rename = Path.rename

    def full(self, target):
        if target.name == "pages" and "new" in [p.read_text() for p in self.glob("index.html")]:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(Refusal, match="No space left"):
        publish({"index.html": "new"}, tmp_path / "pages")
    assert (tmp_path / "pages" / "index.html").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["pages"]


# --- the command


def test_the_command_writes_the_pages_and_says_where(few, tmp_path, capsys, undrawn):
    words_ = ["report", "--store", few.url, "--out", str(tmp_path / "pages")]
    assert run(words_) == 0
    assert f"Open {tmp_path}/pages/index.html" in capsys.readouterr().out
    assert run([*words_, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (
        said["pages"] == 8 + len(PAPERS)
        and said["figures"] == len(list((tmp_path / "pages" / "figures").iterdir()))
        and said["out"] == str(tmp_path / "pages")
    )
    assert (tmp_path / "pages" / "index.html").exists()


def test_wrong_input_is_refused_before_anything_is_written(whole, tmp_path, capsys, monkeypatch):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    out = str(tmp_path / "pages")
    for words_, said in (
        (["--store", str(tmp_path / "nowhere"), "--out", out], "no such folder"),
        (["--store", str(tmp_path / "empty"), "--out", out], "no findings"),
        (["--store", whole[0].url, "--out", str(tmp_path / "file")], "a file"),
        (["--store", whole[0].url, "--out", str(tmp_path)], "which no report has written"),
        (["--store", whole[0].url, "--out", out, "--study", "nowhere"], "neither the name of a study"),
    ):
        assert run(["report", *words_]) == 2
        assert said in capsys.readouterr().err
    monkeypatch.setattr(extra, "find_spec", lambda name: None if name == "altair" else object())
    assert run(["report", "--store", whole[0].url, "--out", out]) == 2
    assert "got no altair" in (said := capsys.readouterr().err) and "pip install 'attentest[web]'" in said
    assert {path.name for path in tmp_path.iterdir()} == {"empty", "file"}
    assert folder.MARKER not in {path.name for path in (tmp_path / "empty").iterdir()}


def test_credentials_of_the_catalogue_are_kept(store, tmp_path, undrawn):
    corpus = put_corpus(store, "mimic-anemia")
    for experiment in ("permutation", "heat-map"):
        put(store, experiment, corpus)
    for more, shown in (([], False), (["--include-text"], True)):
        assert run(["report", "--store", store.url, "--out", str(tmp_path / "pages"), *more]) == 0
        page = (tmp_path / "pages" / "mimic-anemia-bilstm-additive.html").read_text()
        assert (WORDS[2] in page) is shown


# --- in a browser


@pytest.mark.browser
def test_a_browser_shows_the_pages_without_complaint(whole, browser, tmp_path):
    publish(whole[2], tmp_path / "pages")
    said = []
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("requestfailed", lambda request: said.append(request.url))
    for name in pages(whole[2]):
        page.goto((tmp_path / "pages" / name).as_uri())
        page.evaluate("for (const image of document.images) image.loading = 'eager'")
        page.wait_for_load_state("networkidle")
        images = page.evaluate("[...document.images].map(image => image.complete && image.naturalWidth > 0)")
        styled = page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert not said and images and all(images) and styled != "none", name
        assert wide <= 390, f"{name} is wider than a telephone; its tables should scroll"
    page.close()
