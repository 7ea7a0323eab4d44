"""How much does the agreement of attention and information depend on what the paper leaves open?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, final

import numpy as np
import torch

from attentest.experiments.contract import Row, Subject
from attentest.experiments.information_ablation.conclude import FIX_ATTN, FIX_ATTN_RANDOM, FIX_ATTN_STORED
from attentest.experiments.information_sensitivity import ABOUT
from attentest.experiments.shared.ablated import check_plain, fixed_attention, gumbel
from attentest.experiments.shared.by_rank import AbstractByRank, sizes
from attentest.experiments.shared.controls import controls
from attentest.model.config import ModelConfig

# The same model, measured otherwise. Ranks by attention alone (A9) would be those of the longest texts, which
# too few have; the other side of that choice is where attention must be larger to count.
MEASURED: dict[str, dict[str, Any]] = {
    "A9: ranks by length alone": {"reach": 0.0},
    "A9: attention above 1e-3": {"least": 1e-3},
    "A9: ranks of the shortest text": {"percentile": 0.0},
    "A9: ranks of three quarters of the texts": {"percentile": 25.0},
    "A10: 50 clusters": {"clusters": "50"},
    "A10: 100 clusters": {"clusters": "100"},
    "A10: 200 clusters": {"clusters": "200"},
    "A23: clustered again": {},
    "A23: clustered once": {"restarts": 1},
    "ours: output in 2 clusters": {"outputs": 2},
    "ours: output in 10 clusters": {"outputs": 10},
}
NOISE_OFF, NOISE_ON = "A24: Gumbel 0.8, noise off", "A24: Gumbel 0.8, noise on"
READ_AS = {FIX_ATTN: "initialised", FIX_ATTN_STORED: "stored", FIX_ATTN_RANDOM: "random"}
# 128 channels over five kernels are 25 each, or 128 each.
CHANNELS: dict[str, Literal["code", "paper"]] = {
    "A29: 25 channels a kernel": "code",
    "A29: 128 channels a kernel": "paper",
}


@final
@dataclass(frozen=True, kw_only=True)
class InformationSensitivity(AbstractByRank):
    """Tau of one model under every alternative of A9 to A11, A23, A24 and A29, one change at a time.

    Each alternative is a subject of its own beside the default, which is `trained`. Some are the same model
    measured otherwise; those of A11, A24 and A29 are other models. A12 is about what a column is called and
    has no other tau. Rows of `information` stay as they are: whoever wants the table asks for it.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """Models for the alternatives that need one, and the controls."""
        check_plain(config, self.name)
        fixed = {f"A11: attention fixed, {READ_AS[n]}": c for n, c in fixed_attention(config).items()}
        return {**fixed, NOISE_OFF: gumbel(config, 0.8), **_channels(config), **controls(config)}

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text and alternative; the model is read once for all the ways to measure it."""
        deepest = max(ways.get("percentile", self.percentile) for ways in MEASURED.values())
        split = replace(self, percentile=max(deepest, self.percentile)).read(subject)
        yield from self.measured(split, _draws(rng))
        for name, changes in MEASURED.items():
            yield from _named(name, self._otherwise(changes).measured(split, _draws(rng), or_none=True))
        for name, each in subject.sibling.items():
            yield from self.measured(self.read(each), _draws(rng), or_none=True)
            if name == NOISE_OFF:
                noisy = self.read(each, _draws(rng))
                yield from _named(NOISE_ON, self.measured(noisy, _draws(rng), or_none=True))

    def _otherwise(self, changes: dict[str, Any]) -> InformationSensitivity:
        """The same measurement with these changes; more clusters may need a larger sample to fit them to."""
        most = max(sizes(changes.get("clusters", self.clusters), self.name))
        return replace(self, **changes, sample=max(self.sample, most))


def _channels(config: ModelConfig) -> dict[str, ModelConfig]:
    """Both readings of the paper's CNN, where the model is one."""
    if not config.encoder.startswith("cnn"):
        return {}
    return {name: replace(config, encoder="cnn-wen", sizes=of) for name, of in CHANNELS.items()}


def _named(name: str, rows: Iterator[Row]) -> Iterator[Row]:
    yield from ({**row, "subject": name} for row in rows)


def _draws(rng: np.random.Generator) -> torch.Generator:
    return torch.Generator().manual_seed(int(rng.integers(2**63)))
