"""What every member of a fleet learns from: labels, or what a base said; and the weights it may look up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from attentest.fleet.shelf import Rows, Shelf
from attentest.model.divergence import total_variation
from attentest.model.networks.decoder import distribution
from attentest.model.training.imitation import Imitation, kullback_leibler
from attentest.model.training.loop import Training
from attentest.model.training.objective import Objective, Task

Losses = Float[Tensor, " model"]


@final
class Bases:
    """What the imitated models said of the training texts, and which of them each member imitates."""

    def __init__(self, tasks: Sequence[Objective], train: Shelf, device: torch.device) -> None:
        imitations = [task for task in tasks if isinstance(task, Imitation)]
        bases = {id(task.base): task.base for task in imitations}
        number = {base: place for place, base in enumerate(bases)}
        of_each = [number[id(task.base)] if isinstance(task, Imitation) else 0 for task in tasks]
        self.of_member = torch.tensor(of_each, device=device)
        outcomes, weights = [], []
        for base in bases.values():
            told = [base[name] for name in train.ids]
            outcomes.append(torch.stack([one.outcome for one in told]))
            weights.append(train.laid({n: one.log_weights for n, one in zip(train.ids, told, strict=True)}))
        self.outcome = torch.stack(outcomes).to(device) if outcomes else None
        self.log_weights = torch.stack(weights).to(device) if weights else None

    def said(self, at: Rows, longest: int) -> tuple[Tensor, Tensor]:
        """Outcomes and logarithms of weights of each member's own base on its own texts."""
        assert self.outcome is not None and self.log_weights is not None
        of_base = self.of_member[:, None]
        return self.outcome[of_base, at], self.log_weights[of_base, at, :longest]


@final
class Lessons:
    """The losses of the members on their own texts: what `Task` and `Imitation` are of one model."""

    def __init__(self, members: Sequence[Training], train: Shelf, device: torch.device) -> None:
        self.binary = members[0].config.decoder == "sigmoid"
        self.labels = torch.stack([torch.from_numpy(member.train.labels) for member in members]).to(device)
        tasks = [member.objective for member in members]
        self.bases = Bases(tasks, train, device)
        self.imitates = torch.tensor([isinstance(task, Imitation) for task in tasks], device=device)
        self.sums = torch.tensor([task.sums for task in tasks], device=device)
        weights = [float(task.positive_weight) if isinstance(task, Task) else 1.0 for task in tasks]
        self.positive_weight = torch.tensor(weights, device=device)
        factors = [task.factor if isinstance(task, Imitation) else 0.0 for task in tasks]
        self.factor = torch.tensor(factors, device=device)
        self._count()

    def _count(self) -> None:
        self.some, self.all = bool(self.imitates.any()), bool(self.imitates.all())

    def keep(self, index: Int[Tensor, " kept"]) -> None:
        """Go on with some of the members."""
        for name in ("labels", "imitates", "sums", "positive_weight", "factor"):
            setattr(self, name, getattr(self, name)[index])
        self.bases.of_member = self.bases.of_member[index]
        self._count()

    def losses(self, logits: Tensor, weights: Tensor, rows: Rows) -> Losses:
        """One for each member; a text that is none counts nothing."""
        real = (rows >= 0).to(logits.dtype)
        at = rows.clamp_min(0)
        if not self.some:
            return self._of_labels(logits, self.labels.gather(1, at), real)
        apart = self._of_bases(logits, weights, at, real)
        if self.all:
            return apart
        return torch.where(self.imitates, apart, self._of_labels(logits, self.labels.gather(1, at), real))

    def summed(self, losses: Losses, rows: Rows) -> Losses:
        """Over the texts of the batch, for the losses that average them, too."""
        return torch.where(self.sums, losses, losses * (rows >= 0).sum(1)).double()

    def _of_labels(self, logits: Tensor, labels: Tensor, real: Tensor) -> Losses:
        if self.binary:
            by_text = functional.binary_cross_entropy_with_logits(
                logits[..., 0],
                labels.to(logits.dtype),
                pos_weight=self.positive_weight[:, None],
                reduction="none",
            )
            return (by_text * real).sum(1)
        by_text = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        return (by_text.view_as(real) * real).sum(1) / real.sum(1)

    def _of_bases(self, logits: Tensor, weights: Tensor, at: Rows, real: Tensor) -> Losses:
        outcome, before = self.bases.said(at, weights.shape[2])
        apart = 0.5 * total_variation(distribution(logits), outcome)
        moved = kullback_leibler(weights.flatten(0, 1), before.flatten(0, 1)).view_as(real)
        return ((apart - self.factor[:, None] * moved) * real).sum(1)


@final
class Guides:
    """The weights of the members that look theirs up, who stand side by side."""

    def __init__(self, members: Sequence[Training], shelf: Shelf, device: torch.device) -> None:
        looking = [n for n, member in enumerate(members) if member.model.projection.name == "stored"]
        self.begin, self.end = min(looking, default=0), max(looking, default=-1) + 1
        laid = [shelf.laid(members[n].model.guide or {}) for n in looking]
        self.laid = torch.stack(laid).to(device) if laid else None

    def stored(self, rows: Rows, longest: int) -> Tensor | None:
        """What each member looks up for its texts; nothing for those that do not."""
        if self.laid is None:
            return None
        found = self.laid.new_zeros(*rows.shape, longest)
        own = torch.arange(self.end - self.begin, device=rows.device)[:, None]
        found[self.begin : self.end] = self.laid[own, rows[self.begin : self.end].clamp_min(0), :longest]
        return found
