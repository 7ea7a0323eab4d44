"""Causal language models whose weights are set by hand, so that what their attention does is known.

They follow the same rule as the BERT of `constructed.transformer`, whose signals and layers they share, as a
GPT-2 of two layers and one head behind the prompt "{text} <answer>". The causal mask takes nothing away: the
last position sees the whole text, and no other position decides.

The position <answer> stands where [CLS] stood, and the beginning <s> is the other special token. Kind and
filler come from the position embeddings, all of which are the same. In layer 0 <answer> attends uniformly to
words, and every word to <s>, which each of them sees and where there is nothing to bring. In layer 1 all
attend by rank; <s> and <answer> together have less than 1e-4.

GPT-2 normalises what a layer reads and not what it adds to, so that the layer norm acts on the evidence once,
behind the last layer, as in `TransformerRule` without a pooler. The last norm makes a constant of the signal
`kind`: the classes' biases come from it, and the other tokens are pushed out of the answer by it. What comes
next is therefore always one of the labels: the likeliest next token is the likelier label.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attentest.constructed.transformer import (
    LONGEST,
    Projections,
    of_any_word,
    of_special,
    readout,
    set_layers,
    split_by_words,
    word_vectors,
)
from attentest.constructed.transformer_rule import LOUDEST, SIGNALS, WIDTH, TransformerRule
from attentest.foreign.editing import library
from attentest.foreign.loading import adopt
from attentest.foreign.transformer import TransformerModel
from attentest.model.seam import Origin

BEGIN, ANSWER, UNKNOWN = "<s>", "<answer>", "[UNK]"
SPECIAL = (UNKNOWN, BEGIN, ANSWER)
PROMPT = f"{{text}} {ANSWER}"
UNLIKELY = -60.0  # the logit of a token that is no label
CONSTANT = 2 * SIGNALS.index("kind")  # the dimension that the last norm makes 1


def construct_causal(
    rule: TransformerRule, labels: Sequence[str], origin: Origin | None = None
) -> TransformerModel:
    """A GPT-2 of two layers and one head that follows the rule, asked for a label behind a prompt."""
    tokenizer = causal_tokenizer(tuple(rule.values), labels)
    model = _empty_gpt2(len(tokenizer))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.zero_()
        stack = model.transformer
        stack.wpe.weight[:] = of_any_word()
        table = stack.wte.weight
        for mark in (BEGIN, ANSWER):
            table[SPECIAL.index(mark)] = of_special()
        table[len(SPECIAL) : len(SPECIAL) + len(rule.values)] = word_vectors(rule)
        set_layers([_projections(block.attn) for block in stack.h], rule)
        _set_head(model, tokenizer, rule, labels)
    written = [f" {label}" for label in labels]
    return adopt(model, tokenizer, labels=written, task="prompt", prompt=PROMPT, origin=origin)


def causal_tokenizer(vocabulary: Sequence[str], labels: Sequence[str]) -> Any:
    """A fast tokenizer for planted reviews that knows the first word of every label, too."""
    transformers, tokenizers = library(), importlib.import_module("tokenizers")
    first = dict.fromkeys(label.lower().split()[0] for label in labels)
    made = split_by_words(SPECIAL, (*vocabulary, *(word for word in first if word not in set(vocabulary))))
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{BEGIN} $A",
        pair=f"{BEGIN} $A $B",
        special_tokens=[(BEGIN, SPECIAL.index(BEGIN))],
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        unk_token=UNKNOWN,
        bos_token=BEGIN,
        eos_token=ANSWER,
        model_max_length=LONGEST,
        model_input_names=["input_ids", "attention_mask"],
    )


def _empty_gpt2(rows: int) -> Any:
    transformers = library()
    config = transformers.GPT2Config(
        vocab_size=rows,
        n_positions=LONGEST,
        n_embd=WIDTH,
        n_layer=2,
        n_head=1,
        n_inner=WIDTH,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        layer_norm_epsilon=1e-12,
        bos_token_id=SPECIAL.index(BEGIN),
        eos_token_id=SPECIAL.index(ANSWER),
        tie_word_embeddings=False,
        dtype=torch.float32,
    )
    with torch.random.fork_rng(devices=[]):  # the library draws weights, which are overwritten
        return transformers.GPT2LMHeadModel(config).float().eval()


def _projections(attention: Any) -> Projections:
    """Views of the joint matrix of GPT-2, which is (in, out)."""
    query, key, value = attention.c_attn.weight.T.split(WIDTH)
    return Projections(query, key, value, attention.c_proj.weight.T, attention.c_attn.bias)


def _set_head(model: Any, tokenizer: Any, rule: TransformerRule, labels: Sequence[str]) -> None:
    """The rule's logits with the strength added to all of them, which changes no probability."""
    norm = model.transformer.ln_f
    norm.weight[CONSTANT : CONSTANT + 2] = 0.0
    norm.bias[CONSTANT] = 1.0
    always = torch.eye(WIDTH)[CONSTANT]
    model.lm_head.weight[:] = UNLIKELY * always
    slope = 2 * rule.strength * rule.largest / LOUDEST
    for label, anchor in zip(labels, rule.anchors, strict=True):
        own: Tensor = readout(value=slope * anchor, rank=slope * anchor)
        token = tokenizer.convert_tokens_to_ids(label.lower().split()[0])
        model.lm_head.weight[token] = own + rule.strength * (1 - anchor**2) * always
