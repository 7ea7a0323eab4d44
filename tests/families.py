"""Tiny random models of twelve families, and a tokenizer for all of them: nothing is downloaded."""

import warnings

import pytest
import torch

from attentest.corpus.example import Example
from attentest.foreign.loading import adopt

transformers = pytest.importorskip("transformers", reason="needs the extra `hf`")
tokenizers = pytest.importorskip("tokenizers", reason="needs the extra `hf`")

LABELS = ("a", "b", "c")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = ("the", "a", "cat", "dog", "sat", "ran", "far", "home", "today", "never", "good", "bad", "film")
PIECES = ("un", "##like", "##ly", "##ing", "walk", "##ed", "re", "##read")
VOCABULARY = {piece: number for number, piece in enumerate((*SPECIAL, *WORDS, *PIECES))}

SIZES = {"vocab_size": len(VOCABULARY), "num_labels": 3, "pad_token_id": 0}
SMALL = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24}
ENDS = {"bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 3}

# family: (name of the model class, what its configuration needs)
FAMILIES = {
    "albert": ("Albert", {**SMALL, "embedding_size": 8}),
    "bart": (
        "Bart",
        {
            "d_model": 16,
            **{
                f"{side}_{what}": n
                for side in ("encoder", "decoder")
                for what, n in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 24))
            },
            **ENDS,
        },
    ),
    "bert": ("Bert", SMALL),
    "deberta-v2": ("DebertaV2", {**SMALL, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    "distilbert": ("DistilBert", {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 24}),
    "electra": ("Electra", {**SMALL, "embedding_size": 8}),
    "gpt2": ("GPT2", {"n_embd": 16, "n_layer": 3, "n_head": 2, "bos_token_id": 2, "eos_token_id": 3}),
    "llama": (
        "Llama",
        {**SMALL, "num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": 2, "eos_token_id": 3},
    ),
    "modernbert": (
        "ModernBert",
        {**SMALL, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3},
    ),
    "roberta": ("Roberta", {**SMALL, "bos_token_id": 2, "eos_token_id": 3}),
    "t5": ("T5", {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, **ENDS}),
    "xlnet": ("XLNet", {"d_model": 16, "n_layer": 3, "n_head": 2, "d_inner": 24}),
}

TYPED = ("albert", "bert", "deberta-v2", "electra", "xlnet")
TEXTS = ("the cat sat far", "unlikely dog ran home today walking", "a film", "never")
SECOND = ("a dog", "the film ran", "bad", "good walked home")


def examples(*, pairs=False, texts=TEXTS):
    """Texts of one to six words, some of several pieces."""
    return [
        Example(
            id=str(number),
            tokens=tuple(text.split()),
            label="abc"[number % 3],
            query=tuple(SECOND[number].split()) if pairs else None,
        )
        for number, text in enumerate(texts)
    ]


RAW = (
    "It's great.",
    "Don't miss  it\u2014isn't it GOOD?! I'm gonna go.",
    "line one\nline two\r\n\n\tline three\n",
    "Café naïve déjà-vu, ÅÉ and cafe\u0301",
    "so good 😀👍🏽 !!😀",
    "  leading and trailing  ",
    "\"well...\" he said: 'U.S.\u00a0films' [SEP] etc.",
    "Cannot",
)


def trained_pieces(kind):
    """A tokenizer of a kind that real models have, trained on the raw texts; special tokens come first."""
    made = tokenizers
    if kind == "byte-level":
        pieces = made.Tokenizer(made.models.BPE())
        pieces.pre_tokenizer = made.pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = made.pre_tokenizers.ByteLevel.alphabet()
        trainer = made.trainers.BpeTrainer(
            vocab_size=400, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
        )
    elif kind == "metaspace":
        pieces = made.Tokenizer(made.models.Unigram())
        pieces.normalizer = made.normalizers.NFKC()
        pieces.pre_tokenizer = made.pre_tokenizers.Metaspace()
        trainer = made.trainers.UnigramTrainer(
            vocab_size=150, special_tokens=list(SPECIAL), unk_token="[UNK]", show_progress=False
        )
    else:
        pieces = made.Tokenizer(made.models.WordPiece(unk_token="[UNK]"))
        pieces.normalizer = made.normalizers.BertNormalizer(lowercase=True)
        pieces.pre_tokenizer = made.pre_tokenizers.BertPreTokenizer()
        trainer = made.trainers.WordPieceTrainer(
            vocab_size=90, special_tokens=list(SPECIAL), show_progress=False
        )
    pieces.train_from_iterator(RAW * 4, trainer)
    return pieces


def tokenizer(family="bert", *, pieces=None, **settings):
    """Word pieces, or any pieces; the marks stand where the family has them."""
    if pieces is None:
        pieces = tokenizers.Tokenizer(tokenizers.models.WordPiece(VOCABULARY, unk_token="[UNK]"))
        pieces.normalizer = tokenizers.normalizers.Lowercase()
        pieces.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    marks = {"pair": "[CLS] $A [SEP] $B:1 [SEP]:1", "single": "[CLS] $A [SEP]"}
    if family == "gpt2":
        marks = {"single": "$A", "pair": "$A [SEP] $B:1"}
    elif family == "xlnet":
        marks = {"single": "$A [SEP] [CLS]:2", "pair": "$A [SEP] $B:1 [SEP]:1 [CLS]:2"}
    elif family == "t5":
        marks = {"single": "$A [SEP]", "pair": "$A [SEP] $B [SEP]"}
    elif family == "bart":
        marks = {"single": "[CLS] $A [SEP]", "pair": "[CLS] $A [UNK] $B [SEP]"}
    pieces.post_processor = tokenizers.processors.TemplateProcessing(
        **marks, special_tokens=[(name, VOCABULARY[name]) for name in SPECIAL]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        padding_side="left" if family == "xlnet" else "right",
        model_input_names=["input_ids", "attention_mask", *(["token_type_ids"] if family in TYPED else [])],
        **settings,
    )


def tiny(family="bert", *, scale=0.3, head="ForSequenceClassification", **settings):
    """A random model, its weights wide enough that attention is far from even."""
    name, sizes = FAMILIES[family]
    config = getattr(transformers, f"{name}Config")(**{**SIZES, **sizes, **settings})
    torch.manual_seed(0)
    with warnings.catch_warnings():  # one family's module compiles a function in a way torch is leaving
        warnings.simplefilter("ignore", DeprecationWarning)
        model = getattr(transformers, f"{name}{head}")(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, scale)
    return model.eval()


def made(family="bert", *, double=False, pairs=False, model=None, **choice):
    """A tiny model on the bench, and a batch of all example texts."""
    model = tiny(family) if model is None else model
    adopted = adopt(model.double() if double else model, tokenizer(family), labels=LABELS, **choice)
    split = adopted.split(examples(pairs=pairs))
    return adopted, split.batch(range(len(split)))


def own_logits(model, family, pairs=False):
    """The tokenizer's own batch, and what the model answers to it by itself."""
    second = [list(SECOND)] if pairs else []
    encoded = tokenizer(family)(list(TEXTS), *second, padding=True, return_tensors="pt")
    with torch.no_grad():
        return encoded, model(**encoded).logits


# Causal language models, family: (name of the configuration, of the class, what its configuration needs)
GROUPED = {**SMALL, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4}
WINDOWS = {"sliding_window": 3, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
CAUSAL = {
    "gemma": ("Gemma", "GemmaForCausalLM", GROUPED),
    "gemma2": ("Gemma2", "Gemma2ForCausalLM", {**GROUPED, **WINDOWS, "query_pre_attn_scalar": 4}),
    "gemma3_text": (
        "Gemma3Text",
        "Gemma3ForCausalLM",
        {**GROUPED, **WINDOWS, "query_pre_attn_scalar": 4, "final_logit_softcapping": 2.0},
    ),
    "gpt2": ("GPT2", "GPT2LMHeadModel", {"n_embd": 16, "n_layer": 3, "n_head": 2}),
    "llama": ("Llama", "LlamaForCausalLM", {**SMALL, "num_attention_heads": 4, "num_key_value_heads": 2}),
    "mistral": ("Mistral", "MistralForCausalLM", {**GROUPED, "sliding_window": 3}),
    "phi": ("Phi", "PhiForCausalLM", SMALL),
    "phi3": ("Phi3", "Phi3ForCausalLM", {**SMALL, "num_attention_heads": 4, "num_key_value_heads": 2}),
    "qwen2": (
        "Qwen2",
        "Qwen2ForCausalLM",
        {**SMALL, **WINDOWS, "num_attention_heads": 4, "num_key_value_heads": 2, "use_sliding_window": True},
    ),
    "qwen3": ("Qwen3", "Qwen3ForCausalLM", GROUPED),
}
PROMPT = "the film {text} never ran"


def tiny_causal(family="llama", *, scale=0.3, **settings):
    """A random causal language model, its weights wide enough that attention is far from even."""
    config, name, sizes = CAUSAL[family]
    own = {"vocab_size": len(VOCABULARY), "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    made = getattr(transformers, f"{config}Config")(**{**own, **sizes, **settings})
    torch.manual_seed(0)
    model = getattr(transformers, name)(made)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, scale)
    return model.eval()


def made_causal(family="llama", *, task="prompt", double=False, model=None, texts=TEXTS, **choice):
    """A tiny causal model on the bench, and a batch of all example texts."""
    model = tiny_causal(family) if model is None else model
    asked = {"task": task, "prompt": PROMPT, "labels": (" good", " bad")}
    if task == "next-token":
        asked = {"task": task}
    adopted = adopt(model.double() if double else model, tokenizer("gpt2"), **asked, **choice)
    split = adopted.split(
        [Example(id=str(n), tokens=tuple(t.split()), label="") for n, t in enumerate(texts)]
    )
    return adopted, split.batch(range(len(split)))
