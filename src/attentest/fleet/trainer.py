"""Many trainings at once: siblings that differ in numbers alone go through every step together.

A study trains hundreds of small models of one shape. On a GPU each alone is a queue of tiny products; a fleet
makes the same steps, on the same batches, with the same draws, for all of its trainings in little more than
the time of one. A training that is over leaves, the others go on. What a member becomes is what it would
have become alone, up to rounding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.corpus.vocabulary import END, PAD, START
from attentest.fleet.held_states import held_states
from attentest.fleet.lessons import Guides, Lessons
from attentest.fleet.plan import Plan
from attentest.fleet.replayed import Replayed
from attentest.fleet.shelf import Rows, Shelf
from attentest.fleet.stack import ATTENTIONS, Read, Stack, StackedBatch
from attentest.fleet.stacked_adam import StackedAdam
from attentest.fleet.stacked_hierarchy import Measures
from attentest.fleet.stacked_rows import StackedRows
from attentest.fleet.state import gather, scatter
from attentest.model.batch import IndexedSplit, buckets
from attentest.model.config import ModelConfig
from attentest.model.losses import IMITATE, TASK, Loss
from attentest.model.networks.decoder import distribution
from attentest.model.precision import fast_products, full_precision
from attentest.model.training.loop import SAVING, Training
from attentest.statistics.scores import scores

# What members may differ in; in all else they are alike.
FREE: dict[str, Any] = {
    "seed": 0,
    "vectors": "random",
    "projection": "softmax",
    "guide": None,
    "start_from": None,
    "reset": (),
    "labels": "gold",
    "loss": TASK,
    "epochs": 1,
    "patience": 1,
    "attention_rate": 1.0,
    "attention_start": 1.0,
}
TEXTS = 64  # of each member in one pass while a split is scored
ROWS = 2**18  # of the table, brought up to date at once
WORTH_MOVING = 0.8  # where no more than this share of the members goes on, the rest is let go


class Looked(NamedTuple):
    """The words that a batch looked up: their vectors, and which rows of the table these are."""

    vectors: Float[Tensor, "row emb"]
    rows: Int[Tensor, " row"]


def signature(config: ModelConfig) -> ModelConfig | None:
    """Trainings of one signature can be one fleet; None where a training must go alone."""
    unusual = config.dropout or config.clip or config.halving or config.omit
    choosing = config.attention_rates or config.attention_starts
    if unusual or choosing or config.attention not in ATTENTIONS or not config.epochs:
        return None
    loss = Loss.parse(config.loss).name
    if loss not in (TASK, IMITATE):
        return None
    # What is looked up, drawn or imitated is laid beside tokens here, and a hierarchy weighs sentences.
    beside = loss == IMITATE or config.projection.startswith(("stored", "gumbel"))
    if beside and config.encoder.startswith("han-"):
        return None
    frozen = tuple(part for part in config.freeze if part == "embedding")
    return replace(config, **FREE, freeze=frozen)


@final
class Fleet:
    """Trainings of one signature on one corpus, all at the same step, new or resumed."""

    def __init__(self, trainings: Sequence[Training]) -> None:
        assert len({(signature(each.config), each.epoch, each.step) for each in trainings}) == 1
        self.members = sorted(trainings, key=lambda training: training.config.projection)
        first = self.members[0]
        self.batch_size, self.device = first.batch_size, first.model.device
        self.train, self.dev = Shelf(first.train, self.device), Shelf(first.dev, self.device)
        test = IndexedSplit(first.corpus.test, first.model.vocabulary, first.corpus.labels)
        self.test = Shelf(test, self.device)
        self.markers = torch.tensor([START, END], device=self.device)
        self.stack = Stack([member.model for member in self.members])
        rates = self._rates()
        self.stack.hold([name for name, rate in rates.items() if not rate.any()])
        self.optimiser = StackedAdam(self.stack.parameters, rates, self._decays())
        self.rows = None
        if "embedding" not in first.config.freeze:
            self.rows = StackedRows(
                self.stack.table,
                lr=first.learning_rate,
                weight_decay=first.config.weight_decay,
                total_steps=first.steps * max(member.epochs for member in self.members),
            )
        gather(self.members, self.optimiser, self.rows)
        self.lessons = Lessons(self.members, self.train, self.device)
        self.guides = self._guides(self.train, self.dev)
        self.held = held_states(self.stack, self.train, frozen_words=self.rows is None)
        self.losses = torch.zeros(len(self.members), dtype=torch.float64, device=self.device)
        self.learn = Replayed(self._learn)
        self._saved, self._cost = time.monotonic(), 0.0

    def _guides(self, *shelves: Shelf) -> dict[Shelf, Guides]:
        return {shelf: Guides(self.members, shelf, self.device) for shelf in shelves}

    def _rates(self) -> dict[str, Float[Tensor, " model"]]:
        """The learning rate of every parameter of every member; what is frozen has none."""
        found = {}
        for name in self.stack.parameters:
            part = name.partition(".")[0].removeprefix("query_")
            rates = [_rate(member, part) for member in self.members]
            found[name] = torch.tensor(rates, dtype=torch.float64, device=self.device)
        return found

    def _decays(self) -> dict[str, float]:
        decay = self.members[0].config.weight_decay
        return {name: 0.0 if name.startswith("attention.") else decay for name in self.stack.parameters}

    def run(
        self,
        on_end: Callable[[Training], None] = lambda training: None,
        on_step: Callable[[int], None] = lambda step: None,
    ) -> None:
        """Train all to their ends. `on_end` gets every member as it ends, its model as it was when best."""
        with fast_products():
            while self.members:
                self._run_epoch(on_step)
                self._let_go(on_end)

    def _run_epoch(self, on_step: Callable[[int], None]) -> None:
        plan = Plan(self.members, self.train)
        self.losses.copy_(torch.tensor([member.loss for member in self.members], dtype=torch.float64))
        for step in range(self._step(), len(plan)):
            self.learn(*plan.given(step))
            self._after(step, on_step)
        if self.rows is not None:
            everything = torch.arange(len(self.stack.table), device=self.device)
            for some in everything.split(ROWS):
                self.rows.catch_up(some)
        asking = [member.objective.keeps.asks_dev for member in self.members]
        dev = self._scores(self.stack, self.dev, self.guides[self.dev], self.members) if any(asking) else []
        for number, (member, loss) in enumerate(zip(self.members, self.losses.tolist(), strict=True)):
            if not member.is_over():
                member.loss = loss
                if member.end_epoch(dev[number] if asking[number] else {}):
                    member.best = self.stack.state(number)

    def _step(self) -> int:
        """How many steps of the epoch are taken: the same of all whose training is not over."""
        return next(member.step for member in self.members if not member.is_over())

    def _after(self, step: int, on_step: Callable[[int], None]) -> None:
        """Between two steps: tell, and keep what there is, now and then or when interrupted."""
        try:
            on_step(step + 1)
            first = self.members[0]
            due = time.monotonic() - self._saved > max(first.save_every, SAVING * self._cost)
            if first.checkpoint is not None and due:
                self._save(step + 1)
        except KeyboardInterrupt:
            self._save(step + 1)
            raise

    def _save(self, step: int) -> None:
        begun = time.monotonic()
        scatter(self.members, self.stack, self.optimiser, self.rows)
        for member, loss in zip(self.members, self.losses.tolist(), strict=True):
            if not member.is_over():
                was = member.step, member.loss
                member.step, member.loss = step, loss
                member.save()
                member.step, member.loss = was
        self._saved = time.monotonic()
        self._cost = self._saved - begun

    def _learn(self, rows: Rows, width: Tensor, *more: Tensor) -> None:
        """One step of all members on what a `Plan` has given; shapes decide all."""
        longest = len(width)
        stored = self.guides[self.train].stored(rows, longest)
        room = Measures(*map(len, more)) if self.stack.is_hierarchical() else None
        noise = more[0] if more and room is None else None
        batch = self.train.batch(rows, longest, room=room, stored=stored, noise=noise)
        read, looked = (self.held.read(rows, batch), None) if self.held is not None else self._read(batch)
        weights = self.stack.weigh(read, batch)
        logits = self.stack.decide(read, weights, batch)
        losses = self.lessons.losses(logits, weights, rows)
        self._descend(losses.sum(), looked)
        self.losses += self.lessons.summed(losses.detach(), rows)

    def _read(self, batch: StackedBatch) -> tuple[Read, Looked]:
        """What the members make of a batch, and the words they made it of."""
        frames = self.stack.frames(batch)
        # Every batch reads the markers, even if its encoder does not: decay acts on what is read.
        words = [*(places for places, _ in frames), self.markers.expand(len(self.members), 1, -1)]
        numbered = torch.cat([(each + self.stack.offsets).flatten() for each in words])
        # The vector of padding is zero, and no part of any model.
        named = numbered.masked_fill(numbered % self.stack.rows == PAD, -1)
        if self.rows is not None:
            self.rows.catch_up(named)
        looked = self.stack.table[numbered].requires_grad_(self.rows is not None)
        found = iter(looked.split([each.numel() for each in words]))
        read = self.stack.read(batch, frames, lambda asked: next(found).view(*asked.shape, -1))
        return read, Looked(looked, named)

    def _descend(self, loss: Tensor, looked: Looked | None) -> None:
        """One step of everything that moves; rows of the table move where words were looked at."""
        names = [name for name, parameter in self.stack.parameters.items() if parameter.requires_grad]
        leaves = [self.stack.parameters[name] for name in names]
        if self.rows is not None and looked is not None:
            leaves.append(looked.vectors)
        slopes = dict(zip([*names, ""], torch.autograd.grad(loss, leaves, allow_unused=True), strict=False))
        of_rows = slopes.pop("", None)
        moving = {name: slope for name, slope in slopes.items() if slope is not None}
        self.optimiser.step(list(moving), list(moving.values()))
        if self.rows is not None and looked is not None and of_rows is not None:
            self.rows.move(looked.rows, of_rows)

    def _let_go(self, on_end: Callable[[Training], None]) -> None:
        """Those whose training is over end; they leave once they are enough to be worth moving the rest."""
        ended = [each for each in self.members if each.is_over() and not each.record.scores]
        if ended:
            self._score(ended)
        for member in ended:
            on_end(member)
        staying = [n for n, member in enumerate(self.members) if not member.is_over()]
        if not staying or len(staying) > WORTH_MOVING * len(self.members):
            self.members = self.members if staying else []
            return
        index = torch.tensor(staying, device=self.device)
        self.members = [self.members[n] for n in staying]
        self.learn.forget()
        self.losses = self.losses[index]
        self.stack.keep(staying)
        self.optimiser.keep(self.stack.parameters, index)
        if self.rows is not None:
            self.rows.keep(self.stack.table, self.stack.blocks(index))
        self.lessons.keep(index)
        if self.held is not None:
            self.held.keep(index)
        self.guides = self._guides(self.train, self.dev)

    def _score(self, ended: Sequence[Training]) -> None:
        """Models as they were at the epoch that was kept, on dev and test.

        In full precision, as they will be read from the store: at a border of a sparse projection ten bits
        decide whether a token has weight.
        """
        for member in ended:
            if member.best is not None:
                member.model.load_state_dict(member.best)
        stack = Stack([member.model for member in ended])
        for name, shelf in (("dev", self.dev), ("test", self.test)):
            with full_precision():
                found = self._scores(stack, shelf, Guides(ended, shelf, self.device), ended)
            for member, own in zip(ended, found, strict=True):
                member.record.scores[name] = own

    @torch.no_grad()
    def _scores(
        self, stack: Stack, shelf: Shelf, guides: Guides, members: Sequence[Training]
    ) -> list[dict[str, float]]:
        """Accuracy, F1 and AUC of every model of a stack; each member has its own labels for dev."""
        order = buckets(shelf.lengths, TEXTS)
        logits = torch.cat([_logits(stack, shelf, guides, rows) for rows in order], dim=1)
        place = torch.from_numpy(np.argsort(np.concatenate(order))).to(self.device)
        probabilities = distribution(logits[:, place].flatten(0, 1)).unflatten(0, (len(logits), -1))
        labels = [member.dev.labels if shelf is self.dev else shelf.labels for member in members]
        return [scores(gold, own) for gold, own in zip(labels, probabilities.cpu().numpy(), strict=True)]


def _rate(member: Training, part: str) -> float:
    if part in member.config.freeze:
        return 0.0
    return member.learning_rate * (member.config.attention_rate if part == "attention" else 1.0)


def _logits(
    stack: Stack, shelf: Shelf, guides: Guides, texts: Int[np.ndarray, " text"]
) -> Float[Tensor, "model text class"]:
    rows = torch.from_numpy(texts).to(stack.table.device).expand(len(stack), -1)
    longest = int(shelf.lengths[texts].max())
    room = shelf.measures(texts[None]) if stack.is_hierarchical() else None
    batch = shelf.batch(rows, longest, room=room, stored=guides.stored(rows, longest))
    read = stack.read(batch, stack.frames(batch), stack.look_up)
    return stack.decide(read, stack.weigh(read, batch), batch)
