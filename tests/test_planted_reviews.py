"""The labels of planted-reviews follow from its rule, which a parser written here reads off the raw text."""

from __future__ import annotations

import os
import re
import string
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

import attentest as at
from attentest.corpus.catalogue import fingerprint, load_corpus
from attentest.corpus.document import Document
from attentest.corpus.example import Example
from attentest.corpus.files import from_files, to_files
from attentest.corpus.generators.planted_reviews import MEANINGS, ReviewSettings, review_documents
from attentest.corpus.generators.review_lexicon import DOMAINS, ELSEWHERE, GRADES, NEGATORS, SLOTS
from attentest.corpus.generators.review_rule import (
    LABELS,
    Cue,
    contributions,
    cues_of,
    deletion_effects,
    score,
)
from attentest.corpus.preparation import Preparation, prepare
from attentest.corpus.variants import DEFAULTS
from attentest.corpus.words import tokenise
from attentest.refusal import Refusal

WORDS = """
1 decent fine adequate passable satisfied satisfy reassured reassure
2 good nice solid pleasant pleased please charmed charm
3 great excellent wonderful terrific impressed impress delighted delight
4 superb outstanding perfect brilliant amazed amaze thrilled thrill
-1 bland mediocre forgettable uneven puzzled puzzle tired tire
-2 bad poor weak clumsy annoyed annoy bored bore
-3 terrible awful dreadful horrible disappointed disappoint irritated irritate
-4 abysmal atrocious disastrous unbearable disgusted disgust infuriated infuriate
"""
GRADED = {word: int(grade) for grade, *words in map(str.split, WORDS.split("\n")[1:-1]) for word in words}
ELSE = """
brother sister neighbour aunt uncle colleague flatmate cousin
popcorn cinema parking audience trailer poster queue lobby usher
packaging delivery courier shop website invoice wrapping box
"""
OTHERS = ELSE.split()
CLAUSE_END = re.compile(r"[.!;]|, and |, while ")


@cache
def reviews(**knobs: Any) -> tuple[Document, ...]:
    return tuple(review_documents(ReviewSettings(**{"train": 200, "dev": 50, "test": 50, **knobs})))


def read(text: str) -> list[tuple[str, bool, bool]]:
    """Every graded word of a raw text with whether it is negated and whether it counts, clause by clause."""
    found = []
    for clause in CLAUSE_END.split(text):
        words = clause.lower().replace("n't", " n't").replace(",", " ").split()
        counts = not set(words) & set(OTHERS)
        for place, word in enumerate(words):
            if word in GRADED:
                found.append((word, bool({"not", "n't", "never"} & set(words[:place])), counts))
    return found


def total(text: str) -> int:
    return sum(-GRADED[word] if negated else GRADED[word] for word, negated, counts in read(text) if counts)


def by_the_rule(text: str, classes: int) -> str:
    points = total(text)
    if classes == 2:
        assert points != 0, "a tie"
        return "positive" if points > 0 else "negative"
    stars = 1 if points <= -5 else 2 if points <= -2 else 3 if points <= 1 else 4 if points <= 4 else 5
    return f"{stars} star" + "s" * (stars > 1)


def marked(document: Document) -> list[str]:
    tokens = tokenise(str(document.text))
    return [tokens[place].lower() for place in document.rationale or ()]


def expected_marks(text: str) -> list[str]:
    """Cues and negators of the clauses that count, in the order of the text."""
    found: list[str] = []
    for clause in CLAUSE_END.split(text):
        words = clause.lower().replace("n't", " n't").replace(",", " ").split()
        if set(words) & set(GRADED) and not set(words) & set(OTHERS):
            found += [word for word in words if word in GRADED or word in ("not", "n't", "never")]
    return found


def accuracy_of_word_counts(**knobs: Any) -> float:
    """A logistic regression on word counts, on the test split."""
    texts = reviews(**{"train": 2000, "test": 400, **knobs})
    train, test = ([each for each in texts if each.split == split] for split in ("train", "test"))
    counts = CountVectorizer(token_pattern=r"\w+")
    model = LogisticRegression(max_iter=2000)
    model.fit(counts.fit_transform([str(each.text) for each in train]), [each.label for each in train])
    return model.score(counts.transform([str(each.text) for each in test]), [each.label for each in test])


@pytest.mark.parametrize(
    "text, points, two, five",
    [
        ("The plot is good. I found the cast superb.", 6, "positive", "5 stars"),
        ("The plot is not good.", -2, "negative", "2 stars"),
        ("The plot isn't good; the cast was never awful.", 1, "positive", "3 stars"),
        ("The screen didn't impress me, while the lid is fine!", -2, "negative", "2 stars"),
        ("The popcorn was superb, and the plot bored me.", -2, "negative", "2 stars"),
        (
            "My aunt did not call it awful. The lamp is abysmal, and the size is bad.",
            -6,
            "negative",
            "1 star",
        ),
    ],
)
def test_the_parser_reads_texts_as_a_person_would(text: str, points: int, two: str, five: str) -> None:
    assert total(text) == points and by_the_rule(text, 2) == two and by_the_rule(text, 5) == five


def test_the_lexicon_is_the_one_that_this_test_writes_out() -> None:
    assert GRADED == GRADES and set(OTHERS) == ELSEWHERE and {"not", "n't", "never"} == NEGATORS


@st.composite
def any_settings(draw: st.DrawFn) -> ReviewSettings:
    cues, distractors = draw(st.integers(2, 12)), draw(st.integers(0, 12))
    return ReviewSettings(
        classes=draw(st.sampled_from((2, 5))),
        cues=cues,
        strength=draw(st.integers(1 if cues > 4 else 3, 4)),
        distractors=distractors,
        negation=draw(st.floats(0, 1)),
        length=draw(st.integers(8 + 7 * (cues + distractors), 200)),
        domain=draw(st.sampled_from(("film", "product", "both"))),
        seed=draw(st.integers(0, 2**40)),
        train=draw(st.integers(5, 9)),
        dev=5,
        test=5,
    )


@given(chosen=any_settings())
@settings(max_examples=25, deadline=None)
def test_whatever_the_knobs_the_rule_gives_the_label_and_the_rationale(chosen: ReviewSettings) -> None:
    texts = list(review_documents(chosen))
    for each in texts:
        text = str(each.text)
        assert by_the_rule(text, chosen.classes) == each.label, text
        assert marked(each) == expected_marks(text), text
        graded = read(text)
        assert sum(counts for _, _, counts in graded) == chosen.cues
        assert sum(not counts for _, _, counts in graded) == chosen.distractors
        assert all(abs(GRADED[word]) <= chosen.strength for word, _, _ in graded)
    assert texts == list(review_documents(chosen))
    labels = Counter(each.label for each in texts if each.split == "train")
    assert max(labels.values()) - min(labels.values()) <= 1 and len(labels) == chosen.classes


def opposite(word: str) -> str:
    return next(other for other, grade in GRADED.items() if grade == -GRADED[word])


def changed(text: str, word: str, into: str) -> str:
    return re.sub(rf" {word}\b", f" {into}" if into else "", text)


@pytest.mark.parametrize("classes", [2, 5])
def test_changing_a_distractor_never_changes_the_label_and_changing_a_cue_does(classes: int) -> None:
    labels_changed = Counter()
    for each in reviews(classes=classes, distractors=2, length=60):
        text = str(each.text)
        for word, negated, counts in read(text):
            if len(re.findall(rf"\b{word}\b", text)) > 1:
                continue  # the same word also counts, or does not, elsewhere
            if not counts:
                for into in (opposite(word), ""):
                    assert by_the_rule(changed(text, word, into), classes) == each.label
                continue
            flipped = changed(text, word, opposite(word))
            contribution = -GRADED[word] if negated else GRADED[word]
            assert total(flipped) == total(text) - 2 * contribution
            if total(flipped):
                labels_changed[by_the_rule(flipped, classes) != each.label] += 1
    assert labels_changed[True] > 200


def test_flipping_the_only_cue_flips_the_label() -> None:
    for each in reviews(cues=1, distractors=0):
        (word, _, _), *_ = read(str(each.text))
        assert by_the_rule(changed(str(each.text), word, opposite(word)), 2) != each.label


def test_a_negator_flips_what_its_cue_contributes() -> None:
    assert [score([Cue("good", False)]), score([Cue("good", True)])] == [2, -2]
    for each in reviews(negation=1.0, distractors=0):
        assert all(negated for _, negated, _ in read(str(each.text)))
        without = re.sub(r"n't| not\b| never\b", "", str(each.text))
        assert total(without) == -total(str(each.text))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_as_many_cues_and_distractors_are_negated_as_asked(share: float) -> None:
    found = [
        graded
        for each in reviews(negation=share, distractors=2, length=60)
        for graded in read(str(each.text))
    ]
    for counts in (True, False):
        negated = [negated for _, negated, counting in found if counting == counts]
        assert np.mean(negated) == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / len(negated)))


@pytest.mark.parametrize("classes, noise", [(2, 0.0), (2, 0.2), (5, 0.3), (2, 1.0)])
def test_noise_is_the_share_of_labels_against_the_rule_and_classes_stay_balanced(
    classes: int, noise: float
) -> None:
    texts = reviews(classes=classes, noise=noise, train=600)
    wrong = np.mean([by_the_rule(str(each.text), classes) != each.label for each in texts])
    assert wrong == pytest.approx(noise, abs=4 * np.sqrt(noise * (1 - noise) / len(texts)))
    assert set(Counter(each.label for each in texts if each.split == "train").values()) == {600 // classes}


@pytest.mark.parametrize("length", [40, 45, 80, 200])
def test_texts_have_about_the_length_that_is_asked_for(length: int) -> None:
    words = [len(str(each.text).split()) for each in reviews(length=length)]
    assert np.mean(words) == pytest.approx(length, rel=0.05) and np.std(words) > 4


@pytest.mark.parametrize("domain, other", [("film", "product"), ("product", "film")])
def test_a_domain_talks_about_its_own_things(domain: str, other: str) -> None:
    text = " ".join(str(each.text) for each in reviews(domain=domain))
    things = {name: [thing for d in DOMAINS[name] for thing in d.things] for name in (domain, other)}
    assert all(f" {thing} " in text for thing in things[domain])
    assert not any(f" {thing} " in text for thing in things[other])


def test_strength_one_makes_every_cue_count_the_same() -> None:
    grades = Counter(abs(GRADED[w]) for each in reviews(strength=1) for w, _, _ in read(str(each.text)))
    assert set(grades) == {1}
    every = Counter(abs(GRADED[w]) for each in reviews(distractors=0) for w, _, _ in read(str(each.text)))
    assert set(every) == {1, 2, 3, 4}, "graded evidence"


def test_the_same_seed_gives_the_same_bytes_and_a_split_does_not_depend_on_the_others() -> None:
    knobs = {"train": 60, "dev": 20, "test": 20}
    one, same, other = (load_corpus("planted-reviews", seed=seed, **knobs) for seed in (0, 0, 1))
    assert to_files(one) == to_files(same)
    assert not {e.tokens for e in one.train} & {e.tokens for e in other.train}
    assert load_corpus("planted-reviews", **(knobs | {"train": 30})).test == one.test


def test_the_same_seed_gives_the_same_texts_in_every_process() -> None:
    code = "from attentest.corpus.catalogue import fingerprint; print(fingerprint('planted-reviews'))"
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert said == {fingerprint("planted-reviews") + "\n"}


def test_reviews_read_like_english() -> None:
    texts = [str(each.text) for each in reviews(train=1000, length=60)]
    for text in texts:
        assert text == " ".join(text.split()) and not set(text) - set(string.ascii_letters + " .,;!'"), text
        for sentence in re.split(r"(?<=[.!]) ", text):
            assert sentence[0].isupper() and sentence[-1] in ".!" and len(sentence.split()) >= 3, text
    vocabulary = Counter(token.lower() for text in texts for token in tokenise(text))
    assert len(vocabulary) >= 150 and len(set(texts)) == len(texts)


def test_neutral_sentences_have_no_word_that_the_rule_knows() -> None:
    fillers = [line for d in DOMAINS["both"] for line in (*d.openings, *d.neutral)]
    nouns = [
        noun for d in DOMAINS["both"] for own in d.things.values() for noun in (*own, *d.aspects, *d.things)
    ]
    words = {
        word
        for line in (*fillers, *nouns, *(w for s in SLOTS.values() for w in s))
        for word in tokenise(line)
    }
    assert not {word.lower() for word in words} & {*GRADED, *OTHERS, "not", "n't", "never", "but"}


def test_words_outside_the_rationale_say_nothing_about_the_label() -> None:
    texts = reviews(train=2000)
    tokens = [tokenise(str(each.text)) for each in texts]
    rest = [
        Counter(w.lower() for n, w in enumerate(words) if n not in set(each.rationale or ()))
        for words, each in zip(tokens, texts, strict=True)
    ]
    names = sorted(set().union(*rest))
    table = np.array([[count[name] for name in names] for count in rest])
    labels = np.array([each.label for each in texts])

    def difference(of: np.ndarray) -> float:
        one, two = (table[of == label].sum(0) for label in LABELS[2])
        return float(np.abs(one / one.sum() - two / two.sum()).sum() / 2)

    rng = np.random.default_rng(0)
    assert difference(labels) <= 1.1 * max(difference(rng.permutation(labels)) for _ in range(100))


def test_word_counts_suffice_only_without_negation_and_distractors() -> None:
    assert accuracy_of_word_counts(negation=0.0, distractors=0) > 0.95
    assert accuracy_of_word_counts(negation=0.0, distractors=0, noise=0.5) == pytest.approx(0.5, abs=0.1)
    assert accuracy_of_word_counts(negation=0.5, distractors=0) < 0.65
    assert accuracy_of_word_counts(negation=0.0, distractors=3, length=60) < 0.9


@pytest.mark.parametrize("lower, tokeniser", [(True, "words"), (False, "words"), (True, "spacy")])
def test_preparation_keeps_the_rationale_where_it_was(lower: bool, tokeniser: str) -> None:
    if tokeniser == "spacy":
        pytest.importorskip("spacy")
    corpus = prepare("reviews", reviews(), Preparation(lower=lower, tokeniser=tokeniser))
    texts = {each.id: str(each.text) for each in reviews()}
    for example in corpus.test:
        words = [example.tokens[place].lower() for place in example.rationale or ()]
        assert words == expected_marks(texts[example.id])


@pytest.mark.parametrize("classes", [2, 5])
def test_contributions_survive_the_store_and_sum_to_the_score(classes: int) -> None:
    corpus = load_corpus("planted-reviews", classes=classes, negation=0.5, train=50, dev=20, test=100)
    files = to_files(corpus)
    again = from_files(lambda name: files[name])
    assert again == corpus and to_files(again) == files
    assert corpus.labels == LABELS[classes] and corpus.test[0].sentences
    for example in again.test:
        given, effects = contributions(example), deletion_effects(example)
        assert len(given) == len(effects) == len(example.tokens)
        assert by_the_rule(" ".join(example.tokens), classes) == example.label
        assert sum(given) == score(cues_of(example)) == total(" ".join(example.tokens))
        assert {place for place, effect in enumerate(effects) if effect} == set(example.rationale or ())
        assert [abs(given[p]) for p in example.rationale or () if given[p]] == [
            abs(GRADED[cue.word]) for cue in cues_of(example)
        ]
        for place in example.rationale or ():
            shorter = " ".join((*example.tokens[:place], *example.tokens[place + 1 :]))
            assert effects[place] == total(" ".join(example.tokens)) - total(shorter)


def test_contributions_of_other_texts_are_refused() -> None:
    example = Example(id="a", tokens=("a", "fine", "film"), label="x", rationale=(2,))
    with pytest.raises(Refusal, match="marked word 'film'"):
        contributions(example)
    with pytest.raises(Refusal, match="no marked words"):
        deletion_effects(replace(example, rationale=None))


@pytest.mark.parametrize(
    "knobs, said",
    [
        ({"classes": 3}, "classes: got 3, but needs 2 or 5"),
        ({"cues": 0}, "cues: got 0, but needs a number from 1 to 12"),
        ({"cues": 13}, "cues: got 13"),
        ({"strength": 5}, "strength: got 5, but needs a number from 1 to 4"),
        ({"strength": 0}, "strength: got 0"),
        ({"distractors": -1}, "distractors: got -1, but needs a number from 0 to 12"),
        ({"negation": 1.5}, "negation: got 1.5, but needs a share from 0 to 1"),
        ({"negation": "nan"}, "negation: got nan"),
        ({"noise": -0.1}, "noise: got -0.1"),
        ({"domain": "books"}, "domain: got books, but needs one of film, product, both"),
        ({"train": 1}, "train: got 1, but needs at least one text of every class"),
        ({"seed": -1}, "seed: got -1, but needs 0 or more"),
        ({"length": 10}, "length: got 10, but needs at least 36 words"),
        ({"classes": 5, "cues": 1}, "cues: got 1, but needs cues times strength to be at least 5"),
        ({"cues": 2.5}, "cues: got '2.5', but needs a whole number"),
        ({"cues": True}, "cues: got 'True', but needs a whole number"),
        ({"negations": 0.5}, "parameter of planted-reviews, 'negations'"),
    ],
)
def test_knobs_that_no_review_can_have_are_refused_in_a_sentence(knobs: dict[str, Any], said: str) -> None:
    with pytest.raises(Refusal, match=re.escape(said)):
        load_corpus("planted-reviews", **knobs)


def test_every_knob_has_a_meaning() -> None:
    assert MEANINGS.keys() == vars(ReviewSettings()).keys()


def test_the_guide_shows_texts_of_the_corpus_and_every_parameter_with_its_default() -> None:
    guide = (Path(__file__).parents[1] / "docs" / "guides" / "your-data.md").read_text(encoding="utf-8")
    shown = [
        " ".join(text.replace("**", "").split())
        for text in re.findall(r'^\* \*.*?"(.*?)"$', guide, re.M | re.S)
    ]
    made = {
        str(e.text) for classes in (2, 5) for e in review_documents(ReviewSettings(classes=classes, train=5))
    }
    assert len(shown) == 3 and set(shown) <= made
    rows = re.findall(r"^\| (`[a-z`, ]+`) \| ([\w., ]+) \|", guide.partition("## Planted reviews")[2], re.M)
    said = {
        name.strip("`"): value
        for names, values in rows
        for name, value in zip(names.split(", "), values.split(", "), strict=True)
    }
    assert said == {
        name: f"{default:g}" if name == "noise" else str(default) for name, default in DEFAULTS.items()
    }


@pytest.mark.slow
def test_a_small_bilstm_learns_the_default() -> None:
    model = at.train(load_corpus("planted-reviews"), hidden=32, embedding=32, learning_rate=0.01, epochs=4)
    assert model.record.scores["test"]["accuracy"] > 0.9
