"""What an experiment is called, what it asks, and what a page shows of it first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, final, runtime_checkable

import numpy as np
import pandas as pd

from attentest.statistics.card import Card
from attentest.statistics.record import Finding


@final
@dataclass(frozen=True, kw_only=True)
class Description:
    """An experiment in words. Every experiment has one in its `__init__.py`, under the name `ABOUT`."""

    name: str
    title: str
    asks: str  # the question, as a page puts it
    cite: str  # a key of references.bib
    main: Mapping[str, str] = field(default_factory=dict)  # measures an overview shows, with its headings
    setting: str = "ε"  # what a number after an @ in the name of a measure is


@runtime_checkable
class Conclude(Protocol):
    """From the rows of all seeds (column `seed`) to findings."""

    def __call__(self, rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
        """Deterministic for an `rng`, blind to the order of rows."""
        ...


@final
@dataclass(frozen=True)
class Conclusion:
    """How rows become findings, without torch. `version` changes when the findings would."""

    conclude: Conclude
    version: int
    about: Description
    cards: Mapping[str, Card]  # by experiment/measure; a name that ends in @0.01 shares the card without it
    columns: Sequence[str]  # that every row has
