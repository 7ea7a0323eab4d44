"""A Hugging Face model gets the string that the user gave: its own ids, its own answer, words by offsets."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attentest.corpus.example import Example
from attentest.corpus.raw_text import query_text, text_and_spans
from attentest.corpus.words import tokenise, word_spans
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.catalogue import Effort, explain
from attentest.evidence.importances.faithfulness import faithfulness
from attentest.foreign.loading import adopt
from attentest.foreign.transformer import TransformerModel
from attentest.refusal import Refusal
from tests.families import FAMILIES, LABELS, RAW, tiny, tokenizer, trained_pieces, transformers
from tests.toys import seeded

KINDS = ("byte-level", "metaspace", "word-piece")
OF_FAMILIES = {  # the kind of tokenizer that each family comes with
    **dict.fromkeys(("bart", "gpt2", "modernbert", "roberta"), "byte-level"),
    **dict.fromkeys(("albert", "deberta-v2", "llama", "t5", "xlnet"), "metaspace"),
    **dict.fromkeys(("bert", "distilbert", "electra"), "word-piece"),
}


def raw_examples(*, pairs=False, texts=RAW):
    """As a corpus has them: lower-cased tokens beside the raw text."""
    return [
        Example(
            id=str(n),
            tokens=tuple(token.lower() for token in tokenise(text)),
            label="abc"[n % 3],
            text=text,
            query=tuple(tokenise(RAW[-1 - n])) if pairs else None,
            query_text=RAW[-1 - n] if pairs else None,
        )
        for n, text in enumerate(texts)
    ]


def adopted(family, kind, **choice):
    own = tokenizer(family, pieces=trained_pieces(kind))
    return adopt(tiny(family, vocab_size=len(own)), own, labels=LABELS, **choice)


@given(st.text())
def test_every_word_has_its_span_in_the_raw_string(text):
    spans = word_spans(text)
    assert [text[start:end] for start, end in spans] == tokenise(text)
    covered = [place for start, end in spans for place in range(start, end)]
    assert covered == [place for place, character in enumerate(text) if not character.isspace()]


@pytest.mark.parametrize("text", RAW)
def test_the_words_of_an_example_are_found_in_its_raw_text(text):
    words = tokenise(text)
    for tokens in (words, [word.lower() for word in words], [w for w in words if w.isalnum()] or ["x"]):
        example = Example(id="0", tokens=tuple(tokens), label="a", text=text)
        assert text_and_spans(example) == (text, word_spans(text))


def test_tokens_of_another_tokeniser_keep_their_own_boundaries():
    example = Example(id="0", tokens=("It's", "great."), label="a", text=" It's  great.")
    assert text_and_spans(example) == (" It's  great.", [(1, 5), (7, 13)])


def test_tokens_without_a_raw_text_are_joined():
    example = Example(id="0", tokens=("it", "'s", "great"), label="a", query=("is", "it"))
    assert text_and_spans(example) == ("it 's great", [(0, 2), (3, 5), (6, 11)])
    assert query_text(example) == "is it" and query_text(replace(example, query=None)) is None


@pytest.mark.parametrize(
    ("family", "kind"),
    [*((f, OF_FAMILIES[f]) for f in FAMILIES), ("bert", "byte-level"), ("gpt2", "metaspace")],
)
def test_ids_and_logits_are_those_of_the_tokenizer_and_the_model(family, kind):
    model = adopted(family, kind)
    for pairs in (False, True):
        split = model.split(raw_examples(pairs=pairs))
        for row in range(len(split)):
            _same_as_called_directly(model, split, row)


@torch.no_grad()
def _same_as_called_directly(model, split, row):
    example = split.examples[row]
    texts = [example.text] if example.query is None else [example.text, example.query_text]
    encoded = model.tokenizer(*texts, return_tensors="pt")
    reading = model.read(split.batch([row]))
    assert torch.equal(reading.kept["ids"], encoded["input_ids"])
    if "token_type_ids" in encoded:
        assert torch.equal(reading.kept["types"], encoded["token_type_ids"])
    own, found = model.transformer(**encoded).logits, model.decide(reading)
    torch.testing.assert_close(found, own, atol=1e-5, rtol=1e-5)
    assert found.argmax() == own.argmax()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", RAW)
def test_words_cover_every_token_of_the_text_once(kind, text):
    """Twin: the word is looked up character by character."""
    model = adopted("bert", kind)
    split = model.split(raw_examples(texts=(text,)))
    encoded = model.tokenizer(text, return_offsets_mapping=True)
    spans, own = word_spans(text), [n for n, of in enumerate(encoded.sequence_ids(0)) if of == 0]
    words = []
    for start, _ in (encoded["offset_mapping"][n] for n in own):
        place = next((p for p in range(start, len(text)) if not text[p].isspace()), spans[-1][0])
        words.append(next(n for n, (begin, end) in enumerate(spans) if begin <= place < end))
    reading = model.read(split.batch([0]))
    units = reading.kept["unit"][0].tolist()
    assert [unit >= 0 for unit in units] == [n in own for n in range(len(units))]
    order = sorted(set(words))
    assert [units[n] for n in own] == [order.index(word) for word in words]
    assert reading.mask.sum() == len(order)
    for word, unit in enumerate(split.encoded[0].words):
        assert unit == order.index(word) if word in order else unit < order.index(max(order)) + 1


def test_deleting_a_unit_removes_its_ids_and_nothing_else(monkeypatch):
    model = adopted("roberta", "byte-level")
    split, seen = model.split(raw_examples()), []
    read = TransformerModel.read
    monkeypatch.setattr(
        TransformerModel, "read", lambda self, *a, **k: (seen.append(self.laid(a[0])), read(self, *a, **k))[1]
    )
    monkeypatch.setattr(type(model.tokenizer), "__call__", _never)
    for row, each in enumerate(split.encoded):
        reading = model.read(split.batch([row]))
        seen.clear()
        leave_one_out(model, reading)
        found = {tuple(ids[present].tolist()) for laid in seen for ids, present in _rows(laid)}
        frame = model.frames[False]
        wanted = {
            (
                *frame.before.ids,
                *(number for number, unit in zip(each.ids, each.units, strict=True) if unit != left),
                *frame.after.ids,
            )
            for left in range(max(each.units) + 1)
        }
        assert found == (wanted if max(each.units) else set())


def _rows(laid):
    return zip(laid.ids, laid.present, strict=True)


def _never(*_, **__):
    raise AssertionError("a text was tokenised again")


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_is_tokenised_twice(kind, monkeypatch):
    model = adopted("bert", kind, head=0)
    split = model.split(raw_examples())
    monkeypatch.setattr(type(model.tokenizer), "__call__", _never)
    reading = model.read(split.batch(range(len(split))))
    few = Effort(steps=2, permutations=2, samples=5)
    names = ("leave-one-out", "integrated-gradients", "shapley", "lime")
    found = explain(model, reading, rng=seeded(), effort=few, names=names)
    assert all(values.shape == reading.mask.shape for values in found.values())
    areas = faithfulness(model, reading, reading.weights[:, None]).aopc()
    assert all(area.shape == (len(split), 1) for area in areas)


def test_marks_go_to_the_units_that_hold_their_words():
    """One token of this tokenizer runs over an ellipsis and the quotation mark behind it."""
    pieces = trained_pieces("byte-level")
    pieces.add_tokens(['..."'])
    own = tokenizer("bert", pieces=pieces)
    model = adopt(tiny("bert", vocab_size=len(own)), own, labels=LABELS)
    text = 'He said "so..." twice'
    words = tokenise(text)
    example = Example(id="0", tokens=tuple(words), label="a", text=text, rationale=(5, 6))
    assert words == ["He", "said", '"', "so", "...", '"', "twice"]
    split = model.split([example])
    assert split.rationale(0).tolist() == [False, False, False, False, True, True]
    fewer = replace(example, tokens=("he", "said", "so", "twice"), rationale=(3,))
    assert len(model.split([fewer]).rationale(0)) == 0, "positions that count other words mark nothing"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", RAW)
def test_units_are_called_by_what_is_written_there(kind, text):
    split = adopted("bert", kind).split(raw_examples(texts=(text,)))
    written = split.unit_texts(0)
    assert len(written) == max(split.encoded[0].units) + 1 and all(written)
    places = [text.index(word) for word in written]
    assert places[0] == len(text) - len(text.lstrip()) and all(word in text for word in written)
    assert len("".join("".join(written).split())) <= len("".join(text.split()))


def test_sub_words_and_marks_are_called_as_the_tokenizer_calls_them():
    one = [Example(id="0", tokens=("walking", "home"), label="a")]
    for choice, wanted in (
        ({}, ("walking", "home")),
        ({"words": False}, ("walk", "##ing", "home")),
        ({"special_tokens": True}, ("[CLS]", "walking", "home", "[SEP]")),
        ({"words": False, "special_tokens": True}, ("[CLS]", "walk", "##ing", "home", "[SEP]")),
    ):
        assert (
            adopt(tiny("bert"), tokenizer("bert"), labels=LABELS, **choice).split(one).unit_texts(0) == wanted
        )


def test_blanks_alone_are_one_unit_or_nothing():
    blanks = [Example(id="0", tokens=("x",), label="a", text=" \n ")]
    assert set(adopted("bert", "byte-level").split(blanks).sentences[0].tolist()) == {0}
    with pytest.raises(Refusal, match="nothing that the tokenizer takes for text"):
        adopted("bert", "word-piece").split(blanks)


def byte_tokens(**choice):
    own = transformers.ByT5Tokenizer()
    ends = {"eos_token_id": own.eos_token_id, "decoder_start_token_id": own.pad_token_id}
    return adopt(tiny("t5", vocab_size=len(own), **ends), own, labels=LABELS, **choice)


def test_a_tokenizer_without_offsets_is_refused_or_audited_per_sub_word():
    with pytest.raises(Refusal, match=r"ByT5Tokenizer.*without offsets.*--sub-words.*'words': False"):
        byte_tokens()
    model = byte_tokens(words=False)
    for pairs in (False, True):
        split = model.split(raw_examples(pairs=pairs))
        for row, example in enumerate(split.examples):
            _same_as_called_directly(model, split, row)
            assert len(split.tokens[row]) == len(example.text.encode())


def test_special_tokens_that_depend_on_the_text_are_refused():
    model = adopted("bert", "word-piece")
    other = tokenizer("gpt2", pieces=trained_pieces("word-piece"))
    model.written.tokenizer = other
    with pytest.raises(Refusal, match="the same special tokens"):
        model.split(raw_examples())
