"""Trains the causal language model of docs/reproductions/audit-causal.md: `python docs/causal.py OUT`.

A Llama-style decoder with grouped heads, from scratch, on planted reviews and simulated bAbI. Each text is
written as a prompt and its answer, and the byte-level tokenizer is trained on the same texts. One thread and
one seed give the same model again.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import tokenizers
import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import attentest as at
from attentest.corpus.raw_text import query_text, text_and_spans

REVIEWS, STORIES = "planted-reviews(train=8000)", "babi-1-simulated"
PROMPTS = {
    REVIEWS: "Review: {text}\nSentiment:",
    STORIES: "Story: {text}\nQuestion: {query}\nAnswer:",
}
END = "<|endoftext|>"
PIECES, BATCH, POOL = 1024, 32, 16  # the last: batches that are put in order of length together
RATE, WARMING = 2e-3, 0.05


def written(example: at.Example, prompt: str) -> str:
    """The prompt, filled in, and its answer."""
    text, query = text_and_spans(example)[0], query_text(example) or ""
    return f"{prompt.replace('{text}', text).replace('{query}', query)} {example.label}"


def trained_tokenizer(texts: Sequence[str]) -> Any:
    """Byte-level pairs, as GPT-2 has them; every text begins with the mark of the end of another."""
    pieces = tokenizers.Tokenizer(tokenizers.models.BPE())
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=PIECES, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    pieces.train_from_iterator(texts, trainer)
    pieces.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{END} $A", pair=f"{END} $A $B", special_tokens=[(END, 0)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        bos_token=END,
        eos_token=END,
        model_input_names=["input_ids", "attention_mask"],
        model_max_length=256,
    )


def empty_model() -> Any:
    """About 1.1 million parameters: five layers, eight heads in four groups."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=PIECES,
            hidden_size=128,
            intermediate_size=384,
            num_hidden_layers=5,
            num_attention_heads=8,
            num_key_value_heads=4,
            max_position_embeddings=256,
            bos_token_id=0,
            eos_token_id=0,
            tie_word_embeddings=True,
            initializer_range=0.05,
        )
    )


def padded(ids: Sequence[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Texts side by side, where there are any, and the place before each answer."""
    lengths = torch.tensor([len(each) for each in ids])
    filled = torch.zeros(len(ids), int(lengths.max()), dtype=torch.long)
    for row, each in enumerate(ids):
        filled[row, : len(each)] = torch.tensor(each)
    return filled, torch.arange(filled.shape[1]) < lengths[:, None], lengths - 2


def batches(lengths: Sequence[int], rng: torch.Generator) -> Iterator[list[int]]:
    """All texts once, at random, but each batch from texts of alike length."""
    drawn = torch.randperm(len(lengths), generator=rng).tolist()
    found = []
    for begin in range(0, len(drawn), POOL * BATCH):
        pool = sorted(drawn[begin : begin + POOL * BATCH], key=lambda text: lengths[text])
        found += [pool[first : first + BATCH] for first in range(0, len(pool), BATCH)]
    for place in torch.randperm(len(found), generator=rng).tolist():
        yield found[place]


def losses(model: Any, ids: Sequence[list[int]]) -> tuple[Tensor, Tensor, int]:
    """The mean loss of all tokens, that of the answers, and how many answers are the likeliest token."""
    filled, there, before = padded(ids)
    logits = model(input_ids=filled, attention_mask=there.long(), use_cache=False).logits[:, :-1]
    each = nn.functional.cross_entropy(logits.transpose(1, 2), filled[:, 1:], reduction="none")
    rows = torch.arange(len(ids))
    right = logits[rows, before].argmax(1) == filled[rows, before + 1]
    return each[there[:, 1:]].mean(), each[rows, before].mean(), int(right.sum())


def accuracy(model: Any, ids: Sequence[list[int]]) -> float:
    """The share of texts whose answer is the likeliest token of all."""
    model.eval()
    ordered = sorted(ids, key=len)
    with torch.inference_mode():
        parts = [losses(model, ordered[begin : begin + 64])[2] for begin in range(0, len(ids), 64)]
    return sum(parts) / len(ids)


def main(out: str, epochs: str = "6", stop: str = "5") -> None:
    """Train on both corpora together, say how well their test splits are answered, and save.

    The rate falls as for so many epochs; of these the last may be left out.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    corpora = {name: at.load_corpus(name) for name in PROMPTS}
    texts = {
        name: {split: [written(text, PROMPTS[name]) for text in own] for split, own in c.splits().items()}
        for name, c in corpora.items()
    }
    tokenizer = trained_tokenizer([text for own in texts.values() for text in own["train"]])
    for name, corpus in corpora.items():
        ends = [tokenizer(f" {label}", add_special_tokens=False)["input_ids"] for label in corpus.labels]
        assert all(len(end) == 1 for end in ends), f"an answer of {name} is several tokens"
    ids = {name: {s: tokenizer(own)["input_ids"] for s, own in c.items()} for name, c in texts.items()}
    train = [each for own in ids.values() for each in own["train"]]
    model, rng = empty_model(), torch.Generator().manual_seed(0)
    print(
        f"{sum(p.numel() for p in model.parameters()):,} parameters, {sum(map(len, train)):,} tokens",
        flush=True,
    )
    steps = int(epochs) * -(-len(train) // BATCH)
    warm = max(1, round(WARMING * steps))
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=RATE, weight_decay=0.01, betas=(0.9, 0.95), fused=True
    )
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
    )
    for epoch in range(int(stop)):
        model.train()
        for number, rows in enumerate(batches([len(each) for each in train], rng)):
            optimiser.zero_grad()
            whole, answers, _ = losses(model, [train[row] for row in rows])
            (whole + answers).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            rate.step()
            if number % 100 == 0:
                print(f"  {number}: {whole.item():.3f} {answers.item():.3f}", flush=True)
        shares = {name: round(accuracy(model, own["dev"]), 4) for name, own in ids.items()}
        print(f"epoch {epoch + 1}: {shares} of dev", flush=True)
        model.save_pretrained(out)
        tokenizer.save_pretrained(out)
    print({name: round(accuracy(model, own["test"]), 4) for name, own in ids.items()}, "of test", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
