"""The page of an audit: what it says; and in a real Chromium: light, dark, on a telephone, in print."""

import html
import math
import re

import pytest

from attentest.auditing.page import fragment, model_card, page
from attentest.auditing.page.forest import Axis, own_null, row
from attentest.claims.criterion import QUESTIONS, SCOPE, VERDICTS
from tests.browser import patient_page

NAN = math.nan
FINDING = {"experiment": "permutation", "low": 0.1, "high": 0.3, "null": 0.0, "n": 500}
FINDING |= {"measure": "median-output-change", "estimate": 0.2, "excluded": 3, "why": "a text of one unit"}
CARD = dict.fromkeys(
    ("formula", "direction", "null", "unit", "paper", "section", "undefined_when"), "as said"
)
CARD |= {"how_good": "AUC 0.98 for pointer"}
TEST = {"experiment": "permutation", "measure": "median-output-change", "margin": 0.05, "estimate": 0.2}
TEST |= {"low": 0.1, "high": 0.3, "null": 0.0, "p": 0.0123, "reason": "", "p_tests": "the hypothesis"}
TEST |= {"title": "Output change", "sign": 1.0, "effect": 0.2, "largest_no": 0.02, "smallest_yes": 0.1}
TEST |= {"null_of_finding": 0.04, "null_in_words": "before training"}
TEST |= {"auc": {"auc": 0.98, "low": 0.9, "high": 1.0}, "by_definition": True}
NUMBERS = ("estimate", "low", "high", "null", "margin", "p", "effect", "null_of_finding")
UNTOLD = {**TEST, **dict.fromkeys(NUMBERS, NAN), "p_tests": "", "reason": "no marks", "auc": None}
RATES = {"no": 2, "yes": 2, "false_support": 0.02, "power": 0.95, "audits": 50}
NASTY = "<script>alert(1)</script>"
TEXT = {
    "id": "row-<b>7",
    "label": "bad",
    "predicted": "good",
    "probability": 0.9,
    "says": "It falls by 9 points.",
}
TEXT |= {"words": (NASTY, "is", "a\u202eword", *["long"] * 30), "query": ("why", "<i>")}
TEXT |= {
    "strips": {name: (0.5, 0.4, 0.1, *[0.0] * 30) for name in ("attention", "gradient", "leave-one-out")}
}


def criterion(verdict, number):
    return {
        "criterion": f"criterion {number}",
        "asks": "Is it so?",
        "question": [*QUESTIONS][number % 2],
        "rates": "Of models of this kind, at most 3 %.",
        "verdict": verdict,
        "sentence": "A sentence with its numbers.",
        "plain": f"Permuting the weights moves {number} % of the probability to other answers.",
        "main": None if verdict.startswith("not m") else 0,
        "error_rates": RATES if number % 2 else None,
        "tests": [{**TEST, "verdict": verdict}, {**UNTOLD, "verdict": "undecided"}],
    }


DOCUMENT = {
    "model": "a-folder" + "-with-a-long-name" * 4,
    "attention": "bert: attention from the position that decides in layer 5 of 0 to 5, the mean over heads",
    "budget": "quick",
    "texts": 500,
    "of": 1725,
    "ids": [f"row-{n}" for n in range(500)],
    "data": {"file": "reviews.csv", "name": "reviews"},
    "notes": ["Texts are called by the column 'id'."],
    "kind": "transformer",
    "drawn": {"agreement": {"pairs": 12.5, "error": 0.19, "steps": 8.0}},
    "version": "0.1.0",
    "scope": SCOPE,
    "questions": QUESTIONS,
    "headline": {
        "sentence": "Attention is no reliable pointer, but the answers depend on the attention weights.",
        "advice": "Do not show a heat map of it.",
        "counts": "Criteria of where it points: 1 supported.",
        "pointer": "no",
        "mechanism": "yes",
    },
    "chosen": {"sentence": "Head 3 was chosen on other texts."},
    "criteria": [criterion(verdict, number) for number, verdict in enumerate(VERDICTS)],
    "examples": {
        "measure": "Texts are ordered.",
        "why": "",
        "with_text": True,
        "most": [TEXT],
        "least": [TEXT],
    },
    "findings": [{**FINDING, "group": group} for group in ("overall", "label=positive", "untrained")],
    "left_out": {"information": "The budget leaves it out. " * 4},
    "titles": {
        "agreement": "Rank correlation with four explainers",
        "information": "Information about the output",
        "permutation": "Permuted weights",
    },
    "seconds": {"permutation": 1.25},
    "cards": {"permutation/median-output-change": {"measure": "Median output change", **CARD}},
    "provenance": {
        "facts": {"Model": "a-folder", "Parameters (sha256)": "0" * 64, "Date": "2026-11-19T14:50:08Z"},
        "citation": "Audit of the attention of a-folder.",
        "bibtex": "@misc{attentest-audit,\n  title = {```Audit},\n}",
        "command": "attentest audit a-folder --data reviews.csv",
    },
}
CONTRAST = """cell => {
  const light = colour => {
    const parts = colour.match(/[0-9.]+/g).slice(0, 3).map(Number).map(part => part / 255)
      .map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
  }
  const seen = colour => colour.startsWith('color(srgb')
    ? colour.match(/[0-9.]+/g).slice(0, 3).map(part => 255 * part).join(' ') : colour
  const style = getComputedStyle(cell)
  const colours = [style.color, style.backgroundColor]
  const both = colours.map(colour => light(seen(colour))).sort((one, other) => other - one)
  return (both[0] + 0.05) / (both[1] + 0.05)
}"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    file = tmp_path_factory.mktemp("audit") / "audit.html"
    file.write_text(page(DOCUMENT), encoding="utf-8")
    return file


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 820, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_anywhere(browser, written, scheme, width):
    with patient_page(browser, viewport={"width": width, "height": 900}, color_scheme=scheme) as shown:
        complaints = []
        shown.on("console", lambda message: complaints.append(message.text))
        shown.goto(written.as_uri())
        shown.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert shown.evaluate("document.documentElement.scrollWidth") <= width, "only tables move sideways"
        paper = shown.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        grounds = ("body", ".strip .w20", ".strip .w16", ".strip .w4")
        for kind in (*grounds, *(f".verdict.{verdict.replace(' ', '-')}" for verdict in VERDICTS)):
            assert shown.locator(kind).first.evaluate(CONTRAST) >= 4.5, kind
        assert shown.locator("table").count() == shown.locator(".wide > table").count()
        row = shown.locator("svg.forest[role=img]").first.bounding_box()
        assert 250 < row["width"] <= width and row["height"] >= 44, "a row is drawn wherever it is read"
        first = shown.evaluate("document.querySelector('h1').getBoundingClientRect().top")
        assert first < 150, "the verdict comes first"
        assert not complaints


@pytest.mark.browser
def test_what_is_printed_is_light_and_whole(browser, written):
    with patient_page(browser, viewport={"width": 700, "height": 900}, color_scheme="dark") as shown:
        shown.goto(written.as_uri())
        shown.emulate_media(media="print")
        assert shown.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert shown.locator(".verdict.supported").first.evaluate(CONTRAST) >= 4.5
        assert shown.evaluate("getComputedStyle(document.body).printColorAdjust") == "exact"
        assert shown.pdf(format="A4").count(b"/Type /Page\n") >= 2


@pytest.mark.browser
def test_a_notebook_shows_the_head_and_changes_nothing_around_it(browser, tmp_path):
    around = "<p id='before' style='color: rgb(1, 2, 3)'>before</p>"
    (tmp_path / "notebook.html").write_text(f"{around}{fragment(DOCUMENT)}", encoding="utf-8")
    with patient_page(browser, viewport={"width": 820, "height": 900}, color_scheme="dark") as shown:
        shown.goto((tmp_path / "notebook.html").as_uri())
        assert shown.locator("svg.forest[role=img]").count() == 5 and shown.locator(".headline").count() == 1
        assert shown.locator("#before").evaluate("each => getComputedStyle(each).color") == "rgb(1, 2, 3)"
        assert shown.evaluate("getComputedStyle(document.body).backgroundColor") == "rgba(0, 0, 0, 0)"
        for kind in ("div.attentest-audit", ".verdict.undecided"):
            assert shown.locator(kind).first.evaluate(CONTRAST) >= 4.5


def in_view(written):
    """What a reader sees before anything is opened."""
    return html.unescape(
        re.sub(r"<[^>]+>", " ", re.sub(r"<(details|style|title)\b.*?</\1>", "", written, flags=re.S))
    )


def test_the_verdict_comes_first_and_then_sentences_without_codes():
    said = in_view(page(DOCUMENT))
    order = [DOCUMENT["headline"]["sentence"], DOCUMENT["headline"]["advice"], *QUESTIONS.values()]
    order += ["Texts where attention is most", "How good each test is", "Everything else", "Cite this audit"]
    assert [said.index(each) for each in order] == sorted(said.index(each) for each in order)
    assert not re.search(r"median-output-change|permutation/|\bA28\b", said), "codes are folded"
    for one in DOCUMENT["criteria"]:
        assert said.count(one["plain"]) == 1


def test_every_test_says_what_it_says_itself():
    """A criterion that is not supported may have tests that are."""
    written = page(DOCUMENT)
    named = "<td>Output change<small>permutation/median-output-change</small></td>"
    assert written.count(named) == 2 * len(VERDICTS)
    assert written.count("<td>undecided: no marks</td>") == len(VERDICTS)
    for verdict in VERDICTS:
        numbers = '<td class="number">0.050</td><td class="number">0.012</td><td>the hypothesis</td>'
        assert f"{numbers}<td>{verdict}</td>" in written
    assert "0.98 [0.90, 1.00]<small>by definition</small>" in written
    assert "Head 3 was chosen" in written and SCOPE in written and "AUC 0.98" in written
    assert '<td class="number">nan' not in written and "&lt; 0.001" not in written
    surely = {**DOCUMENT["criteria"][0], "tests": [{**TEST, "verdict": "supported", "p": 1e-9}]}
    assert '<td class="number">&lt; 0.001</td>' in page({**DOCUMENT, "criteria": [surely]})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "took 12.5 random pairs of parts of a text, after which their standard error is 0.19"),
        ({"error": NAN}, "took 12.5 random pairs of parts of a text; integrated gradients took 8.0 steps"),
        ({"pairs": 0.0, "error": NAN}, "asked about every part of every text, none at random"),
    ],
)
def test_how_much_was_drawn_is_on_the_page_and_in_the_model_card(changed, said):
    mean = {**DOCUMENT["drawn"]["agreement"], **changed}
    for made in (page, model_card):
        shown = made({**DOCUMENT, "drawn": {"agreement": mean}})
        assert f"Rank correlation with four explainers: LIME and Shapley values {said}" in shown


def test_texts_are_escaped_and_can_stay_out():
    written = page(DOCUMENT)
    assert "<script" not in written and "&lt;script&gt;alert(1)" in written and "\u202e" not in written
    assert "row-&lt;b&gt;7" in written and "why &lt;i&gt;" in written and "… 30 words …" in written
    bare = {**TEXT, "words": (), "query": None, "strips": {}}
    without = {**DOCUMENT["examples"], "with_text": False, "most": [bare], "least": [bare]}
    written = page({**DOCUMENT, "examples": without})
    assert (
        "alert" not in written and "The texts were left out" in written and "It falls by 9 points" in written
    )
    nothing = {**without, "measure": "", "why": "Nothing was erased.", "most": [], "least": []}
    assert "Nothing was erased." in page({**DOCUMENT, "examples": nothing})


def places(drawn, kind, name="x1"):
    """Where signs of a kind stand in a row, in per cent of its width."""
    found = re.findall(rf'<(?:line|rect|circle) class="{kind}[^"]*"[^>]*? {name}="([0-9.]+)%"', drawn)
    return [float(each) for each in found]


def test_a_row_draws_the_numbers_it_is_given():
    test = {**TEST, "verdict": "supported"}
    axis = Axis.of([test])
    drawn = row(axis, test)
    assert places(drawn, "chance") == [axis.place(0.0)] and places(drawn, "margin") == [axis.place(0.05)]
    assert places(drawn, "interval judged") == [axis.place(0.1)]
    assert places(drawn, "interval judged", "x2") == [axis.place(0.3)]
    assert places(drawn, "estimate", "cx") == [axis.place(0.2)] and ">0.20</text>" in drawn
    assert places(drawn, "yes", "x") == [axis.place(0.1)] and places(drawn, "no", "width")
    assert f'<svg x="{axis.place(0.04)}%"' in drawn, "its null"
    assert "95 % interval 0.10 to 0.30; before training: 0.04; margin 0.05" in drawn
    ends = [axis.place(effect) for effect in (axis.low, 0.0, 0.5, axis.high)]
    assert ends == sorted(ends) and ends[0] == 3.0 and ends[-1] == 97.0 and axis.high == 1.0


def test_further_right_says_more_also_where_the_number_is_to_be_low():
    low = {
        **TEST,
        "verdict": "supported",
        "sign": -1.0,
        "estimate": -0.4,
        "low": -0.5,
        "high": -0.3,
        "effect": 0.4,
    }
    axis = Axis.of([low])
    drawn = row(axis, low)
    assert places(drawn, "interval judged") == [axis.place(0.3)] and own_null(low) == pytest.approx(-0.04)
    assert places(drawn, "interval judged", "x2") == [axis.place(0.5)] and axis.low < -0.1
    bare = {
        **low,
        **dict.fromkeys(("low", "high", "margin", "largest_no", "smallest_yes", "null_of_finding"), NAN),
    }
    drawn = row(axis, {**bare, "verdict": "not judged"})
    assert places(drawn, "estimate shown", "cx") == [axis.place(0.4)] and not places(drawn, "margin")
    assert "nan" not in drawn


def test_a_model_card_reads_as_a_section():
    card = model_card(DOCUMENT)
    assert card.startswith("## ") and card.index("**Attention is no reliable") < card.index("| Question |")
    assert card.count("\n```") == 4 and "'''Audit" in card, "nothing in a block closes it"
    lines = [line for line in card.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 5 and all(line.count("|") == 5 for line in lines)
    rates = "in at most 2.0 % of audits where it is false, and in at least 95 % of audits where it is true"
    assert f"supported {rates} (50 audits" in card
    surely = {**DOCUMENT["criteria"][1], "error_rates": {**RATES, "false_support": 0.0, "power": 1.0}}
    sure = "supported in no audit where it is false, and in every audit where it is true"
    assert sure in model_card({**DOCUMENT, "criteria": [surely]})
    assert "attentest audit a-folder" in card and "nan" not in card and "permutation/" not in card
