"""Preparation: tokens, positions, filters and splits, with the record of all of it."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attentest.corpus.document import Document
from attentest.corpus.preparation import Preparation, _sentence_starts, prepare
from attentest.corpus.words import WORDS_VERSION, tokenise, tokenise_sentences
from attentest.refusal import Refusal


def texts(count: int = 40, split=None, **changes) -> list[Document]:
    """Texts of two labels whose lengths run from 1 to `count` words."""
    return [
        replace(
            Document(id=f"{split}-{n:03d}", text="word " * (n + 1), label="ab"[n % 2], split=split),
            **changes,
        )
        for n in range(count)
    ]


def only(document: Document, preparation: Preparation):
    """What becomes of one document, among others that make it a corpus."""
    corpus = prepare("toy", [*texts(), replace(document, id="mine", label="a", split="train")], preparation)
    return next((e for e in (*corpus.train, *corpus.dev, *corpus.test) if e.id == "mine"), None)


OFFICIAL = [*texts(40, "train"), *texts(20, "dev"), *texts(20, "test")]


@pytest.mark.parametrize(
    "preparation, tokens",
    [
        (Preparation(), "the 2nd -lrb- film -rrb- , 8\\/10 ."),
        (Preparation(lower=False), "The 2nd -LRB- film -RRB- , 8\\/10 ."),
        (Preparation(digits="qqq"), "the qqq -lrb- film -rrb- , qqq ."),
        (Preparation(brackets=True), "the 2nd ( film ) , 8/10 ."),
        (Preparation(brackets=True, letters_only=True), "the 2nd film 8/10"),
        (Preparation(letters_only=True), "the 2nd -lrb- film -rrb- 8\\/10"),
    ],
)
def test_each_setting_spells_tokens_as_it_says(preparation, tokens):
    text = tuple(["The", "2nd", "-LRB-", "film", "-RRB-", ",", "8\\/10", "."])
    document = Document(id="", text=text, label="a", query=text)
    example = only(document, preparation)
    assert " ".join(example.tokens) == tokens and example.query == example.tokens


def test_brackets_are_written_out_before_a_string_is_tokenised():
    document = Document(id="", text="good -LRB- really -RRB-", label="a")
    assert only(document, Preparation(brackets=True)).tokens == ("good", "(", "really", ")")


def test_positions_follow_their_tokens_when_others_are_dropped():
    document = Document(
        id="",
        text=("...", "One", ",", "two", ".", "!", "?", "-", "Three", "."),
        label="a",
        rationale=(1, 2, 8),
        sentences=(0, 3, 5, 7),
    )
    example = only(document, Preparation(letters_only=True, keep_sentences=True))
    assert example.tokens == ("one", "two", "three")
    assert example.rationale == (0, 2)  # the comma of the rationale is gone
    assert example.sentences == (0, 1, 2)  # "! ?" was a sentence and is none any more
    assert only(document, Preparation(letters_only=True)).sentences is None
    assert only(document, Preparation(keep_sentences=True)).sentences == document.sentences


@given(st.lists(st.tuples(st.sampled_from([",", "w"]), st.booleans(), st.booleans()), min_size=1))
def test_kept_rationale_and_sentences_are_those_a_plain_count_gives(marks):
    text = (*(f"{sign}{n}" if sign == "w" else sign for n, (sign, _, _) in enumerate(marks)), "end")
    document = Document(
        id="",
        text=text,
        label="a",
        rationale=tuple(n for n, mark in enumerate(marks) if mark[1]),
        sentences=(0, *(n for n, mark in enumerate(marks) if mark[2] and n)),
    )
    example = only(document, Preparation(letters_only=True, keep_sentences=True))
    assert [example.tokens[n] for n in example.rationale] == [
        text[n] for n in document.rationale if text[n] != ","
    ]
    ends = (*document.sentences[1:], len(text))
    firsts = [[w for w in text[a:b] if w != ","][:1] for a, b in zip(document.sentences, ends, strict=True)]
    assert [[example.tokens[n]] for n in example.sentences] == [first for first in firsts if first]


def test_sentences_of_a_string_are_found_where_its_tokens_went():
    document = Document(id="", text="... It won't do. Really!\nNo (never).", label="a")
    example = only(document, Preparation(keep_sentences=True, letters_only=True))
    assert example.tokens == ("it", "wo", "n't", "do", "really", "no", "never")
    assert example.sentences == (0, 4, 5)


def test_sentences_begin_at_the_same_characters_however_the_text_is_split():
    text = "A fine film. Really!\nNo, it won't do."
    assert _sentence_starts(text, tokenise(text)) == tokenise_sentences(text)[1] == [0, 4, 6]
    assert _sentence_starts(text, text.split()) == [0, 3, 4]


def test_sentences_are_the_same_under_another_tokeniser():
    pytest.importorskip("spacy", reason="the extra `spacy` is not installed")
    document = Document(id="", text="A fine film. Really!\nNo, it won't do.", label="a")
    ours, theirs = (
        only(document, Preparation(keep_sentences=True, tokeniser=name)) for name in ("words", "spacy")
    )
    assert (ours.tokens, ours.sentences) == (theirs.tokens, theirs.sentences)


def test_length_bounds_are_strict_and_what_they_leave_out_is_counted():
    corpus = prepare("toy", OFFICIAL, Preparation(longer_than=5, shorter_than=15))
    lengths = {len(e.tokens) for e in (*corpus.train, *corpus.dev, *corpus.test)}
    assert lengths == set(range(6, 15))
    assert corpus.excluded == {"5 tokens or fewer": 15, "15 tokens or more": 38}


def test_a_text_or_query_with_nothing_left_is_left_out_and_counted():
    empty = [
        Document(id="blank", text=" \n", label="a", split="train"),
        Document(id="marks", text="?!", label="b", split="train"),
        Document(id="query", text="some words", query=("?",), label="b", split="train"),
    ]
    corpus = prepare("toy", [*OFFICIAL, *empty], Preparation(letters_only=True))
    assert corpus.excluded == {"nothing left after preparation": 3}


def test_labels_choose_and_number_and_others_are_counted():
    odd = Document(id="odd", text="word", label="neutral", split="train")
    corpus = prepare("toy", [*OFFICIAL, odd], Preparation(), labels=("b", "a"))
    assert corpus.labels == ("b", "a") and corpus.excluded == {"label neutral": 1}
    assert prepare("toy", [*OFFICIAL, odd], Preparation()).labels == ("a", "b", "neutral")


def test_the_publishers_splits_stand_unless_they_are_pooled():
    corpus = prepare("toy", OFFICIAL, Preparation())
    assert [len(s) for s in corpus.splits().values()] == [40, 20, 20]
    pooled = prepare("toy", OFFICIAL, Preparation(pool=True, test_share=0.2, dev_share=0.25, stratified=True))
    assert [len(s) for s in pooled.splits().values()] == [48, 16, 16]
    for counts in pooled.counts().values():
        assert counts["a"] == counts["b"]


def test_only_a_split_that_is_missing_is_drawn_from_the_training_texts():
    corpus = prepare("toy", [*texts(40, "train"), *texts(20, "test")], Preparation(dev_share=0.25))
    assert [len(s) for s in corpus.splits().values()] == [30, 10, 20]
    assert all(example.id.startswith("test") for example in corpus.test)
    emptied = [*texts(40, "train"), *texts(3, "test")]
    with pytest.raises(Refusal, match="empty test split"):  # never filled up behind the user's back
        prepare("toy", emptied, Preparation(longer_than=3))


def test_a_sample_of_the_test_split_is_drawn_after_the_filters():
    corpus = prepare("toy", OFFICIAL, Preparation(test_sample=0.25, shorter_than=17))
    assert len(corpus.test) == 4 and corpus.excluded["test text outside the sample"] == 12


@pytest.mark.parametrize("stratified", [True, False])
def test_a_split_is_drawn_by_its_seed_and_not_by_the_order_of_documents(stratified):
    preparation = Preparation(stratified=stratified, test_sample=0.5)
    shuffled = random.Random(1).sample(texts(60), 60)
    assert prepare("toy", texts(60), preparation) == prepare("toy", shuffled, preparation)
    other = prepare("toy", texts(60), replace(preparation, split_seed=1))
    assert other.test != prepare("toy", texts(60), preparation).test


def test_a_rare_label_is_in_every_split_when_stratified():
    rare = [Document(id=f"rare-{n}", text="word", label="rare") for n in range(3)]
    corpus = prepare("toy", [*texts(200), *rare], Preparation(stratified=True))
    assert [counts["rare"] for counts in corpus.counts().values()] == [1, 1, 1]


def test_extreme_lengths_go_only_as_published_and_only_where_no_bound_is_set():
    lengths = {}
    for low in (None, 5):
        for mode in ("corrected", "as-published"):
            corpus = prepare("toy", OFFICIAL, Preparation(mode=mode, longer_than=low))
            lengths[low, mode] = {split: {len(e.tokens) for e in s} for split, s in corpus.splits().items()}
    assert lengths[None, "corrected"]["train"] == set(range(1, 41))
    assert lengths[None, "as-published"]["train"] == set(range(2, 40))
    assert lengths[5, "corrected"]["test"] == set(range(6, 21))
    assert lengths[5, "as-published"]["test"] == set(range(6, 20))
    assert corpus.excluded == {"5 tokens or fewer": 15, "shortest or longest of its split": 3}
    alike = [replace(document, text="same length") for document in OFFICIAL]
    assert len(prepare("toy", alike, Preparation(mode="as-published")).train) == 40


def test_everything_that_shapes_a_corpus_is_in_its_record():
    preparation = Preparation(min_df=3, digits="qqq", split_seed=7)
    record = prepare("toy", OFFICIAL, preparation, labels=("a", "b")).preparation
    assert json.loads(json.dumps(record)) == record
    assert record["words_version"] == WORDS_VERSION and record["labels"] == ["a", "b"]
    assert {name: record[name] for name in preparation.__dict__} == preparation.__dict__


@pytest.mark.parametrize(
    "documents, preparation, says",
    [
        ([], Preparation(), "no texts to train on"),
        (texts(20, label="a"), Preparation(), "one label only"),
        (OFFICIAL, Preparation(longer_than=50), "no texts to train on .80 left out: 50 tokens or fewer"),
        (texts(2), Preparation(), "2 texts to divide.*at least 3 texts"),
        (texts(4), Preparation(stratified=True), "no label with 3.*at least 3 texts of one label"),
        (OFFICIAL, Preparation(dev_share=1.5), "dev_share: got 1.5"),
        (OFFICIAL, Preparation(test_sample=0.0), "test_sample: got 0.0"),
        (OFFICIAL, Preparation(min_df=0), "min_df: got 0"),
        (OFFICIAL, Preparation(longer_than=5, shorter_than=6), "shorter_than: got 6"),
        (OFFICIAL, Preparation(tokeniser="bpe"), "tokeniser 'bpe'.*words, spacy"),
        (OFFICIAL, Preparation(mode="fast"), "mode 'fast'.*corrected, as-published"),
        ([*OFFICIAL, OFFICIAL[0]], Preparation(), "occurs twice"),
    ],
)
def test_what_cannot_become_a_corpus_is_refused(documents, preparation, says):
    with pytest.raises(Refusal, match=says):
        prepare("toy", documents, preparation)
