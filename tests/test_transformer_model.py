"""Hugging Face classifiers behind the seam: texts, rows, and every road against whole recomputation."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attentest.corpus.example import Example
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.permutation import output_changes
from attentest.foreign.roads import Whole
from attentest.foreign.rows import Portions
from attentest.foreign.split import encode, units_of_offsets
from attentest.model.reader import split_logits
from attentest.model.subset import selected
from attentest.refusal import Refusal
from tests.families import FAMILIES, examples, made, own_logits, tiny, tokenizer
from tests.toys import seeded

EARLIER = {"gpt2": "position", "llama": "position"}  # what is causal goes on from one position
ROADS = {"bart": "whole", "t5": "whole", "deberta-v2": "whole", "xlnet": "whole"}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_seam_reads_what_the_tokenizer_writes_and_answers_what_the_model_answers(family):
    model = tiny(family)
    for pairs in (False, True):
        adopted, batch = made(family, model=model, pairs=pairs)
        encoded, own = own_logits(model, family, pairs)
        with torch.no_grad():
            reading = adopted.read(batch)
        assert torch.equal(reading.kept["ids"], encoded["input_ids"])
        assert torch.equal(reading.kept["present"], encoded["attention_mask"].bool())
        if "token_type_ids" in encoded:
            assert torch.equal(reading.kept["types"], encoded["token_type_ids"])
        with torch.no_grad():
            torch.testing.assert_close(adopted.decide(reading), own, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(reading.weights.sum(-1), torch.ones(4, reading.weights.shape[1]))
        assert not reading.weights.masked_fill(reading.mask[:, None], 0.0).any()
        torch.testing.assert_close(reading.scores.softmax(-1), reading.weights)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("layer", "head"), [(-1, None), (0, 1)])
def test_going_on_from_the_edit_equals_starting_again(family, layer, head):
    """The twin: any weights, many variants, by the road that was settled on and from the beginning."""
    adopted, batch = made(family, double=True, layer=layer, head=head)
    assert adopted.road.name == ROADS.get(family, "row" if layer == -1 else EARLIER.get(family, "suffix"))
    with torch.no_grad():
        reading = adopted.read(batch)
        given = torch.rand(4, 5, *reading.weights.shape[1:], generator=seeded(), dtype=torch.float64)
        fast = adopted.decide(reading, given)
        adopted.road = Whole(adopted.transformer, adopted.proof, adopted.layer, adopted.typed, adopted.tables)
        near = 1e-5 if family == "llama" else 1e-9  # a family that takes its softmax in single precision
        torch.testing.assert_close(fast, adopted.decide(reading, given), atol=near, rtol=near)
        alone = torch.stack([adopted.decide(reading, given[:, n].contiguous()) for n in range(5)], dim=1)
    torch.testing.assert_close(fast, alone, atol=near, rtol=near)
    assert (fast[:, 0] - fast[:, 1]).abs().max() > 1e-6, "the variants differ"


@pytest.mark.parametrize("layer", [-1, 1])
def test_chunks_change_nothing_but_memory(layer, monkeypatch):
    adopted, batch = made("bert", double=True, layer=layer)
    with torch.no_grad():
        reading = adopted.read(batch)
        given = torch.rand(4, 7, *reading.weights.shape[1:], generator=seeded(), dtype=torch.float64)
        together = adopted.decide(reading, given)
        monkeypatch.setattr("attentest.foreign.roads.FLOATS", 1)
        torch.testing.assert_close(adopted.decide(reading, given), together)


def test_one_head_moves_and_the_others_stay():
    """With all heads together, moving head 1 alone is what the model with that head chosen does."""
    model = tiny("bert").double()
    together, batch = made("bert", model=model)
    alone, _ = made("bert", model=model, head=1)
    with torch.no_grad():
        both, one = together.read(batch), alone.read(batch)
        torch.testing.assert_close(both.weights[:, 1], one.weights)
        moved = one.weights.flip(-1)
        given = torch.stack([both.weights[:, 0], moved], dim=1)
        torch.testing.assert_close(together.decide(both, given), alone.decide(one, moved))


def test_sub_words_are_merged_to_the_words_they_are_of():
    adopted, batch = made("bert")
    by_piece, pieces_batch = made("bert", words=False)
    three = Example(id="0", tokens=("unlikely", "dog", "walking"), label="a")
    found = encode(tokenizer("bert"), three, adopted.frames[False], words=True)
    assert (found.ids, found.units) == ([17, 18, 19, 7, 21, 20], [0, 0, 0, 1, 2, 2])
    assert batch.sentences[1].tolist() == [0, 0, 0, 1, 2, 3, 4, 5, 5]
    with torch.no_grad():
        words, parts = adopted.read(batch), by_piece.read(pieces_batch)
    torch.testing.assert_close(words.weights[1, :, 0], parts.weights[1, :, :3].sum(-1))
    torch.testing.assert_close(words.weights[1, :, 5], parts.weights[1, :, 7:9].sum(-1))
    assert words.mask.sum(1).tolist() == [4, 6, 2, 1] and parts.mask.sum(1).tolist() == [4, 9, 2, 1]


@pytest.mark.parametrize(
    ("offsets", "words"),
    [
        ([(0, 3), (4, 8), (8, 9)], [0, 1, 1]),  # blanks left out
        ([(0, 3), (3, 8), (8, 9)], [0, 1, 1]),  # a blank begins the word behind it
        ([(0, 3), (3, 4), (4, 9)], [0, 1, 1]),  # a blank of its own
        ([(0, 1), (1, 3), (3, 9)], [0, 0, 1]),
    ],
)
def test_a_blank_belongs_to_the_word_behind_it(offsets, words):
    assert units_of_offsets("the films", [(0, 3), (4, 9)], offsets) == (words, [0, 1])


@pytest.mark.parametrize(
    ("offsets", "units", "words"),
    [
        ([(0, 2), (2, 6), (7, 8)], [0, 1, 2], [0, 1, 1, 2]),  # one token runs over an ellipsis and a quote
        ([(0, 2), (2, 5), (5, 6), (6, 6)], [0, 1, 2, 3], [0, 1, 2, 3]),  # of the last word, only its blank
        ([(0, 2), (7, 8), (8, 9)], [0, 1, 1], [0, -1, -1, 1]),  # dropped; and a line's end behind the last
    ],
)
def test_every_token_has_one_unit_and_words_share_units_or_have_none(offsets, units, words):
    """The text is `so..." x` and a line's end; its words are so, ..., " and x."""
    spans = [(0, 2), (2, 5), (5, 6), (7, 8)]
    assert units_of_offsets('so..." x\n', spans, offsets) == (units, words)


def test_words_that_the_tokenizer_drops_are_no_units():
    text = Example(id="0", tokens=("the", "", "cat"), label="a")
    found = encode(tokenizer("bert"), text, made("bert")[0].frames[False], words=True)
    assert (found.ids, found.units, found.words) == ([4, 6], [0, 1], [0, -1, 1])


def test_what_rests_on_marks_stays_there_or_is_a_unit_by_flag():
    model = tiny("bert").double()
    without, batch = made("bert", model=model)
    marked, marked_batch = made("bert", model=model, special_tokens=True)
    with torch.no_grad():
        plain, whole = without.read(batch), marked.read(marked_batch)
        torch.testing.assert_close(without.decide(plain), marked.decide(whole))
    assert torch.equal(plain.kept["ids"], whole.kept["ids"]) and torch.equal(
        plain.kept["types"], whole.kept["types"]
    )
    assert whole.mask.sum(1).tolist() == [6, 8, 4, 3]
    inside = whole.weights[0, :, 1:5]
    torch.testing.assert_close(inside / inside.sum(-1, keepdim=True), plain.weights[0, :, :4])
    nothing = without.decide(plain, torch.zeros_like(plain.weights))
    assert not torch.allclose(nothing, marked.decide(whole, torch.zeros_like(whole.weights))), "marks stay"


def test_marks_of_pairs_and_their_types_survive_the_flag():
    for family in ("bert", "xlnet"):
        model = tiny(family)
        encoded, own = own_logits(model, family, pairs=True)
        adopted, batch = made(family, model=model, pairs=True, special_tokens=True)
        with torch.no_grad():
            reading = adopted.read(batch)
            assert torch.equal(reading.kept["ids"], encoded["input_ids"])
            torch.testing.assert_close(adopted.decide(reading), own, atol=1e-5, rtol=1e-5)


def test_marks_of_a_decoder_are_no_units():
    with pytest.raises(Refusal, match="special_tokens=False"):
        made("bart", special_tokens=True)


@settings(max_examples=25)
@given(st.data())
def test_a_row_divided_into_units_comes_back(data):
    places = data.draw(st.integers(1, 9))
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=places))
    unit = [n for n, size in enumerate(sizes) for _ in range(size)][:places]
    unit += [-1] * (places - len(unit))
    zero = data.draw(st.lists(st.booleans(), min_size=places, max_size=places))
    zero[0] = False  # something rests on a unit
    row = (
        torch.rand(1, 2, places, dtype=torch.float64, generator=seeded(data.draw(st.integers(0, 99)))) + 0.01
    )
    row = row.masked_fill(torch.tensor(zero), 0.0)
    row = row / row.sum(-1, keepdim=True)
    portions = Portions.of(row, torch.tensor([unit]), max(unit) + 1)
    back = portions.rows(portions.weights[:, None], torch.tensor([True, True]))
    torch.testing.assert_close(back[:, 0], row)
    torch.testing.assert_close(portions.weights.sum(-1), torch.ones(1, 2, dtype=torch.float64))


def test_some_texts_of_a_reading_are_a_reading_of_those_texts():
    adopted, batch = made("bert", double=True)
    with torch.no_grad():
        reading = adopted.read(batch)
        some = selected(reading, torch.tensor([2, 0, 2]))
        torch.testing.assert_close(adopted.decide(some), adopted.decide(reading)[[2, 0, 2]])
    assert some.weights.shape == (3, 2, 4)


def test_a_whole_split_is_read_in_the_order_of_its_examples():
    adopted, _ = made("bert")
    _, own = own_logits(adopted.transformer, "bert")
    torch.testing.assert_close(split_logits(adopted, adopted.split(examples())), own, atol=1e-5, rtol=1e-5)


def test_weights_of_another_batch_are_refused():
    adopted, batch = made("bert")
    with pytest.raises(Refusal, match="cannot be given to another"):
        adopted.decide(adopted.read(batch), torch.rand(4, 2, 3))


def test_a_pass_unlike_the_proven_one_is_refused():
    """As when a model turns to another attention for long texts: no edit would be reached."""
    adopted, batch = made("xlnet")
    reading = adopted.read(batch)
    taken = adopted.transformer.transformer.layer.pop(2)
    with pytest.raises(Refusal, match=r"2 calls of attention.*the 3 of the proof"):
        adopted.read(batch)
    with pytest.raises(Refusal, match="2 calls of attention"):
        adopted.decide(reading)
    adopted.transformer.transformer.layer.append(taken)
    adopted.decide(adopted.read(batch))


def test_the_model_is_left_as_it_was():
    adopted, batch = made("bert")
    _, own = own_logits(adopted.transformer, "bert")
    gradients(adopted, batch, free=True)
    output_changes(adopted, adopted.read(batch), 3, rng=seeded())
    assert torch.equal(own_logits(adopted.transformer, "bert")[1], own)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in adopted.transformer.modules())
    assert adopted.transformer.config.num_hidden_layers == 3


@pytest.mark.parametrize("choice", [{"layer": 3}, {"layer": -4}, {"head": 2}])
def test_a_layer_or_head_that_is_not_there_is_refused(choice):
    with pytest.raises(Refusal, match="a model with"):
        made("bert", **choice)
