"""Can attention move while all else stays, or must the information move with it?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
import torch

from attentest.evidence.adversary.free import FreeAdversary
from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.experiments.frozen_adversary import ABOUT
from attentest.experiments.frozen_adversary.conclude import FREE, FROZEN, KINDS, UNFROZEN
from attentest.experiments.shared.controls import controls
from attentest.experiments.shared.distance_to_base import NAN, Base, other_seeds
from attentest.experiments.shared.numbered import number_in
from attentest.experiments.trained_adversary.observe import imitating, sweep
from attentest.model.config import ModelConfig
from attentest.refusal import Refusal

ALL_BUT_ATTENTION = ("embedding", "encoder", "decoder")
FAR, FAST = 100.0, 1000.0  # a start whose attention is peaked, and a rate that brings it to other peaks


@final
@dataclass(frozen=True, kw_only=True)
class FrozenAdversary(AbstractExperiment):
    """Adversaries that keep the base's states and decoder, and those that may learn their own (ME-5).

    Frozen has two readings (A33): `frozen`, a new attention trained within the base, and `free`, weights of
    each text's own without any attention that would have to produce them. `unfrozen` is trained from
    scratch. The loss is that of trained adversaries (WP-4) for each lambda, which the paper does not give.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1

    lambdas: str = "1e-4 1e-3 5e-3 1e-2 5e-2"
    others: int = 2
    starts: int = 10
    steps: int = 200

    def __post_init__(self) -> None:
        for strength in sweep(self.lambdas):
            FreeAdversary(strength=strength, starts=self.starts, steps=self.steps)
        if self.others < 1:
            raise Refusal(
                "experiment frozen-adversary",
                got=f"{self.others} other seeds",
                needs="at least 1, to tell an adversary from a training anew",
                way_out="2 are the default.",
            )

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """The frozen and the unfrozen adversaries, the other seeds and the controls."""
        strengths = sweep(self.lambdas)
        return {
            **{f"{FROZEN}{strength:g}": _frozen(config, strength) for strength in strengths},
            **{f"{UNFROZEN}{strength:g}": imitating(config, strength) for strength in strengths},
            **other_seeds(config, self.others),
            **controls(config),
        }

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text and point.

        `subject` is `trained` (the base), `frozen lambda X`, `free lambda X`, `unfrozen lambda X`, `seed N`
        or a control; `lambda` its number, NaN for others; `jsd` and `tvd` are of attention and output
        against the base's.
        """
        draw = torch.Generator().manual_seed(int(rng.integers(2**63)))
        for base in Base.each(subject):
            yield from _numbered("trained", base.told("trained", subject, base.reading))
            for name, other in subject.sibling.items():
                yield from _numbered(name, base.told(name, other, base.read_by(other)))
            for strength in sweep(self.lambdas):
                search = FreeAdversary(strength=strength, starts=self.starts, steps=self.steps)
                with torch.no_grad():
                    weights = search.run(subject.network, base.reading, rng=draw)
                name = f"{FREE}{strength:g}"
                yield from _numbered(name, base.told(name, subject, base.under(weights)))


def _frozen(config: ModelConfig, strength: float) -> ModelConfig:
    """Only attention is trained, from a start of its own.

    At the base's own attention KL is at its least and the output has not moved: both slopes are zero, and a
    training that began there would stay. Nearby it is hardly better: the change of output costs as far as
    attention moves, KL pays for that squared, so around the base lies a basin that gradients lead back into,
    whatever lambda. Attention as it is drawn is flat, and so is that of a base that learnt slowly: there the
    start lies in the basin. So where a choice of rates is given, another start far outside and a rate that
    gets from there anywhere are tried, too; the lowest loss on dev decides, which may be to stay.
    """
    adversary = imitating(config, strength)
    frozen = replace(adversary, start_from="subject", reset=("attention",), freeze=ALL_BUT_ATTENTION)
    if not config.attention_rates:
        return frozen
    rates = tuple(sorted({*config.attention_rates, FAST}))
    return replace(frozen, attention_rates=rates, attention_starts=(1.0, FAR))


def _numbered(name: str, rows: list[Row]) -> Iterator[Row]:
    number = next((number_in(name, kind) for kind in KINDS if name.startswith(kind)), NAN)
    yield from ({**row, "lambda": number} for row in rows)
