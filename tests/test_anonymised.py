"""Texts without some of their words: what is left, where it stands, and who reads it."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attentest as at
from attentest.bench.corpora import corpus_cell
from attentest.bench.plan import Planner
from attentest.bench.verbs import run_study
from attentest.corpus.anonymised import NOTHING, anonymised
from attentest.corpus.example import Corpus, Example
from attentest.corpus.files import to_files
from attentest.corpus.vocabulary import UNK, Vocabulary
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.experiments.contract import AbstractExperiment, InMemory, Subject
from attentest.experiments.observers import EXPERIMENTS
from attentest.model.batch import IndexedSplit, sentence_numbers
from attentest.model.config import ModelConfig
from attentest.model.text_rows import text_rows
from attentest.model.training.building import build
from attentest.model.training.loop import Training
from attentest.refusal import Refusal
from attentest.store.store import Store
from tests.toy_study import conclude_kin, kin_conclusion, toml
from tests.toys import toy_corpus, toy_model

CUES = "awful bad poor fine good great"
SMALL = {"encoder": "average", "hidden": 16, "embedding": 12, "epochs": 3, "learning_rate": 0.01}


def corpus_of(*texts, **more):
    """The same texts in every split."""

    def split(name):
        return tuple(
            Example(id=f"{name}-{n}", tokens=tuple(text.split()), label="no", **more)
            for n, text in enumerate(texts)
        )

    return Corpus(
        name="own", labels=("no", "yes"), train=split("train"), dev=split("dev"), test=split("test")
    )


def test_words_are_gone_from_every_split_whatever_their_case():
    found = anonymised(corpus_of("She said he ran", "nobody"), "he she")
    for examples in found.splits().values():
        assert [e.tokens for e in examples] == [("said", "ran"), ("nobody",)]


def test_positions_are_counted_anew():
    corpus = corpus_of("he ran . she sat . he he . the end", rationale=(1, 3, 4, 10), sentences=(0, 3, 6, 9))
    (text,) = anonymised(corpus, "he she .").test
    assert text.tokens == ("ran", "sat", "the", "end")
    assert text.rationale == (0, 1, 3)
    assert text.sentences == (0, 1, 2)  # the third sentence has nothing left
    assert sentence_numbers(text).tolist() == [0, 1, 2, 2]


def test_a_rationale_can_be_cut_out():
    (text,) = anonymised(corpus_of("a b c d", rationale=(1, 2)), "<rationale>").test
    assert text.tokens == ("a", "d") and text.rationale == ()
    with pytest.raises(Refusal, match="nobody marked anything"):
        anonymised(corpus_of("a b"), "<rationale>")


def test_a_text_of_which_nothing_is_left_is_one_unknown_word_and_counted():
    corpus = corpus_of("he he she", "he ran", rationale=(0,), sentences=(0, 2))
    found = anonymised(corpus, "he she")
    text = found.test[0]
    assert text.tokens == (NOTHING,) and text.rationale == () and text.sentences == (0,)
    assert Vocabulary.build(corpus.train).numbers(text.tokens).tolist() == [UNK]
    assert found.preparation == {"omit": "he she", "emptied": 3}  # one in each split


def test_nothing_to_omit_is_the_corpus_itself_and_twice_is_once(planted):
    assert anonymised(planted, "") is planted
    once = anonymised(planted, CUES)
    assert anonymised(once, CUES) is once
    assert once.labels == planted.labels and once.counts() == planted.counts()
    untouched = [e for e in planted.test if not set(e.tokens) & set(CUES.split())]
    by_id = {e.id: e for e in once.test}
    assert all(by_id[e.id] is e for e in untouched)


letters = st.lists(st.sampled_from("abc"), min_size=1, max_size=9)


@given(letters, st.sets(st.sampled_from("abc"), min_size=1, max_size=2), st.data())
def test_what_is_left_keeps_its_order_its_marks_and_its_sentence(tokens, omit, data):
    places = st.sets(st.integers(0, len(tokens) - 1))
    rationale, begins = tuple(sorted(data.draw(places))), tuple(sorted(data.draw(places)))
    corpus = corpus_of(" ".join(tokens), rationale=rationale, sentences=begins)
    (before,), (after,) = corpus.test, anonymised(corpus, " ".join(omit)).test
    left = [n for n, token in enumerate(tokens) if token not in omit]
    assert list(after.tokens) == ([tokens[n] for n in left] or [NOTHING])
    assert [left[n] for n in after.rationale] == [n for n in rationale if n in left]
    if left:
        whole, cut = sentence_numbers(before)[left], sentence_numbers(after)
        assert [whole[n] == whole[n - 1] for n in range(1, len(left))] == [
            cut[n] == cut[n - 1] for n in range(1, len(left))
        ]


# --- who meets it


def test_a_model_without_the_deciding_words_learns_nothing(planted):
    whole, blind = (at.train(planted, omit=omit, **{**SMALL, "epochs": 8}) for omit in ("", CUES))
    assert whole.record.scores["test"]["accuracy"] > 0.9
    assert blind.record.scores["test"]["accuracy"] < 0.7
    assert blind.vocabulary.words == whole.vocabulary.words  # the original corpus's


def test_training_and_reading_never_see_what_is_omitted(planted):
    model = at.train(planted, omit=CUES, **{**SMALL, "epochs": 1})
    training = Training(model, planted)
    hidden = {model.vocabulary.index[word] for word in CUES.split() if word in model.vocabulary.index}
    for split in (training.train, training.dev):
        assert hidden and not hidden & set(np.concatenate(split.tokens))
    cut = anonymised(planted, CUES)
    for row, text in zip(text_rows(model, planted, "test"), cut.test, strict=True):
        assert row["id"] == text.id and len(row["weights"]) == len(text.tokens)


def test_it_is_training_on_the_anonymised_corpus_with_the_whole_vocabulary(planted):
    model = at.train(planted, omit=CUES, **SMALL)
    twin = build(replace(model.config, omit=""), planted, model.vocabulary)
    record = Training(twin, anonymised(planted, CUES)).run()
    assert record.history == model.record.history and record.scores == model.record.scores


def test_log_odds_are_fitted_without_the_words_too(planted):
    model = at.train(planted, attention="log-odds", omit=CUES, **{**SMALL, "epochs": 0})
    cues = [model.vocabulary.index[word] for word in CUES.split() if word in model.vocabulary.index]
    assert (model.attention.strengths[cues] == 0).all() and model.attention.strengths.any()


@pytest.mark.parametrize("own", ["", "cat"])
def test_every_subject_has_the_texts_its_own_model_reads(own):
    corpus = toy_corpus()
    models = {"trained": toy_model(corpus, omit=own), "whole": toy_model(corpus)}
    models["blind"] = toy_model(corpus, omit="cat dog")
    subject = Subject(corpus, models["trained"].config, InMemory(models))
    for each, omit in ((subject, own), (subject.sibling["whole"], ""), (subject.sibling["blind"], "cat dog")):
        assert each.corpus.test == anonymised(corpus, omit).test
        assert each.texts.lengths.tolist() == [len(e.tokens) for e in anonymised(corpus, omit).test]
    assert isinstance(subject.texts, IndexedSplit)


def test_words_to_omit_are_checked_with_the_configuration():
    assert "omit" not in ModelConfig().spelled()
    assert ModelConfig(omit="he she").spelled() == {"omit": "he she"}
    assert ModelConfig(omit="<rationale>").omit == "<rationale>"
    for wrong in ("he, she", " "):
        with pytest.raises(Refusal, match="words with blanks between them"):
            ModelConfig(omit=wrong)
    with pytest.raises(Refusal, match="needs a string"):
        ModelConfig.of({"omit": 3})


@dataclass(frozen=True, kw_only=True)
class Kin(AbstractExperiment):
    """A sibling that omits the words that decide, imitated by one that omits them too."""

    name = "kin"
    cite = "jain2019attention"
    version = 1

    def siblings(self, config):
        blind = replace(config, omit=CUES)
        return {"blind": blind, "its adversary": replace(blind, loss="imitate(blind, 0.01)")}

    def observe(self, subject, rng):
        for name, sibling in subject.sibling.items():
            frame = sibling.readings
            lengths = [len(weights) for weights in frame["weights"]]
            wrong = sum(lengths != sibling.texts.lengths)
            yield {"subject": name, "id": "lengths", "apart": float(wrong)}


def test_a_sibling_without_words_is_trained_read_and_imitated_through_the_planner(
    tmp_path, planted, monkeypatch
):
    monkeypatch.setitem(EXPERIMENTS, "kin", Kin)
    monkeypatch.setitem(CONCLUSIONS, "kin", kin_conclusion(conclude_kin, "kin"))
    corpus = replace(planted, train=planted.train[:96], dev=planted.dev[:20], test=planted.test[:20])
    store = Store(tmp_path / "store")
    store.write(corpus_cell("planted-keyword"), to_files(corpus), {})
    path = toml(tmp_path, '[[experiment]]\nname = "kin"', corpus="planted-keyword")
    result = run_study(path, str(tmp_path / "store"), engine="inline", device="cpu")
    assert result["failed"] == [] and len(result["findings"]) == 2
    assert {row["estimate"] for row in result["findings"]} == {0.0}
    assert Planner(store).corpus("planted-keyword").key in store.done()  # one corpus serves them all
