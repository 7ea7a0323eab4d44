"""Causal language models behind the seam: what comes next, under any attention, by every road."""

import pytest
import torch

from attentest.auditing.run import in_memory
from attentest.corpus.example import Example
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients, per_unit
from attentest.evidence.importances.presence import answers_to_parts, explained
from attentest.foreign.loading import adopt
from attentest.foreign.prompt import Prompt
from attentest.foreign.prompted import PromptedInput
from attentest.foreign.resting import resting_of
from attentest.foreign.roads import TransformerReading, Whole
from attentest.model.subset import selected
from attentest.refusal import Refusal
from tests.families import (
    CAUSAL,
    PROMPT,
    TEXTS,
    VOCABULARY,
    made_causal,
    tiny_causal,
    tokenizer,
    trained_pieces,
)
from tests.toys import seeded


def own_logits(model, texts):
    """The model's own logits of every token behind each text, one text at a time and so without padding."""
    read = tokenizer("gpt2")
    with torch.no_grad():
        return torch.stack([model(**read(text, return_tensors="pt")).logits[0, -1] for text in texts])


@pytest.mark.parametrize("family", CAUSAL)
def test_behind_a_prompt_the_model_answers_with_its_own_logits_of_the_labels(family):
    model = tiny_causal(family)
    adopted, batch = made_causal(family, model=model)
    wanted = own_logits(model, [PROMPT.replace("{text}", text) for text in TEXTS])
    with torch.no_grad():
        reading = adopted.read(batch)
        logits = adopted.decide(reading)
    labels = [VOCABULARY["good"], VOCABULARY["bad"]]
    torch.testing.assert_close(logits, wanted[:, labels], atol=1e-5, rtol=1e-4)
    assert adopted.labels == ("good", "bad") and adopted.proof.rule == "last"
    assert reading.mask.sum(1).tolist() == [4, 6, 2, 1], "units are the words of the text alone"
    torch.testing.assert_close(reading.weights.sum(-1), torch.ones(4, reading.weights.shape[1]))


@pytest.mark.parametrize("family", CAUSAL)
def test_the_next_token_against_all_others_has_the_probability_the_model_gives_it(family):
    model = tiny_causal(family)
    adopted, batch = made_causal(family, task="next-token", model=model)
    wanted = own_logits(model, TEXTS).softmax(-1).amax(-1)
    with torch.no_grad():
        found = adopted.decide(adopted.read(batch)).softmax(-1)
    torch.testing.assert_close(found[:, 0], wanted, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.sum(1), torch.ones(4))


@pytest.mark.parametrize("family", CAUSAL)
@pytest.mark.parametrize(("layer", "head"), [(-1, None), (0, 1)])
def test_an_edit_answers_as_if_the_model_were_read_from_the_beginning(family, layer, head):
    """The twin: other weights, many variants, texts longer than a window, by both roads."""
    windowed = "sliding_window" in CAUSAL[family][2]  # in double such rows of padding are NaN by themselves
    near = 1e-4 if windowed else 1e-5  # families take their softmax in single precision
    adopted, batch = made_causal(family, double=not windowed, layer=layer, head=head)
    with torch.no_grad():
        reading = adopted.read(batch)
        given = torch.rand(4, 5, *reading.weights.shape[1:], generator=seeded()).to(reading.weights)
        fast = adopted.decide(reading, given)
        assert adopted.road.name == ("row" if layer == -1 else "position")
        adopted.road = Whole(adopted.transformer, adopted.proof, adopted.layer, adopted.typed, adopted.tables)
        torch.testing.assert_close(fast, adopted.decide(reading, given), atol=near, rtol=near)
    assert (fast[:, 0] - fast[:, 1]).abs().max() > 1e-2, "the variants differ"


def test_the_token_that_is_asked_about_stays_when_the_text_is_changed():
    """Without a word another token may be likelier: what is decided is still the first text's."""
    adopted, batch = made_causal(task="next-token")
    asked = batch.query[torch.arange(4), batch.query_mask.sum(1) - 1]
    shorter = made_causal(task="next-token", texts=("cat sat far", "dog ran home today walking", "film", "a"))
    with torch.no_grad():
        other = adopted.read(shorter[1]).kept["target"]
        kept = adopted.read(batch).kept["target"]
    assert torch.equal(kept, asked) and not torch.equal(kept, other)


def test_the_token_is_explained_even_where_the_others_together_are_likelier():
    """The likeliest of all tokens has seldom half of the probability."""
    adopted, batch = made_causal(task="next-token", model=tiny_causal(scale=0.1))
    found = gradients(adopted, batch)
    own = adopted.decide(found.reading).softmax(-1)
    assert (own[:, 0] < 0.5).all() and explained(adopted, found.reading).predicted.tolist() == [0] * 4
    torch.testing.assert_close(explained(adopted, found.reading).probability, own[:, 0])
    embeddings = found.reading.embeddings.clone().requires_grad_()
    again = adopted.decide(adopted.read(batch, embeddings=embeddings), found.reading.weights)
    (slope,) = torch.autograd.grad(again.softmax(-1)[:, 0].sum(), embeddings)
    wanted = per_unit(adopted, found.reading, (slope * embeddings).sum(-1).detach())
    torch.testing.assert_close(found.signed, wanted)
    left, fall = leave_one_out(adopted, found.reading), torch.zeros_like(wanted)
    for text, unit in found.reading.mask.nonzero().tolist():
        alone = selected(found.reading, torch.tensor([text]))
        kept = alone.mask[:, None].clone()
        kept[..., unit] = False
        answer = answers_to_parts(adopted, alone, kept)
        fall[text, unit] = own[text, 0] - answer[0, 0]
    several = found.reading.mask.sum(1) > 1
    torch.testing.assert_close(left.fall[several], fall[several], atol=1e-5, rtol=1e-4)


def test_what_really_follows_is_asked_about_where_the_user_has_it():
    adopted, _ = made_causal(task="next-token")
    text = Example(
        id="0", tokens=("the", "cat"), label="", query=("sat", "far"), text="the cat", query_text=" sat"
    )
    batch = adopted.split([text]).batch([0])
    assert batch.query.tolist() == [[VOCABULARY["sat"]]]
    with torch.no_grad():
        wanted = own_logits(adopted.transformer.causal, ["the cat"]).softmax(-1)[0, VOCABULARY["sat"]]
        torch.testing.assert_close(adopted.decide(adopted.read(batch)).softmax(-1)[0, 0], wanted)


@pytest.mark.parametrize("kind", ["byte-level", "metaspace"])
@pytest.mark.parametrize(
    "template", ["Review: {text}\nSentiment:", "{text}", 'It\'s "{text}" - {query}', "so\n{text}\n"]
)
def test_a_prompt_is_tokenised_whole_and_only_its_text_is_units(kind, template):
    """Byte-level pieces and SentencePiece: nothing is lost, nothing moves, whatever joins at the borders."""
    read = tokenizer("gpt2", pieces=trained_pieces(kind))
    written = PromptedInput(read, Prompt(template))
    for number, words in enumerate((("great", "."), ("3", "stars", "!"), ("Don't", "miss", "it"))):
        second = ("he", "said") if "{query}" in template else None
        text = Example(id=str(number), tokens=words, label="", query=second)
        found = written.encode(text, words=True)
        whole = template.replace("{text}", " ".join(words)).replace("{query}", "he said")
        assert [*written.frames[True].before.ids, *found.ids, *found.query] == read(whole)["input_ids"]
        assert max(found.units) + 1 <= len(words) and len(found.units) == len(found.ids)
        own = (
            "".join(read.convert_ids_to_tokens(found.ids))
            .replace("Ġ", " ")
            .replace("▁", " ")
            .replace("[UNK]", "3")
        )
        assert own.strip().rstrip('"') == " ".join(words), "a quotation mark may join the word before it"


def test_attention_outside_the_text_stays_where_it_is():
    adopted, batch = made_causal(double=True)
    with torch.no_grad():
        reading = adopted.read(batch)
        nothing = adopted.decide(reading, torch.zeros_like(reading.weights))
        row, unit = reading.kept["row"], reading.kept["unit"]
        outside = row.masked_fill((unit >= 0)[:, None], 0.0)
        adopted.road = Whole(adopted.transformer, adopted.proof, adopted.layer, adopted.typed, adopted.tables)
        wanted = adopted.road.logits(TransformerReading.of(reading), outside[:, None])[:, 0]
    torch.testing.assert_close(nothing, wanted)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"task": "prompt", "labels": (" good", " bad")}, "no prompt"),
        ({"task": "prompt", "prompt": "no place", "labels": (" good", " bad")}, r"0 times \{text\}"),
        ({"task": "prompt", "prompt": "{text} ", "labels": ("good", "bad")}, "a blank at its end"),
        ({"task": "prompt", "prompt": "{text}"}, "0 of them.*two or more"),
        ({"task": "prompt", "prompt": "{text}", "labels": (" good", " ")}, "an empty one"),
        ({"task": "prompt", "prompt": "{text}", "labels": (" good", " good")}, "the same one twice"),
        ({"task": "prompt", "prompt": "{text}", "labels": (" good", " wonderful")}, "does not know the word"),
        (
            {"task": "prompt", "prompt": "{text}", "labels": (" unlike", " unlikely")},
            "the same first token.*rows",
        ),
        ({"task": "next-token", "labels": (" good", " bad")}, "2 of them.*none: one token"),
        ({"prompt": "{text}"}, "a prompt without a task"),
        ({}, r"a causal language model \(LlamaForCausalLM\) and no task.*task='next-token'"),
    ],
)
def test_what_makes_no_task_is_a_sentence(asked, said):
    with pytest.raises(Refusal, match=said):
        adopt(tiny_causal(), tokenizer("gpt2"), **asked)


def test_labels_of_several_tokens_are_told_apart_by_their_first_and_that_is_said():
    adopted = adopt(
        tiny_causal(), tokenizer("gpt2"), task="prompt", prompt=PROMPT, labels=(" unlikely", " walked")
    )
    assert adopted.transformer.tokens == (VOCABULARY["un"], VOCABULARY["walk"])
    assert "the first is scored" in adopted.capabilities.notes[1]
    assert adopted.placed(0, None).capabilities.notes == adopted.capabilities.notes


@pytest.mark.parametrize("numbers", ["bfloat16", "float16"])
def test_half_precision_answers_as_single_does_within_its_rounding(numbers):
    """Everything that is looked at is in single precision; only the model itself computes in half."""
    single, batch = made_causal()
    half, _ = made_causal(model=tiny_causal().to(getattr(torch, numbers)))
    with torch.no_grad():
        ours, theirs = half.read(batch), single.read(batch)
        given = theirs.weights.flip(-1).masked_fill(theirs.weights == 0, 0.0)
        moved, wanted = half.decide(ours, given), single.decide(theirs, given)
    assert {ours.weights.dtype, ours.hidden.dtype, ours.embeddings.dtype, moved.dtype} == {torch.float32}
    assert half.transformer.causal.dtype == getattr(torch, numbers) and half.road.name == "row"
    near = 0.1 if numbers == "bfloat16" else 0.01
    torch.testing.assert_close(moved, wanted, atol=near, rtol=near)
    torch.testing.assert_close(ours.weights, theirs.weights, atol=near, rtol=near)


def test_texts_that_the_prompt_has_no_place_for_are_refused():
    adopted, _ = made_causal()
    pair = Example(id="0", tokens=("cat",), label="", query=("dog",))
    with pytest.raises(Refusal, match=r"1 texts with a second text.*\{query\}"):
        adopted.split([pair])
    with pytest.raises(Refusal, match="nothing that the tokenizer takes for text"):
        adopted.split([Example(id="0", tokens=("\u00a0",), label="")])


def test_where_attention_rests_is_reported_and_the_first_token_named():
    """A prompt holds the sink; without one the first word of the text is it, and is said to be a unit."""
    adopted, batch = made_causal()
    split = adopted.split(
        [Example(id=str(n), tokens=tuple(t.split()), label="") for n, t in enumerate(TEXTS)]
    )
    found = resting_of(adopted, split)
    with torch.no_grad():
        reading = adopted.read(batch)
    row, unit = reading.kept["row"].mean(1), reading.kept["unit"]
    assert (found.token, found.is_unit, found.decides) == ("the", False, False)
    assert found.first == pytest.approx(float(row[:, 0].mean()), rel=1e-5)
    assert found.text == pytest.approx(float(row.masked_fill(unit < 0, 0.0).sum(1).mean()), rel=1e-5)
    assert found.first + found.around + found.text == pytest.approx(1.0, rel=1e-5)
    assert f"{found.first:.1%} rests on the first token ('the')" in found.sentence
    plain = made_causal(task="next-token")[0]
    first = resting_of(plain, plain.split(split.examples))
    assert first.is_unit and first.around == 0 and "a unit like any other" in first.sentence


def test_logits_that_are_no_numbers_are_refused():
    model = tiny_causal().half()
    with torch.no_grad():
        model.model.layers[1].mlp.down_proj.weight.fill_(6e4)
        model.model.layers[1].mlp.up_proj.weight.fill_(6e4)
    with pytest.raises(Refusal, match=r"llama model in float16.*NaN or infinite.*dtype='bfloat16'"):
        made_causal(model=model)


def test_a_question_that_does_not_fit_is_asked_of_fewer_texts_at_a_time():
    adopted, _ = made_causal()
    split = adopted.split([Example(id=str(n), tokens=("cat",), label="") for n in range(9)])
    asked = []

    def ask():
        asked.append(split.at_once)
        if (split.at_once or 128) > 2:
            raise torch.OutOfMemoryError("a fake")
        return "found"

    assert in_memory(split, ask) == "found" and asked == [None, 64, 32, 16, 8, 4, 2]

    def never():
        raise torch.OutOfMemoryError("a fake")

    with pytest.raises(Refusal, match=r"memory of the GPU.*one text at a time.*dtype='bfloat16'"):
        in_memory(split, never)
