"""Why does our CNN + additive differ from the authors' own results? One change at a time, then several.

    python docs/cnn_variants.py OUT.csv [--device cuda] [--part 0/2]

Every variant is the study's model with one thing changed, or several of those together. For each corpus,
variant and seed one line: scores, Kendall's tau of attention with gradient x input and with leave-one-out
over the test texts, and how even attention is. Variants that are no setting of ModelConfig replace a method
for the length of one training.
"""

import argparse
import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import torch
from torch import nn

import attentest as at
from attentest.evidence.concordance import count_on
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.model.batch import IndexedSplit
from attentest.model.network import AttentionModel
from attentest.model.networks.encoders import Convolutional
from attentest.model.training.selection import BestOnDev
from attentest.statistics.comparison import normalised_entropy
from attentest.statistics.rank_agreement import kendalls

CORPORA = ("sst", "20news", "imdb")
TEXTS = 64


@dataclass(frozen=True)
class Variant:
    """One change: settings of the model, or a patch that is in force while it is built and trained."""

    settings: dict[str, Any] = field(default_factory=dict)
    patch: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext


def kept_last() -> contextlib.AbstractContextManager[Any]:
    """Keep the last epoch, whatever dev says."""
    return mock.patch.multiple(BestOnDev, better=lambda *_: True, over=lambda *_: False)


def initialised(start: Callable[[nn.Conv1d], None]) -> Callable[[], contextlib.AbstractContextManager[Any]]:
    """Start the kernels of the convolutions otherwise."""
    plain = Convolutional.__init__

    def init(self: Convolutional, *sizes: Any) -> None:
        plain(self, *sizes)
        for kernel in self.kernels:
            start(kernel)

    return lambda: mock.patch.object(Convolutional, "__init__", init)


def xavier(kernel: nn.Conv1d) -> None:
    """Glorot's uniform start, biases 0."""
    nn.init.xavier_uniform_(kernel.weight)
    nn.init.zeros_(kernel.bias)


def kaiming(kernel: nn.Conv1d) -> None:
    """He's normal start for ReLU, biases 0."""
    nn.init.kaiming_normal_(kernel.weight, nonlinearity="relu")
    nn.init.zeros_(kernel.bias)


def with_kernels(*widths: int) -> Callable[[], contextlib.AbstractContextManager[Any]]:
    """The same number of channels in all, in kernels of these widths."""
    plain = Convolutional.__init__

    def init(self: Convolutional, emb: int, kernels: Any, channels: int) -> None:
        plain(self, emb, widths, channels * len(kernels) // len(widths))

    return lambda: mock.patch.object(Convolutional, "__init__", init)


def without_markers() -> contextlib.AbstractContextManager[Any]:
    """The start and end markers are zero vectors, as padding is."""
    plain = Convolutional.forward

    def forward(self: Convolutional, rows: Any, places: Any, present: Any) -> Any:
        marker = torch.zeros_like(present)
        marker[:, 0] = True
        marker[torch.arange(len(present)), present.sum(1) - 1] = True
        silent = torch.zeros_like(rows[:1])
        padded = places.masked_fill(marker, len(rows))
        return plain(self, torch.cat([rows, silent]), padded, present)

    return mock.patch.object(Convolutional, "forward", forward)


def with_tanh() -> contextlib.AbstractContextManager[Any]:
    """Tanh in the place of ReLU."""
    return mock.patch("attentest.model.networks.encoders.torch.relu", torch.tanh)


def together(*patches: Callable[[], contextlib.AbstractContextManager[Any]]) -> Callable[[], Any]:
    """Several patches at once."""

    @contextlib.contextmanager
    def patched() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for patch in patches:
                stack.enter_context(patch())
            yield

    return patched


def variants(vectors: Path) -> dict[str, Variant]:
    """By what is changed."""
    return {
        "as in the study": Variant(),
        "the paper's sizes (64 filters each)": Variant({"sizes": "paper"}),
        "no weight decay": Variant({"weight_decay": 0.0}),
        "weight decay 1e-3": Variant({"weight_decay": 1e-3}),
        "last epoch of 2": Variant({"epochs": 2}, kept_last),
        "last epoch of 4": Variant({"epochs": 4}, kept_last),
        "last epoch of 8": Variant({"epochs": 8}, kept_last),
        "last epoch of 20": Variant({"epochs": 20, "patience": 20}, kept_last),
        "learning rate 3e-4": Variant({"learning_rate": 3e-4}),
        "learning rate 3e-3": Variant({"learning_rate": 3e-3}),
        "attention starts at a tenth": Variant({"attention_start": 0.1}),
        "attention learns ten times as fast": Variant({"attention_rate": 10.0}),
        "batches of 128": Variant({"batch_size": 128}),
        "dropout 0.5": Variant({"dropout": 0.5}),
        "kernels start as Glorot's": Variant(patch=initialised(xavier)),
        "kernels start as He's": Variant(patch=initialised(kaiming)),
        "kernels 3, 5, 7 (no 1)": Variant(patch=with_kernels(3, 5, 7)),
        "kernels 1 alone": Variant(patch=with_kernels(1)),
        "kernels 3 alone": Variant(patch=with_kernels(3)),
        "kernels 1, 3, 5, 7, 15": Variant(patch=with_kernels(1, 3, 5, 7, 15)),
        "markers are zero, as padding": Variant(patch=without_markers),
        "tanh for ReLU": Variant(patch=with_tanh),
        "GloVe": Variant({"vectors": str(vectors)}),
        "GloVe, frozen": Variant({"vectors": str(vectors), "freeze": ("embedding",)}),
        "random vectors, frozen": Variant({"freeze": ("embedding",)}),
        "random(0.01)": Variant({"vectors": "random(0.01)"}),
        # Changes that raised tau on SST by themselves, together.
        "last of 8, zero markers": Variant({"epochs": 8}, together(kept_last, without_markers)),
        "last of 8, batches of 128": Variant({"epochs": 8, "batch_size": 128}, kept_last),
        "last of 8, learning rate 3e-4": Variant({"epochs": 8, "learning_rate": 3e-4}, kept_last),
        "last of 8, dropout 0.5": Variant({"epochs": 8, "dropout": 0.5}, kept_last),
        "last of 8, zero markers, batches of 128": Variant(
            {"epochs": 8, "batch_size": 128}, together(kept_last, without_markers)
        ),
        "last of 8, zero markers, learning rate 3e-4": Variant(
            {"epochs": 8, "learning_rate": 3e-4}, together(kept_last, without_markers)
        ),
        "last of 20, zero markers, dropout 0.5": Variant(
            {"epochs": 20, "patience": 20, "dropout": 0.5}, together(kept_last, without_markers)
        ),
        "GloVe, last of 8": Variant({"vectors": str(vectors), "epochs": 8}, kept_last),
        "GloVe, last of 20": Variant({"vectors": str(vectors), "epochs": 20, "patience": 20}, kept_last),
        "GloVe, last of 8, zero markers, batches of 128": Variant(
            {"vectors": str(vectors), "epochs": 8, "batch_size": 128}, together(kept_last, without_markers)
        ),
    }


def measured(model: AttentionModel, corpus: at.Corpus) -> dict[str, float]:
    """Mean agreement and evenness over the test texts."""
    split = IndexedSplit(corpus.test, model.vocabulary, corpus.labels)
    found: dict[str, list[np.ndarray]] = {"tau_gradient": [], "tau_loo": [], "entropy": [], "max_weight": []}
    order = np.argsort(split.lengths, kind="stable")
    for rows in np.array_split(order, -(-len(order) // TEXTS)):
        own = gradients(model, split.batch(rows).to(model.device))
        reading = own.reading
        loo = leave_one_out(model, reading, road="whole").change  # true of patched models, too
        weights, mask = (part.detach().cpu().numpy() for part in (reading.weights, reading.mask))
        count = count_on(reading.mask.device)
        for name, importance in (("tau_gradient", own.times_input), ("tau_loo", loo)):
            values = importance.detach().cpu().numpy()
            found[name].append(kendalls(weights, values, mask.sum(1), count=count)[0])
        found["entropy"].append(normalised_entropy(weights, mask))
        found["max_weight"].append(weights.max(1))
    return {name: float(np.nanmean(np.concatenate(parts))) for name, parts in found.items()}


def run(corpus: at.Corpus, variant: Variant, seed: int, device: str) -> dict[str, Any]:
    """Train one model and measure it."""
    with variant.patch():
        model = at.train(
            corpus, encoder="cnn", attention="additive", seed=seed, device=device, **variant.settings
        )
        scores = model.record.scores
        about = {"dev_auc": scores["dev"]["auc"], "epoch": model.record.chosen}
        return {**scores["test"], **about, **measured(model, corpus)}


def main(out: Path, device: str, corpora: list[str], names: list[str], seeds: int, part: str) -> None:
    """Every corpus, seed and variant; a line is written as soon as it is there."""
    own, parts = map(int, part.split("/"))
    changes = variants(Path(os.environ["ATTENTEST_DATA"]) / "vectors" / "glove.6B.50d.subset.txt.gz")
    changes = {says: change for says, change in changes.items() if not names or says in names}
    found: list[dict[str, Any]] = []
    for name in corpora:
        corpus = at.load_corpus(name)
        for number, (seed, says) in enumerate(itertools.product(range(seeds), changes)):
            if number % parts == own:
                found.append({"corpus": name, "variant": says, "seed": seed, "device": device})
                found[-1] |= run(corpus, changes[says], seed, device)
                pd.DataFrame(found).to_csv(out, index=False)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("out", type=Path)
    asked.add_argument("--device", default="cpu")
    asked.add_argument("--corpora", nargs="+", default=list(CORPORA))
    asked.add_argument("--variants", nargs="+", default=[], dest="names", help="only these; all by default")
    asked.add_argument("--seeds", type=int, default=5)
    asked.add_argument("--part", default="0/1", help="of how many processes this one is which")
    main(**vars(asked.parse_args()))
