"""Permuting a transformer's last layer, beside running the whole model for every permutation.

A random model of BERT's size. The measure is 1,000 texts x 100 permutations; on two cores the plain way would
take most of a day, so it is 20 texts, of which the plain way runs one permutation in a hundred, scaled up.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import torch

from attentest.corpus.example import Example
from attentest.evidence.permutation import output_changes, permuted
from attentest.foreign.loading import adopt
from attentest.foreign.roads import Whole
from attentest.foreign.transformer import TransformerModel
from attentest.model.batch import IndexedSplit
from attentest.model.networks.decoder import distribution
from benchmarks.made import Row, seconds

TEXTS, WORDS, PERMUTATIONS, SHARE = 20, 62, 100, 100  # 62 words and two marks are 64 places


def word_tokenizer() -> Any:
    """One token a word, for models of random weights."""
    transformers, tokenizers = (importlib.import_module(name) for name in ("transformers", "tokenizers"))
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    numbers = {word: n for n, word in enumerate((*special, *(f"w{n}" for n in range(30_000))))}
    pieces = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="[UNK]"))
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    pieces.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, numbers[name]) for name in special],
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), special, strict=True))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=pieces, **names)


def bert_sized() -> TransformerModel:
    transformers, tokenizer = importlib.import_module("transformers"), word_tokenizer()
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=len(tokenizer), num_labels=2, pad_token_id=0)
    return adopt(transformers.BertForSequenceClassification(config), tokenizer)


def causal_row() -> Row:
    """A middle layer of a Llama of 12 layers: one position on kept keys, beside the whole model."""
    transformers, tokenizer = importlib.import_module("transformers"), word_tokenizer()
    sizes = {"hidden_size": 256, "num_hidden_layers": 12, "num_attention_heads": 8, "intermediate_size": 1024}
    torch.manual_seed(0)
    causal = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=len(tokenizer), **sizes))
    asked = {"task": "prompt", "prompt": "w1 {text} w2", "labels": (" w3", " w4")}
    model = adopt(causal, tokenizer, layer=6, **asked)
    texts = [
        Example(id=str(n), tokens=tuple(f"w{n + 5 * word}" for word in range(WORDS)), label="")
        for n in range(TEXTS)
    ]
    batch = model.split(texts).batch(range(TEXTS))
    fast, whole = model.road, Whole(model.transformer, model.proof, model.layer, model.typed, model.tables)

    def permutations(road: Any, count: int) -> None:
        with torch.no_grad():
            model.road = fast
            reading = model.read(batch)
            model.road = road
            output_changes(model, reading, count, rng=torch.Generator().manual_seed(0))

    name = (
        f"{PERMUTATIONS} permutations, layer 6 of 12 of a causal model, {TEXTS} texts of {WORDS + 3} places"
    )
    slow, ours = (
        seconds(lambda: permutations(whole, 1), 1),
        seconds(lambda: permutations(fast, PERMUTATIONS), 2),
    )
    return (
        f"{name} (plain: 1 in {PERMUTATIONS})",
        PERMUTATIONS * slow,
        ours,
        "keys and values kept; layers above",
    )


def bert_split(model: TransformerModel, texts: int, words: int) -> IndexedSplit:
    """Texts of words drawn at random."""
    drawn = torch.randint(30_000, (texts, words), generator=torch.Generator().manual_seed(0)).tolist()
    return model.split(
        [
            Example(id=str(n), tokens=tuple(f"w{w}" for w in text), label="LABEL_0")
            for n, text in enumerate(drawn)
        ]
    )


def rows() -> list[Row]:
    if importlib.util.find_spec("transformers") is None:
        return []
    model = bert_sized()
    rng = torch.Generator().manual_seed(0)
    batch = bert_split(model, TEXTS, WORDS).batch(range(TEXTS))

    @torch.no_grad()
    def ours() -> None:
        output_changes(model, model.read(batch), PERMUTATIONS, rng=torch.Generator().manual_seed(0))

    whole = Whole(model.transformer, model.proof, model.layer, model.typed, model.tables)
    with torch.no_grad():
        reading = model.read(batch)

    @torch.no_grad()
    def plain() -> None:
        for _ in range(PERMUTATIONS // SHARE):
            order = permuted(torch.arange(WORDS).float().expand(TEXTS, -1), reading.mask, 1, rng=rng).long()
            given = reading.weights.gather(2, order.expand(-1, reading.weights.shape[1], -1))
            model.road, fast = whole, model.road
            distribution(model.decide(reading, given))
            model.road = fast

    every = model.capabilities.every_row
    assert every is not None
    one = bert_split(model, 1, WORDS).batch([0])
    around = {layer: model.placed(layer, None) for layer in (0, model.layers - 1)}

    @torch.no_grad()
    def a_layer_at_a_time() -> None:
        for placed in around.values():
            placed.read(one)

    texts = f"{TEXTS} texts of {WORDS + 2} places"
    name = f"{PERMUTATIONS} permutations, last layer of a BERT, {texts} (plain: 1 in {SHARE})"
    return [
        (name, SHARE * seconds(plain, 1), seconds(ours, 2), "reading the texts once; feed-forward layers"),
        (
            f"rows of all {model.layers} layers and heads, a text of {WORDS + 2} places (plain: 2 layers)",
            model.layers / len(around) * seconds(a_layer_at_a_time, 2),
            seconds(lambda: every.rows(one), 2),
            "one pass of the model",
        ),
        causal_row(),
    ]
