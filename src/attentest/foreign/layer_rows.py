"""The deciding row of every layer and head, in one pass of the model."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attentest.foreign.editing import Call, watching
from attentest.foreign.roads import inputs_of
from attentest.foreign.rows import Portions, units_of
from attentest.model.batch import Batch
from attentest.model.seam import EveryRow


def every_row(model: Any) -> EveryRow:
    """What a transformer on the bench can show of all its layers and heads."""
    return EveryRow(partial(layer_rows, model), model.layer, model.head)


@torch.no_grad()
def layer_rows(model: Any, batch: Batch) -> Float[Tensor, "layer batch head unit"]:
    """Of every layer that may be chosen each head's shares of what rests on units, as a reading has them."""
    laid, proof, maps = model.laid(batch), model.proof, dict[int, Tensor]()
    unit, mask = units_of(batch, laid)
    deciding = proof.deciding(laid.present)

    def keep(call: Call) -> None:
        if call.number in proof.layers:
            maps[call.number] = call.weights[torch.arange(len(deciding)), :, deciding]

    with watching(model.transformer, keep, proof.road) as watch:
        model.transformer(**inputs_of(model.transformer, laid, typed=model.typed))
    proof.check(watch)
    rows = (Portions.of(maps[number], unit, mask.shape[1]).weights for number in proof.layers)
    return torch.stack(list(rows))
