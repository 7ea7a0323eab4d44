"""What the deciding row rests on besides the words: the first token, which causal models use as a sink, and
whatever else stands around the text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attentest.foreign.roads import TransformerReading
from attentest.foreign.transformer import TransformerModel
from attentest.model.batch import AbstractSplit
from attentest.model.reader import readings
from attentest.model.seam import Model, Reading


@final
@dataclass(frozen=True, kw_only=True)
class Resting:
    """Shares of the deciding row, mean over texts and over the heads that are asked about; their sum is 1."""

    token: str  # the first that the model reads, in most texts
    is_unit: bool  # whether it is a word of the text, in most texts
    decides: bool  # whether it is the deciding position itself, as of many encoders
    first: float  # share of the first token, unit or not
    around: float  # of what else is no unit: the prompt, special tokens, the second text
    text: float  # of units, but for the first token

    @property
    def sentence(self) -> str | None:
        """As a report says it; None where the first token is the deciding one."""
        if self.decides:
            return None
        shares = (
            f"Of the attention of the deciding position, {self.first:.1%} rests on the first token"
            f" ({self.token!r}), where causal language models have an attention sink,"
            f" {self.around:.1%} on what else stands around the text and {self.text:.1%} on"
            " the text."
        )
        if self.is_unit:
            return (
                f"{shares} The first token is a word of the text and a unit like any other, though such"
                " models rest attention on the first token whatever it says; a prompt before the text takes"
                " that place, and is held as it is."
            )
        return (
            f"{shares} Weights are shares of what rests on the text; the rest stays where it is whatever"
            " attention is given, and so bounds what the weights of words can change."
        )

    @property
    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "sentence": self.sentence}


def resting_of(model: Model, split: AbstractSplit) -> Resting | None:
    """Where the row of a transformer rests, over these texts; None of any other model."""
    if not isinstance(model, TransformerModel):
        return None
    shares, first_ids, in_text, decides = list[Tensor](), Counter[int](), 0, 0
    for _, reading in readings(model, split):
        kept = TransformerReading.of(reading)
        row = kept.row.mean(1) if model.head is None else kept.row[:, model.head]
        first = kept.present.int().argmax(1)
        units = kept.unit >= 0
        shares.append(_shares(row, first, units))
        first_ids.update(kept.ids.gather(1, first[:, None])[:, 0].tolist())
        in_text += int(units.gather(1, first[:, None]).sum())
        decides += int((kept.deciding == first).sum())
    mean = torch.cat(shares).double().mean(0).tolist()
    token, _ = first_ids.most_common(1)[0]
    return Resting(
        token=str(model.tokenizer.convert_ids_to_tokens(token)),
        is_unit=2 * in_text > len(split),
        decides=2 * decides > len(split),
        first=mean[0],
        around=mean[1],
        text=mean[2],
    )


def asked_about(model: Model, reading: Reading) -> str | None:
    """The next token of the one text that was read, in a sentence; None where none is asked about."""
    token = reading.kept.get("target")
    if token is None or not isinstance(model, TransformerModel):
        return None
    return f"The token that is asked about is {model.tokenizer.decode(token.tolist())!r}."


def _shares(
    row: Float[Tensor, "batch place"], first: Tensor, units: Bool[Tensor, "batch place"]
) -> Float[Tensor, "batch 3"]:
    """On the first token; on what else is no unit; on the other units."""
    at_first = torch.zeros_like(units).scatter(1, first[:, None], True)
    parts = (at_first, ~units & ~at_first, units & ~at_first)
    return torch.stack([row.masked_fill(~part, 0.0).sum(1) for part in parts], dim=1)
