"""Training by the protocol of the papers, resumable at any step, the same bits for a seed.

Every draw is a function of (seed, epoch, step), so a resumed training needs no generator state: it takes the
epoch's batches again and skips those already seen.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from attentest.corpus.anonymised import anonymised
from attentest.corpus.example import Corpus
from attentest.corpus.vocabulary import END, START
from attentest.model.batch import AbstractSplit, IndexedSplit, passes
from attentest.model.config import PARTS
from attentest.model.network import AttentionModel
from attentest.model.networks.decoder import distribution
from attentest.model.reader import split_logits
from attentest.model.training.building import dev_split, training_split
from attentest.model.training.held_reading import TrainingReader
from attentest.model.training.imitation import Said
from attentest.model.training.objective import objective
from attentest.model.training.optimiser import RowAdam, shrink
from attentest.refusal import Refusal
from attentest.statistics.scores import scores

SAVING = 100  # times as long as a save takes passes before the next: at most 1 % of a training


@final
@dataclass(frozen=True)
class Progress:
    """Where a training stands."""

    epoch: int
    epochs: int
    fraction: float  # of all steps that may be taken
    loss: float
    dev: float


@final
@dataclass
class Record:
    """What a training says about itself, without times: two runs write the same bytes."""

    history: list[dict[str, Any]] = field(default_factory=list)
    chosen: int = 0  # the epoch that was kept; 0 is the untrained model
    scores: dict[str, dict[str, float]] = field(default_factory=dict)


@runtime_checkable
class Checkpoint(Protocol):
    """Where an unfinished training is kept."""

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The tensors and notes of the last save, if there is one."""
        ...

    def save(self, tensors: dict[str, Tensor], notes: dict[str, Any]) -> None:
        """Replace the last save by this one, at once or not at all."""
        ...


@final
class Training:
    """One training: the model, its optimisers, and where it stands."""

    def __init__(
        self,
        model: AttentionModel,
        corpus: Corpus,
        *,
        base: Mapping[str, Said] | None = None,
        beside: Training | None = None,
        checkpoint: Checkpoint | None = None,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        save_every: float = 5.0,
    ) -> None:
        self.model, self.config = model, model.config
        self.corpus = anonymised(corpus, self.config.omit)
        self.checkpoint, self.on_progress, self.save_every = checkpoint, on_progress, save_every
        assert self.config.epochs is not None and self.config.batch_size and self.config.patience
        self.epochs, self.batch_size = self.config.epochs, self.config.batch_size
        self.patience = self.config.patience
        # A training beside others on the same corpus does not number its words again.
        train, dev = (None, None) if beside is None else (beside.train, beside.dev)
        self.train: AbstractSplit = training_split(self.config, self.corpus, model.vocabulary, train)
        self.dev: AbstractSplit = dev_split(self.config, self.corpus, model.vocabulary, dev)
        self.objective = objective(model, self.train, base)
        self.reader = TrainingReader(model, self.train)
        once = math.ceil(len(self.train) / self.batch_size)
        self.passes = math.ceil(self.config.epoch_steps / once)
        self.steps = once * self.passes
        self.measure = "auc" if self.config.decoder == "sigmoid" else "accuracy"
        self.record = Record()
        self.optimiser, self.rows = self._optimisers()
        self.best: dict[str, Tensor] | None = None
        self.epoch, self.step, self.loss = 1, 0, 0.0
        self._saved, self._cost = time.monotonic(), 0.0

    def _optimisers(self) -> tuple[torch.optim.Adam | None, RowAdam | None]:
        decayed: list[nn.Parameter] = []
        plain: list[nn.Parameter] = []
        for part in PARTS:
            for module in self._modules(part):
                module.requires_grad_(part not in self.config.freeze)
        for name, parameter in self.model.named_parameters():
            if parameter.requires_grad and not name.startswith("embedding."):
                (plain if name.startswith("attention.") else decayed).append(parameter)
        if not decayed and not plain and "embedding" in self.config.freeze and self.epochs:
            raise Refusal(
                "model setting freeze",
                got="every part of the model",
                needs="something left to train",
                way_out="Leave a part out of freeze, or set epochs to 0.",
            )
        groups = [
            {"params": decayed, "weight_decay": self.config.weight_decay, "times": 1.0},
            {"params": plain, "weight_decay": 0.0, "times": self.config.attention_rate},
        ]
        dense = None
        if decayed or plain:
            dense = torch.optim.Adam(groups, lr=self.learning_rate, amsgrad=True, fused=True)
        if "embedding" in self.config.freeze:
            return dense, None
        rows = RowAdam(
            self.model.embedding.weight,
            lr=self.learning_rate,
            weight_decay=self.config.weight_decay,
            total_steps=self.steps * self.epochs,
        )
        return dense, rows

    def _modules(self, part: str) -> list[nn.Module]:
        names = [part, "query_encoder"] if part == "encoder" else [part]
        return [module for name in names if (module := getattr(self.model, name)) is not None]

    def run(self) -> Record:
        """Train to the end, keep the epoch the objective's rule chooses, and score it on dev and test."""
        self.resume()
        try:
            while not self.is_over():
                self._run_epoch()
        except KeyboardInterrupt:
            self.save()
            raise
        if self.best is not None:
            self.model.load_state_dict(self.best)
        self.record.scores = {"dev": self._score(self.dev)}
        test = IndexedSplit(self.corpus.test, self.model.vocabulary, self.corpus.labels)
        self.record.scores["test"] = self._score(test)
        return self.record

    def is_over(self) -> bool:
        """Whether no epoch is left, or another would be no use."""
        if self.epoch > self.epochs:
            return True
        if not self.record.history or self.step:
            return False
        return self.objective.keeps.should_stop(self.record.history, self.record.chosen, self.patience)

    @property
    def learning_rate(self) -> float:
        """The rate of this epoch: a function of the history, so that a resumed training has it too.

        With `halving` it is halved after every epoch that was no better than the best before it.
        """
        assert self.config.learning_rate is not None
        if not self.config.halving:
            return self.config.learning_rate
        reached = [self.objective.keeps.score(epoch) for epoch in self.record.history]
        idle = sum(reached[n] <= max(reached[:n]) for n in range(1, len(reached)))
        return self.config.learning_rate * 0.5**idle

    def _set_rate(self) -> None:
        if self.optimiser is not None:
            for group in self.optimiser.param_groups:
                group["lr"] = self.learning_rate * group["times"]
        if self.rows is not None:
            self.rows.lr = self.learning_rate  # every row is up to date at the end of an epoch

    def _run_epoch(self) -> None:
        self._set_rate()
        for rows in self.batches(self.epoch)[self.step :]:
            self.loss += self._learn(rows)
            self.step += 1
            self.on_progress(self.progress(self.step))
            if time.monotonic() - self._saved > max(self.save_every, SAVING * self._cost):
                self.save()
        if self.rows is not None:
            self.rows.catch_up()
        if self.end_epoch(self._score(self.dev) if self.objective.keeps.asks_dev else {}):
            self.best = copy.deepcopy(self.model.state_dict())

    def batches(self, epoch: int) -> list[np.ndarray]:
        """The texts of every step of an epoch, a function of the seed."""
        return passes(self.train.lengths, self.batch_size, self.passes, seed=[self.config.seed, 2, epoch])

    def progress(self, step: int) -> Progress:
        """Where the training stands after so many steps of this epoch."""
        done = (self.epoch - 1) * self.steps + step
        dev = self.record.history[-1]["dev"].get(self.measure, math.nan) if self.record.history else math.nan
        share = done / (self.steps * self.epochs)
        return Progress(self.epoch, self.epochs, share, self.loss / (step * self.batch_size), dev)

    def generator(self, step: int) -> torch.Generator:
        """The noise of one step of this epoch."""
        seed = np.random.SeedSequence([self.config.seed, 3, self.epoch, step]).generate_state(1)[0]
        return torch.Generator().manual_seed(int(seed))

    def _learn(self, rows: np.ndarray) -> float:
        batch = self.train.batch(rows)
        if self.rows is not None:
            read = [batch.tokens.flatten(), torch.tensor([START, END])]
            read += [] if batch.query is None else [batch.query.flatten()]
            self.rows.catch_up(torch.unique(torch.cat(read)).to(self.model.device))
        rng = None
        if self.model.projection.name == "gumbel-softmax" or self.config.dropout:
            rng = self.generator(self.step)
        batch = batch.to(self.model.device)
        reading = self.reader(rows, batch, rng)
        loss = self.objective(reading, self.model.decide(reading))
        loss.backward()
        if self.config.clip:
            shrink(self.model, self.config.clip)
        if self.optimiser is not None:
            self.optimiser.step()
            self.optimiser.zero_grad(set_to_none=True)
        if self.rows is not None:
            self.rows.step()
        total = float(loss.detach())
        return total if self.objective.sums else total * len(rows)

    def end_epoch(self, dev: dict[str, float]) -> bool:
        """Write down what the epoch came to; whether it is the one to keep."""
        done = {"epoch": self.epoch, "loss": self.loss / (len(self.train) * self.passes), "dev": dev}
        history, keeps = self.record.history, self.objective.keeps
        history.append(done)
        # An epoch too early to be kept is kept where there is no other.
        ripe = self.epoch >= min(keeps.earliest, self.epochs)
        kept = ripe and (not self.record.chosen or keeps.improves(done, history[self.record.chosen - 1]))
        if kept:
            self.record.chosen = self.epoch
        self.epoch, self.step, self.loss = self.epoch + 1, 0, 0.0
        return kept

    def _score(self, split: AbstractSplit) -> dict[str, float]:
        return scores(split.labels, distribution(split_logits(self.model, split)).numpy())

    def save(self) -> None:
        """Keep where the training stands, where there is a place to keep it."""
        if self.checkpoint is None:
            return
        begun = time.monotonic()
        tensors = {f"model/{k}": v for k, v in self.model.state_dict().items()}
        tensors |= {f"best/{k}": v for k, v in (self.best or {}).items()}
        if self.rows is not None:
            tensors |= {f"rows/{k}": v for k, v in self.rows.state().items()}
        if self.optimiser is not None:
            for number, state in self.optimiser.state_dict()["state"].items():
                tensors |= {f"adam/{number}/{k}": v for k, v in state.items()}
        self.checkpoint.save(
            tensors,
            {"epoch": self.epoch, "step": self.step, "loss": self.loss, "record": asdict(self.record)},
        )
        self._saved = time.monotonic()
        self._cost = self._saved - begun

    def resume(self) -> None:
        """Go on from the last save, where there is one."""
        found = None if self.checkpoint is None else self.checkpoint.load()
        if found is None:
            return
        tensors, notes = found

        def under(prefix: str) -> dict[str, Tensor]:
            return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}

        self.model.load_state_dict(under("model/"))
        self.best = under("best/") or None
        if self.rows is not None:
            self.rows.restore(under("rows/"))
        if self.optimiser is not None:
            state: dict[int, dict[str, Tensor]] = {}
            for name, tensor in under("adam/").items():
                number, key = name.split("/")
                state.setdefault(int(number), {})[key] = tensor
            self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": state})
        self.epoch, self.step, self.loss = notes["epoch"], notes["step"], notes["loss"]
        self.record = Record(**notes["record"])
