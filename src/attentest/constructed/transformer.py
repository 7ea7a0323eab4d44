"""BERT classifiers whose weights are set by hand, so that what their attention does is known.

The rule they follow is `TransformerRule`, in numpy. A state has four signals, each as a pair (x, -x), so that
its mean is 0. The filler makes the squares sum to the width, so that a layer norm changes nothing:

    rank    the score that the last layer's attention follows
    value   the word's evidence; at [CLS], the evidence of the text
    kind    + at words, - at [CLS] and [SEP]
    filler  what the norm still needs: nearly all of it, and the same for all words to four digits

Kind and filler come from the embedding of the token type, as if from a bias; a word without rank and value
has a vector of zeros. Were they part of the words' own vectors, a layer norm right after the embedding would
make gradient x input 0 for every word.

Layer 0: [CLS] attends uniformly to words, and words to [CLS] and [SEP], where there is nothing to bring.
Layer 1: every position attends by rank / temperature; [CLS] and [SEP] together have less than 1e-4.
The evidence reaches [CLS] by layer 1 (used) or by layer 0 (idle).

Both layers also bring `LEAK` times the kind, as a rank that the pooler adds to the evidence, because the
proof of effect refuses a model of which a layer has no effect. All words are of one kind, so the leak is the
same under any weights over the words: less than a millionth of the largest value.
Feed-forward blocks and position embeddings are 0.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from attentest.constructed.transformer_rule import LOUDEST, PRESSED, SIGNALS, WIDTH, TransformerRule
from attentest.foreign.editing import library
from attentest.foreign.loading import adopt
from attentest.foreign.transformer import TransformerModel
from attentest.model.seam import Origin
from attentest.refusal import Refusal

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
SIGNAL = 0.03  # the size of a signal in the vector of a word; the filler has sqrt(WIDTH / 2) = 2
FILLER = np.sqrt(WIDTH / 2 - SIGNAL**2)
LEAK = 2e-7  # evidence that every layer brings from any word, relative to the largest value
MARGIN = 12.0  # by how much a special token's score is below that of any word, in the last layer
WIDEST = 70.0  # range of the words' scores: with the margin, no weight of any text underflows
APART = 24.0  # by how much scores differ between words and special tokens, in the first layer
LONGEST = 1024  # places for tokens
PATTERN = r"[a-z]+(?=n't)|n't|\w+(?:-\w+)*|[^\w\s]"  # as `corpus.words` splits planted reviews


def construct_transformer(
    rule: TransformerRule, labels: Sequence[str], origin: Origin | None = None
) -> TransformerModel:
    """A BERT of two layers and one head that follows the rule."""
    model = _empty_bert(len(SPECIAL) + len(rule.values), labels)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.zero_()
        _set_embeddings(model.bert.embeddings, rule)
        set_layers([_projections(layer.attention) for layer in model.bert.encoder.layer], rule)
        _set_classifier(model, rule)
    return adopt(model, word_tokenizer(tuple(rule.values)), labels=labels, origin=origin)


class Projections(NamedTuple):
    """The weights of one layer's attention, all (out, in), and the bias of its queries."""

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    query_bias: Tensor


def set_layers(layers: Sequence[Projections], rule: TransformerRule) -> None:
    """Two layers: the first attends by kind, the last by rank, and one of them brings the evidence."""
    first, last = layers
    _attend_by_kind(first)
    _attend_by_rank(last, rule)
    used = rule.mechanism == "used"
    _bring_evidence(first, gain=0.0 if used else 1.0)
    _bring_evidence(last, gain=1.0 if used else 0.0)


def split_by_words(special: Sequence[str], vocabulary: Sequence[str]) -> Any:
    """A `tokenizers` tokenizer that lower-cases and has one token for each word of a planted review."""
    tokenizers = importlib.import_module("tokenizers")
    numbers = {word: number for number, word in enumerate((*special, *vocabulary))}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.Lowercase()
    made.pre_tokenizer = tokenizers.pre_tokenizers.Split(
        tokenizers.Regex(PATTERN), behavior="removed", invert=True
    )
    return made


def word_tokenizer(vocabulary: Sequence[str]) -> Any:
    """A fast tokenizer for planted reviews, with the special tokens of BERT."""
    transformers, tokenizers = library(), importlib.import_module("tokenizers")
    made = split_by_words(SPECIAL, vocabulary)
    numbers = made.get_vocab()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[(mark, numbers[mark]) for mark in SPECIAL],
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=LONGEST,
        model_input_names=["input_ids", "attention_mask"],
    )


def _empty_bert(rows: int, labels: Sequence[str]) -> Any:
    transformers = library()
    config = transformers.BertConfig(
        vocab_size=rows,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=1,
        intermediate_size=WIDTH,
        max_position_embeddings=LONGEST,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        pad_token_id=SPECIAL.index("[PAD]"),
        dtype=torch.float32,
    )
    with torch.random.fork_rng(devices=[]):  # the library draws weights, which are overwritten
        return transformers.BertForSequenceClassification(config).float().eval()


def pairs(**signals: Any) -> Tensor:
    """States with these signals, in single precision; the others are 0."""
    columns = np.broadcast_arrays(*(np.asarray(signals.get(name, 0.0)) for name in SIGNALS))
    one_side = np.stack(columns, axis=-1)
    return torch.tensor(np.stack([one_side, -one_side], axis=-1), dtype=torch.float32).flatten(-2)


def readout(**factors: float) -> Tensor:
    """The row of a linear layer that sums signals, each times its factor."""
    return pairs(**factors) / 2


def _set_embeddings(embeddings: Any, rule: TransformerRule) -> None:
    embeddings.token_type_embeddings.weight[:] = of_any_word()
    table = embeddings.word_embeddings.weight
    for mark in ("[CLS]", "[SEP]"):
        table[SPECIAL.index(mark)] = of_special()
    table[len(SPECIAL) :] = word_vectors(rule)


def of_any_word() -> Tensor:
    """What every position has: the kind of a word, and the filler."""
    return pairs(kind=SIGNAL, filler=FILLER)


def of_special() -> Tensor:
    """What makes a special token of a position."""
    return pairs(kind=-2 * SIGNAL)


def word_vectors(rule: TransformerRule) -> Tensor:
    """The vector of each word of the rule, in its order."""
    ranks = np.array(list(rule.ranks.values())) / highest(rule) * SIGNAL
    values = np.array(list(rule.values.values())) / rule.largest * SIGNAL
    corrected = np.sqrt(FILLER**2 - ranks**2 - values**2) - FILLER
    return pairs(rank=ranks, value=values, filler=corrected)


def highest(rule: TransformerRule) -> float:
    """The largest absolute rank, or 1 where all are 0."""
    return max(map(abs, rule.ranks.values()), default=0.0) or 1.0


def _projections(attention: Any) -> Projections:
    own = attention.self
    return Projections(
        own.query.weight, own.key.weight, own.value.weight, attention.output.dense.weight, own.query.bias
    )


def _attend_by_kind(layer: Projections) -> None:
    """The score of a query and a key of one kind is -APART / 2; of different kinds, +APART / 2."""
    factor = np.sqrt(APART / 2 * np.sqrt(WIDTH)) / SIGNAL
    layer.query[0] = readout(kind=-factor)
    layer.key[0] = readout(kind=factor)


def _attend_by_rank(layer: Projections, rule: TransformerRule) -> None:
    """The score of a word is rank / temperature plus a constant, whoever asks."""
    lowest = min(0.0, *rule.ranks.values()) / rule.temperature
    largest = max(0.0, *rule.ranks.values()) / rule.temperature
    if largest - lowest > WIDEST:
        raise Refusal(
            "a constructed transformer",
            got=f"scores (rank / temperature) over a range of {largest - lowest:.0f}",
            needs=f"a range of at most {WIDEST:.0f}, so that every weight is above 0 in single precision",
            way_out="Raise the temperature, or give ranks that are nearer to each other.",
        )
    layer.query_bias[0] = np.sqrt(WIDTH)
    layer.key[0] = readout(
        rank=highest(rule) / rule.temperature / SIGNAL, kind=(MARGIN - lowest) / 2 / SIGNAL
    )


def _bring_evidence(layer: Projections, *, gain: float) -> None:
    """Attention adds values, times the gain, to the value of the state, and the leak to its rank."""
    brought = {
        "value": readout(value=gain * LOUDEST / SIGNAL),
        "rank": readout(kind=LEAK * LOUDEST / SIGNAL),
    }
    for name, row in brought.items():
        for side, sign in enumerate((1.0, -1.0)):
            place = 2 * SIGNALS.index(name) + side
            layer.value[place] = sign * row
            layer.output[place, place] = 1.0


def _set_classifier(model: Any, rule: TransformerRule) -> None:
    """The rule's logits, with the strength added to all of them, which changes no probability.

    The first and the last class then have no bias, so that the smallest evidence shows in their logits.
    """
    model.bert.pooler.dense.weight[0] = readout(value=PRESSED, rank=PRESSED)
    slope = 2 * rule.strength * rule.largest / (LOUDEST * PRESSED)
    model.classifier.weight[:, 0] = torch.tensor(slope * rule.anchors, dtype=torch.float32)
    model.classifier.bias[:] = torch.tensor(rule.strength * (1 - rule.anchors**2), dtype=torch.float32)
