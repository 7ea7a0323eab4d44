"""Rationales in tables: every way of writing means the same words, and what does not fit is a sentence."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attentest.auditing.questions import BUDGETS, QUESTIONS, Auditing
from attentest.auditing.subject import audited_subject
from attentest.corpus.catalogue import load_corpus
from attentest.corpus.tables.rationale import positions, rationales
from attentest.corpus.tables.registered import register
from attentest.corpus.tables.table import read_table
from attentest.corpus.words import tokenise
from attentest.foreign.adapter import AdaptedModel
from attentest.refusal import Refusal
from tests.planted_models import LABELS, Planted, planted_texts

TEXT = "A good film, isn't it? A good film."
WORDS = tokenise(TEXT)
COLUMNS = {"text": "text", "label": "label"}


def test_the_words_of_the_example_are_counted_as_the_reader_does():
    assert WORDS == ["A", "good", "film", ",", "is", "n't", "it", "?", "A", "good", "film", "."]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("3", (3,)),
        (" 5 3 4 3 ", (3, 4, 5)),
        ("3,4, 5", (3, 4, 5)),
        ("3-6", (3, 4, 5, 6)),
        ("0-1 11", (0, 1, 11)),
        ("7-7", (7,)),
        ("[3, 4]", (3, 4)),
        ("[[3, 5], [4, 6]]", (3, 4, 5)),
        ('["isn\'t it"]', (4, 5, 6)),
        ([], ()),
        ([3, 5], (3, 5)),
        ([[3, 5]], (3, 4)),
        ([[0, 12]], tuple(range(12))),
        (["GOOD film"], (1, 2, 9, 10)),
        (["it?", "film."], (6, 7, 10, 11)),
        (["good", "a good"], (0, 1, 8, 9)),
    ],
)
def test_what_is_written_marks_these_words(written, wanted):
    assert positions(written, WORDS, tokenise) == wanted


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("12", "word 12 of a text of 12 words"),
        ("3-12", "word 12 of"),
        ([-1], "word -1 of"),
        ([[3, 13]], "word 12 of"),
        ("6-3", "a span from 6 to 4"),
        ([[4, 4]], "holds no word"),
        ("three", "'three'"),
        ("3.0", "'3.0'"),
        ("-1", "'-1'"),
        ("3--4", "'3--4'"),
        ("٣", "u0663"),
        ("[3, 4", "no list"),
        ("['film']", "no list"),
        ("9" * 5000, "digits"),
        ('{"a": 1}', "'{"),
        ({"a": 1}, "a dict"),
        (3, "a int"),
        (True, "a bool"),
        ([True], "[True]"),
        ([3.0], "[3.0]"),
        ([3, "good"], "[3, "),
        ([[3]], "[[3]]"),
        ([[3, 4], 5], "[[3, 4], 5]"),
        (["goo"], "'goo', which is no run of words"),
        (["good A"], "no run of words"),
        (["film", " "], "' ', which"),
    ],
)
def test_what_does_not_fit_is_told_with_its_row(written, says):
    with pytest.raises(Refusal, match="in row 2") as refusal:
        rationales("the column", ["1", written], [TEXT, TEXT], tokenise)
    assert says in str(refusal.value)


def test_a_column_that_marks_nothing_is_refused():
    with pytest.raises(Refusal, match="no marked word in any row"):
        rationales("the column", [None, []], [TEXT, TEXT], tokenise)


words = st.lists(st.text("abcdefgh", min_size=1, max_size=3), min_size=1, max_size=20)


@given(words, st.data())
def test_every_way_of_writing_means_the_same(text, data):
    text = tokenise(" ".join(text))
    wanted = tuple(sorted(data.draw(st.sets(st.integers(0, len(text) - 1), min_size=1))))
    runs = [run for run in np.split(wanted, np.flatnonzero(np.diff(wanted) > 1) + 1)]
    spans = [[int(run[0]), int(run[-1]) + 1] for run in runs]
    ways = [
        list(wanted),
        spans,
        " ".join(map(str, wanted)),
        ", ".join(f"{start}-{end - 1}" for start, end in spans),
        json.dumps(spans),
        str(list(wanted)),
    ]
    assert {positions(way, text, tokenise) for way in ways} == {wanted}
    marks = [" ".join(text[start:end]) for start, end in spans]
    assert set(wanted) <= set(positions(marks, text, tokenise)), "a mark may stand elsewhere, too"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=8,
)


@given(JSON | st.text("0123456789-, []\"'\n", max_size=20))
def test_whatever_is_written_is_positions_of_the_text_or_a_sentence(value):
    try:
        (found,) = rationales("the column", [value], [TEXT], tokenise)
    except Refusal as refusal:
        assert "the column" in str(refusal)
    else:
        assert found and set(found) <= set(range(len(WORDS))) and list(found) == sorted(set(found))


def marked_table(path, values):
    """Rows of one text with these marks, in the format that the name asks for."""
    rows = [{"text": TEXT, "label": "ab"[n % 2], "why": values[n % len(values)]} for n in range(12)]
    frame = pd.DataFrame(rows)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize(
    ("suffix", "values"),
    [
        ("csv", ["9-10", ""]),
        ("tsv", ["9 10", None]),
        ("jsonl", [[9, 10], None]),
        ("jsonl", [[[9, 11]], []]),
        ("jsonl", ["9-10", ""]),
        ("parquet", [[9, 10], None]),
        ("parquet", [[[9, 11]], None]),
    ],
)
def test_every_format_holds_them(tmp_path, suffix, values):
    corpus = read_table(marked_table(tmp_path / f"t.{suffix}", values), **COLUMNS, rationale="why")
    found = {example.label: example.rationale for split in corpus.splits().values() for example in split}
    assert found == {"a": (9, 10), "b": () if values[1] == [] else None}
    assert corpus.preparation["source"]["columns"] == {**COLUMNS, "rationale": "why"}
    plain = read_table(tmp_path / f"t.{suffix}", **COLUMNS)
    assert plain.train[0].rationale is None and "rationale" not in plain.preparation["source"]["columns"]


def test_marks_move_with_the_words_that_are_dropped(tmp_path):
    table = marked_table(tmp_path / "t.jsonl", [["film, isn't"]])
    example = read_table(table, **COLUMNS, rationale="why", letters_only=True).train[0]
    assert [example.tokens[place] for place in example.rationale] == ["film", "is", "n't"]


def test_the_tables_own_words_are_those_of_its_tokeniser(tmp_path):
    rows = [{"text": "-LRB- good -RRB- film", "label": "ab"[n % 2], "why": "1-2"} for n in range(12)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for settings, wanted in (({}, ["good", "-rrb-"]), ({"brackets": True}, ["good", ")"])):
        example = read_table(tmp_path / "t.jsonl", **COLUMNS, rationale="why", **settings).train[0]
        assert [example.tokens[place] for place in example.rationale] == wanted


@pytest.mark.parametrize(
    ("column", "says"),
    [("text", "the same column as"), ("because", "no column of that name"), ("label", "the same column as")],
)
def test_a_wrong_column_is_a_sentence(tmp_path, column, says):
    with pytest.raises(Refusal, match=says):
        read_table(marked_table(tmp_path / "t.csv", ["1"]), **COLUMNS, rationale=column)
    with pytest.raises(Refusal, match=r"column 'why'.*word 40 of a text of 12 words in row 1"):
        read_table(marked_table(tmp_path / "t.csv", ["40"]), **COLUMNS, rationale="why")


def test_a_registered_table_keeps_its_marks(tmp_path):
    table = marked_table(tmp_path / "t.csv", ["9-10"])
    register("mine", table, **COLUMNS, rationale="why", data_dir=tmp_path)
    assert load_corpus("mine", data_dir=tmp_path).train[0].rationale == (9, 10)


def test_plausibility_of_a_table_is_that_of_the_same_examples(tmp_path):
    texts = planted_texts(40)
    rows = [{"text": " ".join(one.tokens), "label": one.label, "why": list(one.rationale)} for one in texts]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    corpus = read_table(tmp_path / "t.jsonl", **COLUMNS, rationale="why")
    from_table = {int(one.id[4:]): one for split in corpus.splits().values() for one in split}
    model = AdaptedModel(Planted(honest=True), LABELS)
    found = []
    for examples in (texts, [from_table[number] for number in range(1, 41)]):
        audit = Auditing(audited_subject(model, examples), None, BUDGETS["quick"])
        asked = list(QUESTIONS["plausibility"].observe(audit, np.random.default_rng(0)))
        found.append([(row["token-f1"], row["auprc"], row["null_auprc"]) for row in asked])
    assert found[0] == found[1] and len(found[0]) == 40
