"""What a notebook shows of results: static, escaped, short, whatever the texts and names try."""

import html.parser
import json
import math
import re
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attentest import notebook
from attentest.bench.result import MOST, StudyResult
from attentest.compare.table import SHOWN, Comparison
from attentest.corpus.example import Corpus, Example
from attentest.gallery.heatmaps import Strip
from attentest.gallery.texts import ShownText
from attentest.model.training.loop import Record
from attentest.statistics.card import Card
from attentest.statistics.record import Finding
from attentest.terminal.tables import findings_table
from tests.toys import toy_corpus, toy_model

SCRIPT = "<script>alert('1')</script>\"' onload=x"
HUGE = "x" * 10_000
HOSTILE = (SCRIPT, "\u202eabc\u2066", "\x1b[31m", HUGE, "", "&amp;")
ALLOWED = {"p", "table", "tr", "th", "td", "bdi", "mark", "small"}
HEAT_MAP = {"style", "section", "h3", "div", "figure", "figcaption", "strong", "span", "details", "summary"}
FINDING = Finding(
    experiment="importance",
    measure=SCRIPT,
    group="overall",
    estimate=0.25,
    std=0.1,
    seed_std=math.nan,
    low=0.125,
    high=0.5,
    interval="instances",
    n=1234,
    seeds=1,
    excluded=2,
    why="\u202eone token",
    null=math.nan,
    mode="corrected",
)
ABOUT = {"corpus": SCRIPT, "encoder": "bilstm", "attention": "additive", "projection": "softmax"}
CLAIM = {**ABOUT, "says": SCRIPT, "verdict": "supported", "reason": HUGE, "mode": "corrected"}
WHOLE = {"says": SCRIPT, "verdict": "mixed", "reason": HUGE}
FOUND = {**ABOUT, "experiment": "importance", "measure": "tau", "group": "overall"}
FOUND |= {"estimate": 0.25, "low": math.nan, "high": math.nan, "interval": "none", "null": 0.5, "n": 7}


class Tags(html.parser.HTMLParser):
    """The elements and attributes of a piece of HTML, and its text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.said = [], set(), set(), []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.said.append(data)


def study():
    document = {"study": "mine", "title": SCRIPT, "cells": 3, "done": 2, "skipped": []}
    document |= {
        "failed": [{"cell": "a" * 64, "error": SCRIPT}],
        "claims": [CLAIM],
        "claim_verdicts": [WHOLE],
    }
    return StudyResult(document | {"findings": [FOUND] * 100})


def corpus():
    texts = [
        Example(id=f"{n}{SCRIPT}", tokens=HOSTILE, label=SCRIPT, query=HOSTILE[:2], rationale=(1,))
        for n in range(3)
    ]
    splits = dict(zip(("train", "dev", "test"), ((text,) for text in texts), strict=True))
    return Corpus(name=SCRIPT, labels=(SCRIPT, "no"), excluded={SCRIPT: 3}, **splits)


def model():
    made = toy_model(toy_corpus())
    made.labels = (SCRIPT, "no")
    made.record = Record(scores={"test": {"accuracy": 0.875}})
    return made


def comparison():
    row = dict.fromkeys(SHOWN, SCRIPT) | {"published": 0.5, "ours": 0.25, "low": None, "high": None}
    return Comparison(title=SCRIPT, rows=[row], missing=[])


def card():
    words = dict.fromkeys(("measure", "formula", "direction", "null", "unit"), SCRIPT)
    return Card(**words, range=(0.0, 1.0), paper=HUGE, section="3", undefined_when=SCRIPT)


def heat_map():
    strips = [Strip(name=SCRIPT, weights=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1]), Strip(name="none", weights=None)]
    names = dict.fromkeys(("id", "label", "predicted"), SCRIPT)
    return ShownText(**names, tokens=HOSTILE, query=HOSTILE[:2], strips=strips, facts=[SCRIPT])


SHOWS = {
    "study": (study, ALLOWED, "2 of 3 cells"),
    "corpus": (corpus, ALLOWED, "3"),
    "text": (lambda: corpus().test[0], ALLOWED, "asked:"),
    "model": (model, ALLOWED, "0.875"),
    "finding": (lambda: FINDING, ALLOWED, "0.125 to 0.500"),
    "card": (card, ALLOWED, "0.000 to 1.000"),
    "comparison": (comparison, ALLOWED, "0.250"),
    "heat map": (heat_map, ALLOWED | HEAT_MAP, "weight:"),
}


@pytest.mark.parametrize("kind", SHOWS)
def test_what_is_shown_is_static_escaped_and_short(kind):
    make, allowed, says = SHOWS[kind]
    text = make()._repr_html_()
    seen = Tags(text)
    assert seen.tags <= allowed
    assert not {name for name in seen.attributes if name.startswith("on")} | (
        {"src", "href"} & seen.attributes
    )
    assert "url(" not in text and "@import" not in text
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", text)
    assert says in " ".join(seen.said) and len(text) < 60_000


@given(st.text(), st.lists(st.text(), max_size=5))
def test_no_text_can_open_an_element_or_turn_the_line(word, tokens):
    seen = Tags(notebook.said(word) + notebook.words(tokens, {0}) + notebook.table([word], [[word]]))
    assert seen.tags <= ALLOWED
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", "".join(seen.said))


def test_a_long_text_is_cut_and_says_so():
    shown = notebook.words(["word"] * (notebook.MANY + 5))
    assert shown.count("<bdi>") == notebook.MANY and "5 more words" in shown
    assert "(10,000 signs)" in notebook.plain(HUGE) and len(notebook.plain(HUGE)) < 300
    assert "∅" in notebook.words([""]), "an empty word can be seen"


def test_numbers_have_three_decimals_and_none_is_a_dash():
    assert [notebook.plain(value) for value in (0.12345, math.nan, 7, True)] == ["0.123", "–", "7", "True"]
    assert "–" in replace(FINDING, low=math.nan, high=math.nan)._repr_html_()


def test_a_corpus_of_many_answers_is_counted_by_split_alone():
    names = tuple(f"answer {n}" for n in range(30))
    splits = {
        split: tuple(Example(id=f"{split}{n}", tokens=("a",), label=name) for n, name in enumerate(names))
        for split in ("train", "dev", "test")
    }
    shown = Corpus(name="many", labels=names, **splits)._repr_html_()
    assert shown.count("<th") == 2 and ">30</td>" in shown


def test_an_interval_of_one_seed_says_that_it_is_of_one_training():
    said = "over texts of this one training"
    assert said in FINDING._repr_html_()
    assert said not in replace(FINDING, seeds=2, interval="seeds, instances")._repr_html_()
    document = {"title": "t", "cells": 1, "done": 1, "failed": []}
    one, two = ({**FOUND, "interval": kind} for kind in ("instances", "seeds, instances"))
    assert said in StudyResult(**document, findings=[two, one])._repr_html_()
    assert said not in StudyResult(**document, findings=[two, two])._repr_html_()
    for row, times in ((one, 1), (two, 0)):
        columns = {"seeds": 1, "excluded": 0, "why": "", "vectors": "random(0.1)", "embedding": 8}
        shown = findings_table(pd.DataFrame([row | columns]), "Mine").renderables
        assert sum(said in getattr(block, "plain", "") for block in shown) == times


def test_a_study_is_still_a_document_and_shows_the_first_findings():
    result = study()
    assert json.loads(json.dumps(result, default=str))["study"] == "mine"
    assert f"{MOST} of 100" in result._repr_html_() and result._repr_html_().count("importance/tau") == MOST
    planned = StudyResult(title="t", cells=3, done=0, failed=[], plan=[])
    assert "0 of 3 cells" in planned._repr_html_()
