"""Which epoch of a training is kept, and when another would be no use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, final, runtime_checkable

Epoch = Mapping[str, Any]  # as the record's history has it: epoch, loss, dev (empty where nobody asks)


@runtime_checkable
class SelectionRule(Protocol):
    """A rule that needs the history alone, so that a resumed training keeps what an undisturbed one would."""

    earliest: ClassVar[int]  # the first epoch that may be kept
    asks_dev: ClassVar[bool]  # whether scores on dev decide anything; where not, no epoch is scored

    def score(self, epoch: Epoch) -> float:
        """How far this epoch got; more is better."""
        ...

    def improves(self, epoch: Epoch, kept: Epoch) -> bool:
        """Whether it is to be kept instead."""
        ...

    def should_stop(self, history: Sequence[Epoch], chosen: int, patience: int) -> bool:
        """Whether training ends here."""
        ...


@dataclass(frozen=True)
class AbstractBestOnDev(ABC):
    """The epoch that did best on dev by a measure; the first is never kept, as published."""

    measure: str
    earliest: ClassVar[int] = 2
    asks_dev: ClassVar[bool] = True

    def score(self, epoch: Epoch) -> float:
        """The measure."""
        return epoch["dev"][self.measure]

    @abstractmethod
    def improves(self, epoch: Epoch, kept: Epoch) -> bool:
        """Whether it is to be kept instead."""

    @abstractmethod
    def should_stop(self, history: Sequence[Epoch], chosen: int, patience: int) -> bool:
        """Whether training ends here."""


@final
@dataclass(frozen=True)
class BestOnDev(AbstractBestOnDev):
    """The rule of the published protocol."""

    def improves(self, epoch: Epoch, kept: Epoch) -> bool:
        """AUC says nothing of the threshold, so of two epochs with the same the more accurate wins."""
        merits = ((self.score(each), each["dev"]["accuracy"]) for each in (epoch, kept))
        return next(merits) > next(merits)

    def should_stop(self, history: Sequence[Epoch], chosen: int, patience: int) -> bool:
        """Perfect on dev, or no better for more than `patience` epochs."""
        perfect = history[-1]["dev"]["accuracy"] == 1.0 and len(history) >= self.earliest
        return perfect or len(history) - chosen > patience


@final
@dataclass(frozen=True)
class BestOnDevThenLoss(AbstractBestOnDev):
    """The same where attention is penalised: dev is blind to a penalty that works on when dev is perfect."""

    def improves(self, epoch: Epoch, kept: Epoch) -> bool:
        """Of two epochs that do as well on dev, the one with the lower training loss."""
        if self.score(epoch) == self.score(kept):
            return epoch["loss"] < kept["loss"]
        return self.score(epoch) > self.score(kept)

    def should_stop(self, history: Sequence[Epoch], chosen: int, patience: int) -> bool:
        """No better for more than `patience` epochs."""
        return len(history) - chosen > patience


@final
@dataclass(frozen=True)
class LowestLoss:
    """The epoch with the lowest training loss: dev says nothing of a loss that knows no labels."""

    earliest: ClassVar[int] = 1
    asks_dev: ClassVar[bool] = False

    def score(self, epoch: Epoch) -> float:
        """How low."""
        return -epoch["loss"]

    def improves(self, epoch: Epoch, kept: Epoch) -> bool:
        """Strictly lower."""
        return epoch["loss"] < kept["loss"]

    def should_stop(self, history: Sequence[Epoch], chosen: int, patience: int) -> bool:
        """No lower for `patience` epochs."""
        return len(history) - chosen >= patience
