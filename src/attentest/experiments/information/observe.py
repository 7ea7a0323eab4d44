"""Do the words that get more attention tell more about the output?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Int
from torch import Tensor

from attentest.evidence.information.neighbours import neighbours
from attentest.experiments.contract import Row, Subject
from attentest.experiments.information import ABOUT
from attentest.experiments.information.conclude import LISTS
from attentest.experiments.shared.by_rank import AbstractByRank, Columns, Vectors, by_text
from attentest.experiments.shared.controls import AbstractBesideControls
from attentest.refusal import Refusal


@final
@dataclass(frozen=True, kw_only=True)
class Information(AbstractByRank, AbstractBesideControls):
    """Mutual information of hidden states and output at each rank of attention (Wen et al. 2022, WE-1).

    `neighbours` is for the estimate without clusters. `noise` reads with training's noise, as of
    Gumbel-softmax, which is off otherwise (A24). The other parameters are those of every such measurement.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1
    lists: ClassVar[tuple[str, ...]] = LISTS

    neighbours: int = 3
    noise: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.neighbours < 1:
            raise Refusal(
                "experiment information",
                got=f"{self.neighbours} neighbours",
                needs="at least 1",
                way_out="3 is the default.",
            )

    def ask(self, subject: Subject, rng: torch.Generator) -> Iterator[Row]:
        """One row a text. A text that is left out has the output -1, and no lists."""
        yield from self.measured(self.read(subject, rng if self.noise else None), rng)

    def told(self, vectors: Vectors, output: Int[Tensor, " text"]) -> Columns:
        """Who is near whom."""
        near = [neighbours(of_rank, output, self.neighbours) for of_rank in vectors]
        return {
            "alike": by_text(torch.stack([one.alike for one in near])),
            "within": by_text(torch.stack([one.within for one in near])),
        }
