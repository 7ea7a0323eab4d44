"""What a training descends: one object per loss, with its own rule of which epoch is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, final, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from attentest.model.batch import AbstractSplit, Batch
from attentest.model.impermissible import Impermissible
from attentest.model.losses import IMITATE, TASK, Loss
from attentest.model.network import AttentionModel
from attentest.model.networks.log_odds import LOG_ODDS, LogOddsAttention, Regulariser
from attentest.model.seam import Reading
from attentest.model.training.imitation import Imitation, Said
from attentest.model.training.selection import BestOnDev, BestOnDevThenLoss, SelectionRule
from attentest.refusal import Refusal
from attentest.shapes import Logits


@runtime_checkable
class Objective(Protocol):
    """A loss of one batch."""

    sums: bool  # whether it adds up the batch's texts, or averages them
    keeps: SelectionRule

    def __call__(self, reading: Reading, logits: Logits) -> Float[Tensor, ""]:
        """The loss, in the graph."""
        ...


@runtime_checkable
class Penalty(Protocol):
    """What attention costs, on top of the task's loss."""

    def __call__(self, weights: Float[Tensor, "batch token"], batch: Batch) -> Float[Tensor, " batch"]:
        """What each text adds."""
        ...


@final
class Task:
    """The gold labels, and perhaps a penalty, reduced as the labels' loss is.

    One logit: positives weighted by how rare they are, summed over the batch. Several: cross-entropy,
    averaged. Both as published.
    """

    def __init__(self, model: AttentionModel, split: AbstractSplit, penalty: Penalty | None = None) -> None:
        self.penalty = penalty
        self.sums = model.config.decoder == "sigmoid"
        measure = "auc" if self.sums else "accuracy"
        hides = isinstance(penalty, Impermissible)
        self.keeps: SelectionRule = BestOnDevThenLoss(measure) if hides else BestOnDev(measure)
        positive = max(int((split.labels == 1).sum()), 1)
        self.positive_weight = torch.tensor(len(split) / positive - 1.0, device=model.device)

    def __call__(self, reading: Reading, logits: Logits) -> Float[Tensor, ""]:
        """The batch's loss."""
        loss = self._of_labels(logits, reading.batch.labels)
        if self.penalty is None:
            return loss
        added = self.penalty(reading.weights, reading.batch)
        return loss + (added.sum() if self.sums else added.mean())

    def _of_labels(self, logits: Tensor, labels: Tensor) -> Tensor:
        if self.sums:
            return functional.binary_cross_entropy_with_logits(
                logits[:, 0], labels.to(logits.dtype), pos_weight=self.positive_weight, reduction="sum"
            )
        return functional.cross_entropy(logits, labels)


def objective(
    model: AttentionModel, split: AbstractSplit, base: Mapping[str, Said] | None = None
) -> Objective:
    """The loss the model's configuration names; `base` is what an imitated model said of these texts."""
    loss = Loss.parse(model.config.loss)
    if loss.name != IMITATE:
        return Task(model, split, _penalty(loss, model, split))
    if base is None:
        raise Refusal(
            f"loss {model.config.loss!r}",
            got="no model to imitate",
            needs="what that model said of the training texts",
            way_out="Give train() the model as `imitated`, or let an experiment name it.",
        )
    return Imitation(loss.factor, base, [example.id for example in split.examples])


def _penalty(loss: Loss, model: AttentionModel, split: AbstractSplit) -> Penalty | None:
    """None where a loss adds nothing to the task's, so that nothing is fitted in vain."""
    if loss.name == TASK or not loss.factor:
        return None
    if loss.name == LOG_ODDS:
        return Regulariser(loss.factor, LogOddsAttention.fitted(split, model.vocabulary)).to(model.device)
    return Impermissible(loss.factor, split.examples, loss.of)
