"""The house tokeniser: by hand, by property, and against spaCy on every real corpus there is."""

import csv
import gzip
import json
import os
import re
import re._constants as constants
import re._parser as parser
import sys
import tarfile
from itertools import chain, islice, pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attentest.corpus import words
from attentest.corpus.words import spacy_tokenise, tokenise, tokenise_sentences
from attentest.refusal import Refusal

CASES = {
    "contractions": [
        ("I can't see, it isn't John's.", "I ca n't see , it is n't John 's ."),
        (
            "I'm sure they're late; we've said she'll call.",
            "I 'm sure they 're late ; we 've said she 'll call .",
        ),
        ("He’d go but won’t.", "He ’d go but wo n’t ."),
        ("You cannot say we're gonna win, we gotta.", "You can not say we 're gon na win , we got ta ."),
        ("Im sure he dont know.", "I m sure he do nt know ."),
        ("Its plot was well made.", "Its plot was well made ."),
        ("Stop 'em 'cause O'Neill won.", "Stop 'em 'cause O'Neill won ."),
    ],
    "abbreviations": [
        ("Mr. and Mrs. Smith met Dr. No.", "Mr. and Mrs. Smith met Dr. No ."),
        ("The U.S. team, e.g. J. Doe, won.", "The U.S. team , e.g. J. Doe , won ."),
        ("It opens at 9 a.m. in St. Louis vs. us.", "It opens at 9 a.m. in St. Louis vs. us ."),
        ("He works for NASA.", "He works for NASA ."),
    ],
    "numbers": [
        ("It costs $3.50 or 10,000 yen.", "It costs $ 3.50 or 10,000 yen ."),
        ("50% of 1/2 at 7:30, or -4.", "50 % of 1/2 at 7:30 , or -4 ."),
        ("The '90s, 1992-93, 20+ people.", "The ' 90s , 1992 - 93 , 20 + people ."),
        ("Run 10 km, 5km or 100mph at 8pm.", "Run 10 km , 5 km or 100 mph at 8 pm ."),
        ("It was 20°C then.", "It was 20 ° C then ."),
    ],
    "hyphens_and_slashes": [
        ("A well-known, 10-year-old co-star.", "A well - known , 10 - year - old co - star ."),
        ("Rated PG-13 -- really--by he/she.", "Rated PG-13 -- really -- by he / she ."),
        ("This and/or that, w/o me.", "This and/or that , w/o me ."),
    ],
    "marks": [
        ('He said: "Stop!" (twice).', 'He said : " Stop ! " ( twice ) .'),
        ("And then... nothing… at all", "And then ... nothing … at all"),
        ("“Quoted,” she wrote ‘so’ — yes!?", "“ Quoted , ” she wrote ‘ so ’ — yes ! ?"),
        ("A forgotten blank.The next,one", "A forgotten blank . The next , one"),
        ("In *bold* and _slanted_ #1 AT&T", "In * bold * and _ slanted _ # 1 AT&T"),
        ("So `` quoted '' it is", "So ` ` quoted '' it is"),
    ],
    "the_web": [
        ("See http://www.example.com/a-b/c?d=e.", "See http://www.example.com/a-b/c?d=e ."),
        (
            "Or www.example.com/x-y, or jane.doe@mail.co-op.org!",
            "Or www.example.com/x-y , or jane.doe@mail.co-op.org !",
        ),
        ("Good :) bad :-( wink ;)", "Good :) bad :-( wink ;)"),
        ("Love it🙂🙂", "Love it 🙂 🙂"),
        ("The film.<br /><br />I left", "The film.<br /><br />I left"),
        ("What a film <br />", "What a film < br / >"),
    ],
}
KINDS = [pytest.param(CASES[kind], id=kind) for kind in CASES]

RISKY = """. .. ' 's n't ’ " ( ) - -- / , % + $ @ http:// www. a A Mr. e.g. U.S. 5 km é 🙂 שלום … _ <br"""
UNSEEN = ["e\u0301", "\u200d", "\u200b", "\0"]
BLANKS = [" ", "\n", "\r\n", "\t", "\u3000", "\x1c"]
# Arbitrary text rarely holds an apostrophe next to an s: half of the examples are built of what splits.
texts = st.one_of(st.text(), st.lists(st.sampled_from([*RISKY.split(), *UNSEEN, *BLANKS])).map("".join))


@pytest.mark.parametrize("cases", KINDS)
def test_sentences_split_as_a_reader_expects(cases):
    assert [tokenise(text) for text, _ in cases] == [expected.split() for _, expected in cases]


@pytest.mark.parametrize("cases", KINDS)
def test_spacy_splits_those_sentences_just_so(cases):
    pytest.importorskip("spacy", reason="the extra `spacy` is not installed")
    assert [spacy_tokenise(text) for text, _ in cases] == [expected.split() for _, expected in cases]


@given(texts)
def test_only_blanks_are_lost(text):
    tokens = tokenise(text)
    assert "".join(tokens) == "".join(text.split())
    assert all(token.split() == [token] for token in tokens)


@given(texts, st.sampled_from(BLANKS), texts)
def test_a_text_may_be_cut_at_any_blank(before, blank, after):
    assert tokenise(before + blank + after) == tokenise(before) + tokenise(after)


def sentences(text):
    tokens, starts = tokenise_sentences(text)
    return [" ".join(tokens[a:b]) for a, b in pairwise([*starts, len(tokens)])]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("He left. She stayed! Why? Élan.", ["He left .", "She stayed !", "Why ?", "Élan ."]),
        (
            'He said "Go." "Why?" (Who knew?) Nobody.',
            ['He said " Go . "', '" Why ? " ( Who knew ? )', "Nobody ."],
        ),
        ("It cost 3.5 dollars. really. yes", ["It cost 3.5 dollars . really . yes"]),
        ("one line\nanother\r\n\r\n and more.\n then", ["one line", "another", "and more .", "then"]),
        ("Wait... What", ["Wait ...", "What"]),
        (" \n ", []),
        ("", []),
    ],
)
def test_a_sentence_ends_before_a_capital_or_a_quote_and_at_a_line_end(text, expected):
    assert sentences(text) == expected


@given(texts)
def test_sentences_hold_the_same_tokens_and_none_is_empty(text):
    tokens, starts = tokenise_sentences(text)
    assert tokens == tokenise(text)
    assert starts[:1] == [0][: len(tokens)]
    assert all(a < b for a, b in pairwise([*starts, len(tokens)]))


def repetitions(pattern):
    """Each unbounded repetition in a parsed pattern, by its kind."""
    for kind, value in pattern:
        if kind in (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT):
            yield from [str(kind)] * (value[1] is constants.MAXREPEAT)
        parts = value if isinstance(value, tuple) else [value]
        for part in chain.from_iterable(part if isinstance(part, list) else [part] for part in parts):
            if isinstance(part, parser.SubPattern):
                yield from repetitions(part)


def test_the_check_on_repetitions_sees_each_kind():
    found = repetitions(parser.parse("(?:a*|b+?(?=(?>c*+)))d?"))
    assert sorted(found) == ["MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"]


def test_no_repetition_can_be_taken_back():
    token = list(repetitions(parser.parse(words._TOKEN.pattern, re.VERBOSE)))
    assert token.count("MAX_REPEAT") == 0
    assert token.count("MIN_REPEAT") == 1  # before "n't", over letters only
    assert set(repetitions(parser.parse(words._SENTENCE_END.pattern))) == {"POSSESSIVE_REPEAT"}


UNITS = """a - ' . ( .( a( (. 's a's n' n't 1 1. 1.. 5+ a- a. A. http:// http://.( www. a@ a@b. ." é 🙂 …"""


@pytest.mark.parametrize("unit", [*UNITS.split(), "! ", " ", "\n", "\u0301", "\0"])
def test_a_hundred_thousand_characters_of_anything_come_back(unit):
    # Quadratic time would take hours here: no clock is needed to notice.
    text = unit * (100_000 // len(unit))
    assert "".join(tokenise(text)) == "".join(tokenise_sentences(text)[0]) == "".join(text.split())


def test_without_spacy_the_refusal_names_the_extra(monkeypatch):
    words._spacy.cache_clear()
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(Refusal, match=r"pip install 'attentest\[spacy\]'"):
        spacy_tokenise("A text.")


def test_spacy_tokens_come_without_blanks(monkeypatch):
    words._spacy.cache_clear()

    def tokenizer(text):
        return [SimpleNamespace(text=part, is_space=part.isspace()) for part in re.findall(r"\s|\S+", text)]

    stand_in = SimpleNamespace(blank=lambda language: SimpleNamespace(tokenizer=tokenizer))
    monkeypatch.setitem(sys.modules, "spacy", stand_in)
    assert spacy_tokenise("two words\n") == ["two", "words"]
    words._spacy.cache_clear()


def members(archive, folder, encoding="utf-8"):
    with tarfile.open(archive) as files:
        for file in files:
            if file.isfile() and folder in file.name:
                yield files.extractfile(file).read().decode(encoding)


def rows(folder):
    with (folder / "test.csv").open(newline="", encoding="utf-8") as file:
        yield from (row[-1] for row in csv.reader(file))


def lines(file, pattern):
    for line in file.read_text(encoding="utf-8").splitlines():
        yield " ".join(re.findall(pattern, line))


def pairs(file):
    with gzip.open(file, "rt", encoding="utf-8") as texts:
        for line in texts:
            pair = json.loads(line)
            yield from (pair["sentence1"], pair["sentence2"])


REAL = {
    "sst": lambda data: lines(data / "sst/trees/dev.txt", r" ([^()]+)\)"),
    "imdb": lambda data: members(data / "imdb/aclImdb_v1.tar.gz", "/"),
    "20news": lambda data: members(data / "20news/20news-bydate.tar.gz", "rec.", "latin-1"),
    "snli": lambda data: pairs(data / "snli/snli_1.0/snli_1.0_dev.jsonl.gz"),
    "yelp": lambda data: rows(data / "yelp/yelp_review_full_csv"),
    "amazon": lambda data: rows(data / "amazon/amazon_review_full_csv"),
    "yahoo": lambda data: rows(data / "yahoo/yahoo_answers_csv"),
    "eraser": lambda data: members(data / "eraser/movies.tar.gz", "/docs/"),
    "babi": lambda data: lines(
        data / "babi/tasks_1-20_v1-2/en-10k/qa2_two-supporting-facts_test.txt", r"^\d+ ([^\t]+)"
    ),
}


def spans(tokens):
    """Where each token begins and ends, counting the characters that are not blank."""
    end = 0
    return {(end, end := end + len(token)) for token in tokens}


@pytest.mark.realdata
@pytest.mark.parametrize("corpus", REAL)
def test_tokens_agree_with_spacy_on_every_real_corpus(corpus):
    if "ATTENTEST_DATA" not in os.environ:
        pytest.skip("ATTENTEST_DATA is not set")
    pytest.importorskip("spacy", reason="the extra `spacy` is not installed")
    data = Path(os.environ["ATTENTEST_DATA"])
    if not (data / corpus).exists():
        pytest.skip(f"no {corpus} under ATTENTEST_DATA")
    shared = total = 0
    for text in islice(REAL[corpus](data), 300):
        ours, theirs = spans(tokenise(text)), spans(spacy_tokenise(text))
        shared += 2 * len(ours & theirs)
        total += len(ours) + len(theirs)
    assert total > 1000
    assert shared / total >= 0.99, f"token F1 on {corpus} is {shared / total:.4f}"
