"""Trains the story model of docs/reproductions/audit-causal.md: `causal_stories.py OUT [MINUTES]`.

A GPT-2 of 3 layers on simulated bAbI task 1, on one core. The loss is of the answer alone, since nobody can
know what the next sentence says. Stories of two sentences come first, then of four, six and ten, whenever
93 % of the last answers were right. The rate falls with time: another machine makes another model.
"""

import math
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from causal import PIECES, PROMPTS, STORIES, accuracy, batches, padded, trained_tokenizer, written
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

import attentest as at

SIZES = {"vocab_size": PIECES, "n_positions": 128, "n_embd": 64, "n_layer": 3, "n_head": 4}
STILL = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
RATE, WARMING, LEAST = 1e-3, 200, 0.05  # of the rate: its height, its first steps, its last share
STAGES, ENOUGH, RECENT = (2, 4, 6, 10), 0.93, 60  # sentences; the share of right answers, of so many batches


def sentences(example: at.Example) -> int:
    """How long a story is."""
    return example.tokens.count(".")


def trained(
    model: Any, texts: Sequence[list[int]], lengths: Sequence[int], minutes: float
) -> Iterator[tuple[int, float]]:
    """Train for so long; after each batch, the longest stories and the share of recent right answers."""
    settings = {"weight_decay": 0.1, "betas": (0.9, 0.98), "fused": True}
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, **settings)
    rng, begun, stage, step = torch.Generator().manual_seed(0), time.time(), 0, 0
    recent = deque[float](maxlen=RECENT)
    while True:
        pool = [text for text, length in zip(texts, lengths, strict=True) if length <= STAGES[stage]]
        for rows in batches([len(text) for text in pool], rng):
            share = (time.time() - begun) / (60 * minutes)
            if share >= 1:
                return
            falling = LEAST + (1 - LEAST) * 0.5 * (1 + math.cos(math.pi * share))
            optimiser.param_groups[0]["lr"] = RATE * min(1.0, (step + 1) / WARMING) * falling
            filled, there, before = padded([pool[row] for row in rows])
            logits = model(input_ids=filled, attention_mask=there.long(), use_cache=False).logits
            at_end = torch.arange(len(rows)), before
            own, wanted = logits[at_end], filled[at_end[0], before + 1]
            optimiser.zero_grad()
            nn.functional.cross_entropy(own, wanted).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            step += 1
            recent.append(float((own.argmax(1) == wanted).float().mean()))
            right = sum(recent) / len(recent)
            yield STAGES[stage], right
            if len(recent) == RECENT and right > ENOUGH and stage + 1 < len(STAGES):
                stage += 1
                recent.clear()
                break


def main(out: str, minutes: str = "6") -> None:
    """Train, say how well stories of each length are answered that were not trained on, and save."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    corpus = at.load_corpus(STORIES)
    texts = {s: [written(each, PROMPTS[STORIES]) for each in own] for s, own in corpus.splits().items()}
    tokenizer = trained_tokenizer(texts["train"])
    ids = {split: tokenizer(own)["input_ids"] for split, own in texts.items()}
    ends = {"bos_token_id": 0, "eos_token_id": 0, "initializer_range": 0.05}
    model = GPT2LMHeadModel(GPT2Config(**SIZES, **STILL, **ends))
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    lengths = [sentences(each) for each in corpus.train]
    for step, (longest, right) in enumerate(trained(model, ids["train"], lengths, float(minutes)), 1):
        if step % 100 == 0:
            print(f"step {step}, up to {longest} sentences: {right:.3f} right", flush=True)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    for length in sorted({sentences(each) for each in corpus.test}):
        own = [text for text, each in zip(ids["test"], corpus.test, strict=True) if sentences(each) == length]
        print(f"test, {length} sentences: {accuracy(model, own):.3f} of {len(own)}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
