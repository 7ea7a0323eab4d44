"""The first page of a store: its sentence, its forest plot, its texts, and the studies that ran in it."""

import math
import re
from xml.etree import ElementTree

import pandas as pd
import pytest

pytest.importorskip("altair")
pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

from attentest.charts.forest import ForestLine, forest, strip
from attentest.claims.criteria import judged
from attentest.compare.points import grid_points
from attentest.compare.stored import Stored
from attentest.gallery import pictures
from attentest.gallery.answer import DIFFERENT, POINTS, USED, answer, forest_lines, power
from attentest.gallery.folder import publish
from attentest.gallery.showcase import first_look
from attentest.gallery.site import build
from attentest.gallery.studying import ran_here, recipes
from attentest.store.store import Store
from attentest.store.studies import remember, remembered
from tests.browser import drawn, patient_page
from tests.gallery import put, put_corpus

MINE = """
study = "mine"
title = "Does <i>mine</i> attend?"
seeds = 2

[grid]
corpus = ["mine"]

[model]
epochs = 8

[[experiment]]
name = "importance"

[[claim]]
says = "Attention agrees."
statistic = "importance/tau-gradient/overall"
supported_if = "low > 0.3"
refuted_if = "high < 0.3"
"""
ASKED = ("importance", "permutation", "adversary", "ablation")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """One grid point, and the study that ran here."""
    made = Store(tmp_path_factory.mktemp("first") / "store")
    corpus = put_corpus(made)
    for experiment in ASKED:
        put(made, experiment, corpus)
    remember(made, "mine", MINE, {})
    return made


@pytest.fixture(scope="module")
def point(store):
    return grid_points(Stored(store))[0]


@pytest.fixture(scope="module")
def files(store):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "FIGURES", {})
        return build(store.url, {}, version="1")


# --- the forest plot


def line(**changes):
    about = {"label": "a <b>test</b>", "estimate": 0.5, "low": 0.25, "high": 0.75, "null": 0.0}
    return ForestLine(**about | {"range": (-1.0, 1.0)} | changes)


def test_a_line_is_svg_with_its_marks_where_the_numbers_are():
    drawing = ElementTree.fromstring(strip(line()))
    marks = {each.get("class"): each for each in drawing}
    assert marks["dot"].get("cx") == "75%" and marks["null"].get("x1") == "50%"
    assert (marks["interval"].get("x1"), marks["interval"].get("x2")) == ("62.5%", "87.5%")
    assert drawing.get("aria-label") == "a <b>test</b>: 0.500 (0.250 to 0.750), null 0.000"


def test_what_is_not_known_is_not_drawn_and_what_is_outside_lies_at_the_end():
    bare = ElementTree.fromstring(strip(line(low=math.nan, high=math.nan, null=math.nan, estimate=7.0)))
    marks = {each.get("class"): each for each in bare}
    assert set(marks) == {"axis", "zero", "dot"} and marks["dot"].get("cx") == "100%"


def test_the_whole_plot_has_every_word_and_no_script():
    said = forest([line(power="AUC 0.77"), line(label="another")], title="x & y")
    words = " ".join(ElementTree.fromstring(said).itertext())
    assert "a <b>test</b>" in words and "another" in words and "AUC 0.77" in words
    assert not re.search("<script|style=|href", said)


# --- the sentence


def test_the_sentence_says_what_the_criteria_say_of_the_same_findings(point):
    tables = [point.of(name).table for name in ("importance", "permutation", "ablation")]
    verdicts = {one.criterion.name: one.verdict for one in judged(pd.concat(tables), kind="contextual")}
    said = answer([point])
    assert POINTS[verdicts["agrees with importances"]] in said and USED[verdicts["used"]] in said
    row = point.of("adversary").row("emax-jsd-exact@0.01", "overall")
    expected = [
        words
        for words, holds in zip(
            DIFFERENT.values(),
            (row["low"] > math.log(2) / 2, row["high"] < math.log(2) / 2, True),
            strict=True,
        )
        if holds
    ]
    assert said.endswith(expected[0])


def test_of_several_models_the_sentence_counts_those_that_it_holds_of(tmp_path, point):
    bare = Store(tmp_path / "store")
    put(bare, "importance", put_corpus(bare))
    [alone] = grid_points(Stored(bare))
    said = [answer([one]).partition(";")[0] for one in (point, alone)]
    assert set(said) <= set(POINTS.values())
    both = answer([point, alone]).partition(";")[0]
    assert both == (said[0] if said[0] == said[1] else f"{said[0]} (in 1 of 2 models)")
    assert answer([]) == ""


def test_every_line_has_the_numbers_of_its_finding_and_how_good_the_test_is(point):
    lines = {each.label: each for each in forest_lines(point)}
    row = point.of("importance").row("tau-gradient", "overall")
    [gradient] = [each for label, each in lines.items() if "gradient" in label]
    assert (gradient.estimate, gradient.low, gradient.null) == (row["estimate"], row["low"], row["null"])
    assert "power 100%" in gradient.power and len(lines) == 5
    assert power("importance/tau-loo", "pointer", "contextual").startswith("AUC 0.85")
    assert power("importance/no-such", "pointer", "contextual") == "not calibrated"


def test_a_typical_text_is_one_that_the_model_gets_right(point):
    look = first_look(point)
    assert look["label"] == look["predicted"] and len(look["weights"]) == len(look["tokens"])


# --- the studies that ran here


def test_the_users_study_comes_first_and_papers_are_one_folded_line(files):
    page = ElementTree.fromstring(files["index.html"].partition("\n")[2])
    cards = [card.get("href") for card in page.iter("a") if card.get("class") == "card"]
    assert cards == ["study-mine.html"]
    [fold] = [each for each in page.iter("details") if each.get("id") == "papers"]
    assert re.match(r"papers not run here: \d+ \(show\)", fold[0].text)
    assert "Does &lt;i&gt;mine&lt;/i&gt; attend?" in files["index.html"]
    assert "attentest study mine --corpus mine" in files["mine-bilstm-additive.html"]


def test_the_card_of_a_study_draws_one_test_of_its_models(files, point):
    page = ElementTree.fromstring(files["index.html"].partition("\n")[2])
    [picture] = [each for each in page.iter("span") if each.get("class") == "card-picture"]
    [drawing] = picture.iter("svg")
    expected = next(each for each in forest_lines(point) if each.label == picture[-1].text)
    assert drawing.get("aria-label") == f"{expected.label}: {expected.told}"
    assert picture[0][0].text == point.model


def test_what_no_study_of_the_store_asks_for_counts_for_the_papers_that_do(store, point):
    known = recipes((), store)
    assert next(iter(known)) == "mine"
    ran = ran_here(known, store, (), [point])
    assert "mine" in ran and "jain-wallace-2019" not in ran, "the paper does not ask for this corpus"
    assert ran_here({name: known[name] for name in known if name != "mine"}, store, (), [point]) == set()


def test_a_study_of_the_store_that_cannot_be_read_hides_no_other(tmp_path):
    here = Store(tmp_path / "store")
    remember(here, "broken", "study = ", {})
    remember(here, "demo", "study = 1", {}, packaged=True)
    remember(here, "mine", MINE, {"mine.csv": b"paper\n"})
    assert list(remembered(here)) == ["broken", "mine", "demo"] and remembered(here)["demo"].packaged
    assert next(iter(recipes((), here))) == "mine" and "broken" not in recipes((), here)
    assert (tmp_path / "store" / "studies" / "mine.csv").exists()


# --- in a browser


@pytest.fixture
def opened(browser, files, tmp_path):
    publish(files, tmp_path / "pages")
    complaints = []
    with patient_page(browser, viewport={"width": 820, "height": 900}) as page:
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield lambda name: page.goto((tmp_path / "pages" / name).as_uri()) and drawn(page)
    assert not complaints


@pytest.mark.browser
def test_one_text_is_shown_and_buttons_turn_to_the_others(opened):
    page = opened("index.html")
    texts = page.locator(".play article")
    shown = lambda: [n for n in range(texts.count()) if texts.nth(n).is_visible()]  # noqa: E731
    assert texts.count() > 1 and shown() == [0]
    assert page.locator(".play article:visible .panel").count() == 4
    page.get_by_role("button", name="Next").click()
    assert shown() == [1]
    page.get_by_role("button", name="Previous").click()
    assert shown() == [0] and page.get_by_role("button", name="Previous").is_disabled()


@pytest.mark.browser
def test_letters_of_the_figures_are_large_enough_to_read(opened):
    page = opened("index.html")
    sizes = page.evaluate(
        "[...document.querySelectorAll('#tests *')].map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 11


@pytest.mark.browser
def test_a_row_of_texts_shows_its_words_opens_at_a_click_and_is_found_by_a_word(opened):
    page = opened("explore-mine-bilstm-additive.html")
    row = page.locator("table.texts tbody tr").nth(2)
    row.get_by_text("secretword").wait_for()
    row.locator("td").nth(1).click()
    page.locator("section.text h2").wait_for()
    for wanted, found in (("SecretWord", 40), ("nowhere", 0)):
        page.get_by_label("Text or ID contains").fill(wanted)
        page.keyboard.press("Enter")
        page.get_by_text(f"{found} of 40 texts").wait_for()
