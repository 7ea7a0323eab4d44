"""A model that answers as another does while it looks elsewhere (Wiegreffe & Pinter 2019).

Per text, `0.5 TVD(y, y_base) - lambda KL(a || a_base)`, summed over the batch. The half is that of the
published code, which takes half of |dy| for one sigmoid output; several classes get the same unit, so that
lambda means the same everywhere (A6, A31). That code also multiplies the batch's sum by the sum of the class
weights of its texts; we do not: it rescales the step of a whole batch, which Adam hardly notices, and
weighs no text against another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from attentest.model.divergence import total_variation
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Reading
from attentest.model.training.selection import LowestLoss, SelectionRule
from attentest.refusal import Refusal
from attentest.shapes import Logits

LEAST = 1e-10  # of a base weight that is no softmax: where the base gives nothing, KL would be infinite


@final
@dataclass(frozen=True)
class Said:
    """What the base said of one text: the probabilities of outcomes, the logarithms of its weights."""

    outcome: Float[Tensor, " outcome"]
    log_weights: Float[Tensor, " unit"]


def said(rows: Iterable[Mapping[Any, Any]], projection: str) -> dict[str, Said]:
    """What a base of that projection said, from rows with `id, logits, weights, scores`, by text id."""
    return {row["id"]: Said(_outcome(row), _log_weights(row, projection)) for row in rows}


def _outcome(row: Mapping[str, Any]) -> Float[Tensor, " outcome"]:
    return distribution(_tensor(row["logits"])[None])[0].float()


def _log_weights(row: Mapping[str, Any], projection: str) -> Float[Tensor, " unit"]:
    """A softmax has its logarithm in its scores, long after the weight itself is 0 in float32."""
    if projection != "softmax":
        return _tensor(row["weights"]).clamp_min(LEAST).log().float()
    if "scores" not in row:
        raise Refusal(
            "imitated readings",
            got="weights without the scores they were made of",
            needs="scores too: a weight that underflowed has no logarithm",
            way_out="Let the experiment name the model to imitate; its readings then come with scores.",
        )
    return _tensor(row["scores"]).log_softmax(-1).float()


def _tensor(numbers: Any) -> Tensor:
    return torch.from_numpy(np.array(numbers, dtype=np.float64))


def kullback_leibler(
    p: Float[Tensor, "batch unit"], log_q: Float[Tensor, "batch unit"]
) -> Float[Tensor, " batch"]:
    """KL(p || q) of each row, with q by its logarithm; a zero of p contributes nothing."""
    # Zeros leave before the logarithm, not after: backward would turn 0 * inf into NaN.
    return (p * (p.masked_fill(p == 0, 1.0).log() - log_q)).sum(-1)


@final
class Imitation:
    """The loss of a training that knows no labels, only what the base said of its texts."""

    sums = True
    keeps: SelectionRule = LowestLoss()

    def __init__(self, factor: float, base: Mapping[str, Said], ids: Sequence[str]) -> None:
        self.factor, self.base = factor, base
        for name in ids:
            if name not in base:
                raise Refusal(
                    f"imitated readings of text {name!r}",
                    got="none",
                    needs="what the imitated model said of every training text, under the text's id",
                    way_out="Store its readings of every split of the same corpus first.",
                )

    def __call__(self, reading: Reading, logits: Logits) -> Float[Tensor, ""]:
        """The sum over the batch."""
        told = [self.base[name] for name in reading.batch.ids]
        self._check_lengths(told, reading)
        outcome = torch.stack([each.outcome for each in told]).to(logits)
        log_weights = pad_sequence([each.log_weights for each in told], batch_first=True).to(logits)
        apart = 0.5 * total_variation(distribution(logits), outcome)
        return (apart - self.factor * kullback_leibler(reading.weights, log_weights)).sum()

    def _check_lengths(self, told: Sequence[Said], reading: Reading) -> None:
        lengths = reading.mask.sum(1).tolist()
        for name, each, length in zip(reading.batch.ids, told, lengths, strict=True):
            if len(each.log_weights) != length:
                raise Refusal(
                    f"imitated readings of text {name!r}",
                    got=f"{len(each.log_weights)} weights for {length} units",
                    needs="one weight for each unit of attention",
                    way_out="Imitate a model that reads the same text in the same units.",
                )
