"""In planted corpora the truth is where we say it is, and nowhere else."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attentest.corpus.document import Document
from attentest.corpus.generators.planted import CUES, KEYS, PLANTINGS, VALUES, Planting, documents, planted
from attentest.refusal import Refusal

Documents = Sequence[Document]
for_each_corpus = pytest.mark.parametrize("name", PLANTINGS)
POLARITY = {word: label for label, words in CUES.items() for word in words}
OTHER = {"negative": "positive", "positive": "negative"}


@cache
def usual(name: str) -> Documents:
    return tuple(planted(name))


def decisive(document: Document) -> list[str]:
    assert document.rationale is not None
    return [document.text[position] for position in document.rationale]


def reading(words: Sequence[str], query: Any) -> str:
    """The label that words speak for, by a reader who knows the rules and not how they were planted."""
    if query is not None:
        after = words[words.index(query[0]) :]
        return next(word for word in after if word in VALUES)
    votes: Counter[str] = Counter()
    for before, word in zip(["", *words], words, strict=False):
        if word in POLARITY:
            votes[OTHER[POLARITY[word]] if before == "not" else POLARITY[word]] += 1
    (winner, most), *losers = votes.most_common()
    assert not losers or losers[0][1] < most, "a tie"
    return winner


def check_the_rationale_alone_decides(texts: Documents) -> None:
    for each in texts:
        assert reading(decisive(each), each.query) == each.label, each.id


def check_the_whole_text_says_the_same(texts: Documents) -> None:
    for each in texts:
        assert reading(list(each.text), each.query) == reading(decisive(each), each.query), each.id


def check_all_that_speaks_is_in_the_rationale(texts: Documents) -> None:
    for each in texts:
        speaks = {*each.query, reading(each.text, each.query)} if each.query else {"not", *POLARITY}
        assert set(decisive(each)) <= speaks
        spoken = [word for word in each.text if word in speaks]
        assert each.query or spoken == decisive(each), each.id
        assert not each.query or spoken.count(each.query[0]) == 1


def check_the_rest_is_the_same_for_all_labels(texts: Documents) -> None:
    """What stands outside the rationale differs between labels no more than between shuffled labels."""
    rng = np.random.default_rng(0)
    rest = [
        Counter(w for n, w in enumerate(d.text) if n not in set(d.rationale or ()))
        + Counter({"len": len(d.text)})
        for d in texts
    ]
    words = sorted(set().union(*rest))
    table = np.array([[count[word] for word in words] for count in rest])
    labels = np.array([each.label for each in texts])

    def variation(labels: np.ndarray) -> float:
        one = table[labels == labels[0]].sum(0)
        two = table[labels != labels[0]].sum(0)
        return float(np.abs(one / one.sum() - two / two.sum()).sum() / 2)

    shuffled = [variation(rng.permutation(labels)) for _ in range(200)]
    assert variation(labels) <= 1.1 * max(shuffled)


def relabelled(document: Document) -> Document:
    others = VALUES if document.query else tuple(OTHER)
    return replace(document, label=next(label for label in others if label != document.label))


def with_a_hidden_cue(document: Document) -> Document:
    if document.query:
        return replace(document, text=(document.query[0], *document.text), rationale=shifted(document, 1))
    opposite = CUES[OTHER[document.label]]
    return replace(document, text=opposite * 9 + tuple(document.text), rationale=shifted(document, 27))


def with_a_leak(document: Document) -> Document:
    leak = "w000" if document.label in ("positive", "yellow") else "w001"
    return replace(document, text=(*document.text, leak, leak))


def shifted(document: Document, by: int) -> tuple[int, ...]:
    return tuple(position + by for position in document.rationale or ())


CHECKS = (
    check_the_rationale_alone_decides,
    check_the_whole_text_says_the_same,
    check_all_that_speaks_is_in_the_rationale,
    check_the_rest_is_the_same_for_all_labels,
)


@for_each_corpus
@pytest.mark.parametrize("check", CHECKS)
def test_planted_corpora_pass(check: Callable[[Documents], None], name: str) -> None:
    check(usual(name))


@for_each_corpus
@pytest.mark.parametrize(
    "check, mutant",
    [
        (check_the_rationale_alone_decides, relabelled),
        (check_all_that_speaks_is_in_the_rationale, with_a_hidden_cue),
        (check_the_rest_is_the_same_for_all_labels, with_a_leak),
    ],
)
def test_the_checks_can_fail(
    check: Callable[[Documents], None], mutant: Callable[[Document], Document], name: str
) -> None:
    with pytest.raises(AssertionError):
        check([mutant(each) for each in usual(name)])


def test_the_whole_text_can_say_something_else() -> None:
    hidden = [with_a_hidden_cue(each) for each in planted("planted-majority", train=5)]
    with pytest.raises(AssertionError):
        check_the_whole_text_says_the_same(hidden)


@st.composite
def plantings(draw: st.DrawFn) -> Planting:
    rule = draw(st.sampled_from(("keyword", "majority", "keyvalue")))
    probability = st.floats(0, 1)
    sizes = {split: draw(st.integers(1, 12)) for split in ("train", "dev", "test")}
    return Planting(
        rule=rule,
        balance=draw(st.floats(0.01, 0.99)),
        mean_length=draw(st.integers(9, 60)),
        noise_words=draw(st.integers(1, 2000)),
        cue_rate=draw(probability),
        negation=0.0 if rule == "keyvalue" else draw(probability),
        seed=draw(st.integers(0, 2**63)),
        **sizes,
    )


@given(planting=plantings())
@settings(max_examples=60, deadline=None)
def test_whatever_the_parameters_the_rationale_decides(planting: Planting) -> None:
    texts = list(documents(planting))
    for check in CHECKS[:3]:
        check(texts)
    assert texts == list(documents(planting))
    assert Counter(each.split for each in texts) == {
        s: getattr(planting, s) for s in ("train", "dev", "test")
    }
    assert len({each.id for each in texts}) == len(texts)


@for_each_corpus
def test_another_seed_plants_another_corpus_and_a_split_stands_alone(name: str) -> None:
    other, short = planted(name, seed=1, train=100), list(planted(name, train=10))
    assert sum(one.text == two.text for one, two in zip(usual(name), other, strict=False)) < 5
    assert list(usual(name)[2000:]) == short[10:]


@for_each_corpus
@pytest.mark.parametrize("balance, strength", [(0.5, 1.0), (0.2, 1.0), (0.2, 0.7)])
def test_the_balance_holds_at_every_cue_strength(name: str, balance: float, strength: float) -> None:
    texts = list(planted(name, balance=balance, cue_strength=strength, train=600))
    labels = Counter(each.label for each in texts)
    assert labels[max(labels)] == round(balance * len(texts))
    others = [labels[label] for label in labels if label != max(labels)]
    assert max(others) - min(others) <= 3, "one in each split"


@for_each_corpus
@pytest.mark.parametrize("strength", [0.0, 0.5, 0.8, 1.0])
def test_the_cues_agree_with_the_label_as_often_as_their_strength_says(name: str, strength: float) -> None:
    texts = list(planted(name, cue_strength=strength, train=600))
    agree = np.mean([reading(decisive(each), each.query) == each.label for each in texts])
    # Four standard errors; none at strengths 0 and 1, where there is no chance.
    assert agree == pytest.approx(strength, abs=4 * np.sqrt(strength * (1 - strength) / len(texts)))


@for_each_corpus
def test_lengths_and_noise_are_as_asked(name: str) -> None:
    texts = list(planted(name, mean_length=40, noise_words=50))
    assert np.mean([len(each.text) for each in texts]) == pytest.approx(40, rel=0.02)
    noise = Counter(word for each in texts for word in each.text if word.startswith("w0"))
    assert len(noise) == 50
    assert noise["w000"] / noise["w009"] == pytest.approx(10, rel=0.15), "Zipf: the tenth a tenth as often"


def test_a_keyword_stands_alone_and_anywhere() -> None:
    places = [each.rationale[0] / len(each.text) for each in usual("planted-keyword") if each.rationale]
    assert {len(each.rationale or ()) for each in usual("planted-keyword")} == {1}
    assert np.histogram(places, 4, (0, 1))[0] / len(places) == pytest.approx(0.25, abs=0.05)


def test_neither_negator_nor_cue_tells_the_label_by_itself() -> None:
    texts = usual("planted-negation")
    negated = ["not" in decisive(each) for each in texts]
    cues = [POLARITY[decisive(each)[-1]] == "positive" for each in texts]
    labels = [each.label == "positive" for each in texts]
    assert abs(np.corrcoef(negated, labels)[0, 1]) < 0.08 and abs(np.corrcoef(cues, labels)[0, 1]) < 0.08
    assert np.not_equal(negated, cues).tolist() == labels


def test_majorities_are_contested_and_never_tied() -> None:
    votes = [Counter(POLARITY[word] for word in decisive(each)) for each in usual("planted-majority")]
    assert all(each.total() % 2 for each in votes)
    assert 0.3 < np.mean([len(each) == 2 for each in votes]) < 0.9, "often both kinds, but not always"
    assert {each.total() for each in votes} >= {3, 5}, "several numbers of cues"


def test_a_key_is_one_of_several_and_its_value_comes_at_a_distance() -> None:
    for each in usual("planted-keyvalue"):
        key, value = each.rationale or (0, 0)
        assert each.query == (each.text[key],) and value - key >= 2
        assert not {*KEYS, *VALUES} & {*each.text[key + 1 : value]}, "no other pair between"
        assert sum(word in KEYS for word in each.text) == sum(word in VALUES for word in each.text) == 3
    distances = [b - a for a, b in (each.rationale or () for each in usual("planted-keyvalue"))]
    assert np.percentile(distances, 90) >= 8 and min(distances) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"balance": 0.0},
        {"balance": 1.0},
        {"balance": float("nan")},
        {"mean_length": 2},
        {"noise_words": 0},
        {"cue_strength": 1.1},
        {"cue_rate": -0.1},
        {"negation": 2.0},
        {"train": 0},
        {"dev": 0},
        {"test": -5},
        {"seed": -1},
    ],
)
def test_what_cannot_be_planted_is_refused_by_its_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(Refusal, match=f"planted corpus, {next(iter(wrong))}"):
        planted("planted-majority", **wrong)


def test_length_must_hold_every_token_the_rule_needs() -> None:
    for name, needed in {"keyword": 1, "negation": 2, "majority": 3, "keyvalue": 9}.items():
        list(planted(f"planted-{name}", mean_length=needed, train=50))
        with pytest.raises(Refusal, match=f"at least {needed} tokens"):
            planted(f"planted-{name}", mean_length=needed - 1)


def test_what_is_not_there_is_refused_with_what_there_is() -> None:
    with pytest.raises(Refusal, match="planted-keyvalue"):
        planted("planted-nonsense")
    with pytest.raises(Refusal, match="cue_strength"):
        planted("planted-keyword", strenght=0.5)
    with pytest.raises(Refusal, match="no negator"):
        planted("planted-keyvalue", negation=0.5)
    with pytest.raises(Refusal, match="keyword, majority, keyvalue"):
        Planting(rule="telepathy")
