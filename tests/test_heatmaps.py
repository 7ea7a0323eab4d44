"""Heat maps: tokens are anybody's words, weights may be anything, and strips can be compared."""

import io
import math
import re
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from attentest.gallery.heatmaps import HEATMAP_CSS, LEVELS, Strip, pair_html, strip_html
from attentest.refusal import Refusal
from attentest.terminal.tables import heat_map, pair_terminal

EVIL = [
    "<script>alert(1)</script>",
    '" onmouseover="x',
    "\u202eright\u202c",
    "\x00\x1b[2J\n",
    "&amp;",
    "\ud800",
]


class Seen(HTMLParser):
    """What a browser would make of it: elements with their attributes, and the words."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.open, self.words = [], [], []
        self.feed(html)
        self.close()
        assert not self.open, "every element is closed"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def tokens(self):
        return [a for tag, a in self.elements if tag == "bdi"]

    def warmth(self):
        return [a["class"].removeprefix("token ") for a in self.tokens()]


def shown(thing):
    console = Console(file=io.StringIO(), width=200, color_system="truecolor", force_terminal=True)
    console.print(thing)
    return console.file.getvalue()


def plain(thing):
    return re.sub(r"\x1b\[[0-9;]*m", "", shown(thing))


@given(st.lists(st.text(max_size=8), max_size=6), st.floats() | st.none())
def test_no_token_is_markup_whatever_it_holds(tokens, top):
    weights = [0.1] * len(tokens)
    html = pair_html(tokens, [Strip(name="".join(tokens), weights=weights)], query=tokens, title="t", top=top)
    seen = Seen(html + strip_html(tokens, weights, top=top))
    assert {tag for tag, _ in seen.elements} <= {
        "section", "h3", "p", "div", "span", "strong", "bdi", "figure", "figcaption"
    }  # fmt: skip
    assert {name for _, attributes in seen.elements for name in attributes} <= {"class", "title"}
    assert all(unicodedata.category(sign)[0] != "C" for sign in html)


def test_hostile_tokens_are_shown_as_words():
    seen = Seen(strip_html(EVIL, [0.1] * len(EVIL)))
    said = "".join(seen.words)
    assert "<script>alert(1)</script>" in said and '" onmouseover="x' in said and "&amp;" in said
    assert "\u202e" not in said and "\x1b" not in said and "\n" not in said
    assert len(seen.tokens()) == len(EVIL)
    terminal = plain(pair_terminal(EVIL, [Strip(name=EVIL[3], weights=[0.1] * 6)], query=EVIL, title=EVIL[2]))
    assert all(sign == "\n" or unicodedata.category(sign)[0] != "C" for sign in terminal)


def test_warmth_is_proportional_to_the_weight_on_one_scale():
    assert Seen(strip_html(list("abc"), [0.0, 0.2, 0.4])).warmth() == ["w0", "w10", "w20"]
    assert Seen(strip_html(list("abc"), [0.0, 0.2, 0.4], top=0.8)).warmth() == ["w0", "w5", "w10"]
    assert Seen(strip_html(list("ab"), [0.9, -0.1], top=0.3)).warmth() == ["w20", "w0"]
    assert [a["title"] for a in Seen(strip_html(list("ab"), [0.123456, 1e-9])).tokens()] == [
        "0.1235",
        "1e-09",
    ]


@pytest.mark.parametrize("top", [None, 0.0, -1.0, math.nan, math.inf])
def test_weights_of_nothing_are_white(top):
    assert set(Seen(strip_html(list("ab"), [0.0, 0.0], top=top)).warmth()) == {"w0"}


def test_a_weight_that_is_no_number_is_said_to_be_undefined():
    weights = [math.nan, 0.5, math.inf]
    seen = Seen(strip_html(list("abc"), weights))
    assert seen.warmth() == ["undefined", "w20", "undefined"]
    assert [a["title"] for a in seen.tokens()] == ["undefined", "0.5", "undefined"]
    assert set(Seen(strip_html(list("ab"), [math.nan] * 2)).warmth()) == {"undefined"}
    assert "a" in plain(heat_map(list("abc"), weights)) and "b" in plain(
        pair_terminal(list("abc"), [Strip(name="x", weights=weights)])
    )


def test_every_warmth_has_a_style_and_no_element_brings_its_own():
    assert all(f".strip .w{level}," in HEATMAP_CSS for level in range(LEVELS + 1))
    assert ".w0, .heatmap .key.w0 { background: rgb(255, 255, 255)" in HEATMAP_CSS
    assert ".key.w20 { background: rgb(209, 90, 0)" in HEATMAP_CSS
    assert (
        "url(" not in HEATMAP_CSS
        and "@import" not in HEATMAP_CSS
        and HEATMAP_CSS.count("{") == HEATMAP_CSS.count("}")
    )


def test_no_tokens_and_empty_tokens_can_be_seen():
    assert "a text without tokens" in strip_html([], [])
    assert "∅" in strip_html([""], [1.0])
    assert "a text without tokens" in pair_html([], [Strip(name="original", weights=[])])
    assert "original" in plain(pair_terminal([], [Strip(name="original", weights=[])]))


ROWS = [
    Strip(name="original", weights=[0.1, 0.0, 0.0, 0.0, 0.9, 0.0]),
    Strip(name="search", weights=None),
    Strip(name="exact", weights=[0.0, 0.0, 0.0, 0.0, 0.0, 0.45], change=0.00996, jsd=0.671),
]
WORDS = ["one", "two", "three", "four", "five", "six"]


def test_strips_of_a_pair_share_their_scale_their_numbers_stand_beside_them():
    html = pair_html(WORDS, ROWS, query=["who", "?"], title="SST")
    seen = Seen(html)
    assert seen.warmth() == ["w2", "w0", "w0", "w0", "w20", "w0"] + ["w0"] * 5 + ["w10"]
    said = "".join(seen.words)
    assert (
        "output changes by 0.010; JSD 0.671" in said and "not looked for" in said and "asked: who ?" in said
    )
    assert said.count("output changes") == 1 and said.endswith("0.9")


def test_runs_are_folded_only_where_every_strip_is_white():
    html = pair_html(WORDS, ROWS, collapse=2)
    assert html.count("… 3 words …") == 2 and Seen(html).warmth() == Seen(pair_html(WORDS, ROWS)).warmth()
    assert "<details" not in pair_html(WORDS, ROWS, collapse=4)
    assert "… 1 word …" in strip_html(list("ab"), [1.0, 0.0], collapse=1)
    undefined = Strip(name="odd", weights=[0.0, 0.0, math.nan, 0.0, 0.0, 0.0])
    assert "<details" not in pair_html(WORDS, [*ROWS, undefined], collapse=2), "a defect is not hidden"


def test_a_long_text_is_folded_to_what_matters():
    n = 4000
    weights = [0.5 if place in (7, 3000) else 0.0 for place in range(n)]
    html = strip_html(["word"] * n, weights, collapse=10)
    assert re.findall(r"… (\d+) words …", html) == ["2992", "999"]
    assert len(Seen(html).tokens()) == n, "folded, not lost"
    terminal = plain(
        pair_terminal([f"word{p}" for p in range(n)], [Strip(name="exact", weights=weights)], most=20)
    )
    assert "word7 " in terminal and "word3000 " in terminal and "word2999" not in terminal


def test_a_pair_in_a_terminal_shows_the_same_words_in_every_strip():
    thing = pair_terminal(WORDS, ROWS, query=["who", "?"], title="SST", most=3)
    said = plain(thing)
    lines = [line.strip() for line in said.splitlines()]
    assert lines[:3] == ["SST", "asked: who ?", "original"] and lines[-1] == "maximum weight: 0.9"
    strips = [line for line in lines if "one" in line]
    assert len(strips) == 2 and strips[0] == strips[1] and "two" not in said and "not looked for" in said
    assert "exact, output changes by 0.010, JSD 0.671" in said
    assert "48;2;209;90;0" in shown(thing), "the heaviest weight is the warmest"
    assert shown(thing).count("48;2;209;90;0") == 1, "and the other strip is on the same scale"


@pytest.mark.parametrize("weights", [[], [0.1], [0.1] * 7])
def test_weights_that_do_not_fit_the_tokens_are_refused(weights):
    for draw in (
        lambda: strip_html(WORDS, weights),
        lambda: pair_html(WORDS, [Strip(name="x", weights=weights)]),
        lambda: pair_terminal(WORDS, [Strip(name="x", weights=weights)]),
    ):
        with pytest.raises(Refusal, match="one weight for each token"):
            draw()
