"""Trains the story model of docs/reproductions/audit-causal.md: `causal_stories.py OUT [MINUTES]`.

A small GPT-2 and simulated bAbI task 1, on one core. The loss is of answers alone, since what the next
sentence says cannot be known. Stories of two sentences come first, then of four, six and ten, when nine of
ten answers are right. People and places are renamed in every batch: else 8,500 stories are learnt by heart.

The learning rate falls with time and not with steps, so that another machine makes another model.
"""

import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from causal import PROMPTS, STORIES, accuracy, padded, trained_tokenizer, written
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

import attentest as at

LAYERS, HEADS, WIDTH, PLACES = 3, 4, 64, 160
BATCH, RATE, WARMING, FALLING = (
    48,
    1e-3,
    200,
    0.2,
)  # steps of warm-up; the share of the time in which it falls
STAGES = (2, 4, 6, 10)  # sentences of a story, at most
ENOUGH, DONE = 0.9, 0.997  # the share of right answers after which longer stories come, or the training ends
ROUND = 100  # steps

Story = tuple[int, list[int], Mapping[str, str]]  # sentences, tokens, and where everybody is at its end


def sentences(example: at.Example) -> list[list[str]]:
    """The words of each sentence of a story."""
    return [one.split() for one in " ".join(example.tokens).split(" .") if one.strip()]


class Stories:
    """The training split with every question that a story answers, and names that change."""

    def __init__(self, corpus: at.Corpus, tokenizer: Any) -> None:
        def tokens(text: str) -> list[int]:
            return tokenizer(text, add_special_tokens=False)["input_ids"]

        self.size = len(tokenizer)
        self.stories: list[Story] = []
        for example in corpus.train:
            told = written(example, PROMPTS[STORIES]).split("\nQuestion:")[0]
            ends = {said[0]: said[-1] for said in sentences(example)}
            self.stories.append((len(sentences(example)), [0, *tokens(told)], ends))
        people = sorted({who for _, _, ends in self.stories for who in ends})
        self.answered = {
            (who, where): tokens(f"\nQuestion: where is {who} ?\nAnswer: {where}")
            for who in people
            for where in corpus.labels
        }
        self.names = [[tokens(f" {one}")[0] for one in group] for group in (people, corpus.labels)]

    def batch(self, longest: int) -> tuple[list[list[int]], Tensor, Tensor]:
        """Stories with their questions, and the row and place before every answer."""
        texts, rows, places = [], [], []
        drawn = random.sample([one for one in self.stories if one[0] <= longest], BATCH)
        for row, (_, told, ends) in enumerate(drawn):
            text, asked = list(told), random.sample(list(ends), len(ends))
            for who in asked:
                text += self.answered[who, ends[who]]
                rows.append(row)
                places.append(len(text) - 2)
            texts.append(self._renamed(text))
        return texts, torch.tensor(rows), torch.tensor(places)

    def _renamed(self, text: Sequence[int]) -> list[int]:
        other = list(range(self.size))
        for group in self.names:
            for name, drawn in zip(group, random.sample(group, len(group)), strict=True):
                other[name] = drawn
        return [other[token] for token in text]


def rounds(model: Any, stories: Stories, minutes: float) -> Iterator[tuple[int, float, float, float]]:
    """Train; of every round the longest stories, the seconds so far, and the loss and accuracy of answers."""
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=RATE, weight_decay=0.05, betas=(0.9, 0.98), fused=True
    )
    begun, stage, step = time.monotonic(), 0, 0
    while (share := (time.monotonic() - begun) / (60 * minutes)) < 1:
        right, loss = 0.0, torch.zeros(())
        for _ in range(ROUND):
            step += 1
            slower = min(1.0, step / WARMING) * min(1.0, (1 - share) / FALLING + 0.02)
            optimiser.param_groups[0]["lr"] = RATE * slower
            optimiser.zero_grad()
            texts, rows, places = stories.batch(STAGES[stage])
            filled, there, _ = padded(texts)
            states = model.transformer(input_ids=filled, attention_mask=there.long(), use_cache=False)[0]
            logits, wanted = model.lm_head(states[rows, places]), filled[rows, places + 1]
            loss = nn.functional.cross_entropy(logits, wanted)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            right += float((logits.argmax(1) == wanted).float().mean()) / ROUND
        yield STAGES[stage], time.monotonic() - begun, float(loss), right
        if right > (ENOUGH if stage + 1 < len(STAGES) else DONE):
            if stage + 1 == len(STAGES):
                return
            stage += 1


def main(out: str, minutes: str = "13") -> None:
    """Train, say how well stories that were never seen are answered, and save."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)
    corpus = at.load_corpus(STORIES)
    texts = {
        name: [written(one, PROMPTS[STORIES]) for one in split] for name, split in corpus.splits().items()
    }
    tokenizer = trained_tokenizer(texts["train"])
    ends = {"bos_token_id": 0, "eos_token_id": 0, "initializer_range": 0.05}
    still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    sizes = {"n_positions": PLACES, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS}
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **sizes, **still, **ends))
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    for longest, seconds, loss, right in rounds(model, Stories(corpus, tokenizer), float(minutes)):
        print(f"{seconds:.0f} s, up to {longest} sentences: loss {loss:.3f}, right {right:.3f}", flush=True)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    for name in ("dev", "test"):
        print(name, round(accuracy(model.eval(), tokenizer(texts[name])["input_ids"]), 4), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
