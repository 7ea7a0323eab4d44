"""What else is called a transformer's attention: maps of all layers made into one number a unit.

Only the row of one layer can be given back to the model and so be put to the test directly. These are shown
instead of it, or ranked beside it: each is a distribution over a text's units.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import torch
from jaxtyping import Float
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor

from attentest.corpus.batch import Batch
from attentest.model.decoder import distribution
from attentest.model.transformer_editing import Call, Maps, watching
from attentest.model.transformer_model import TransformerModel
from attentest.model.transformer_proof import family
from attentest.model.transformer_roads import TransformerReading, inputs_of
from attentest.refusal import Refusal, look_up

PerPlace = Float[Tensor, "batch place"]
PerUnit = Float[Tensor, "batch unit"]
Joined = Float[Tensor, "layer batch place place"]
UNITS = 2**20  # of capacity: flows are found in whole numbers


def attention_map(model: TransformerModel, batch: Batch, kind: str) -> PerUnit:
    """The attention of this kind, by name: a share for every unit of every text."""
    shown = look_up(kind, KINDS, "attention")(model, model.read(batch))
    return shown / shown.sum(1, keepdim=True)


def row(model: TransformerModel, reading: TransformerReading) -> PerUnit:
    """The deciding row of the chosen layer: one head's, or the mean over heads."""
    return reading.weights if model.head is not None else reading.weights.mean(1)


def rollout(model: TransformerModel, reading: TransformerReading) -> PerUnit:
    """Attention times attention, down to the words, half of each layer passing by (Abnar & Zuidema 2020)."""
    top, *below = _joined(model, reading).flip(0)
    found = reduce(torch.matmul, below, top)
    return _per_unit(reading, _deciding_row(reading, found))


def flow(model: TransformerModel, reading: TransformerReading) -> PerUnit:
    """The most that can flow from the decision down to each word, weights being widths of pipes.

    Abnar & Zuidema 2020. A word of several sub-words has the sum of theirs.
    """
    layers = _joined(model, reading).detach().cpu().numpy()
    found = torch.zeros_like(reading.row[:, 0])
    for text, deciding in enumerate(reading.deciding.tolist()):
        there = np.flatnonzero(reading.present[text].cpu().numpy())
        inside = layers[:, text][:, there][:, :, there]
        source = int(np.searchsorted(there, deciding))
        found[text, there] = torch.as_tensor(_flows(inside, source)).to(found)
    return _per_unit(reading, found)


def value_norm(model: TransformerModel, reading: TransformerReading) -> PerUnit:
    """Each weight times the length of its value, summed over heads (after Kobayashi et al. 2020)."""
    if reading.carried is None:
        raise _unknown(model, "attention x value norm", "values that an edit by a hook does not see")
    return _per_unit(reading, _of_head(model, reading.row * reading.carried.norm(dim=3)).sum(1))


def gradient(model: TransformerModel, reading: TransformerReading) -> PerUnit:
    """|weight x derivative of the likeliest class's probability|, summed over heads."""
    with torch.enable_grad():
        given = reading.weights.detach().requires_grad_()
        likeliest = distribution(model.decide(reading, given)).amax(-1)
        (slope,) = torch.autograd.grad(likeliest.sum(), given)
    found = (slope * given.detach()).abs()
    return found if model.head is not None else found.sum(1)


KINDS: dict[str, Callable[[TransformerModel, TransformerReading], PerUnit]] = {
    "row": row,
    "rollout": rollout,
    "flow": flow,
    "value-norm": value_norm,
    "gradient": gradient,
}


def _joined(model: TransformerModel, reading: TransformerReading) -> Joined:
    """Every layer's map up to the chosen one, mean over heads, half of each layer passing by unattended."""
    if len(model.proof.layers) != len(model.proof.paths):
        raise _unknown(model, "attention through all layers", "two stacks, through which no one path leads")
    kept: list[Maps] = []

    def keep(call: Call) -> None:
        if call.number <= model.layer:
            kept.append(call.weights)

    laid = model.laid(reading.batch)
    with watching(model.transformer, keep, model.proof.road), torch.no_grad():
        model.transformer(**inputs_of(model.transformer, laid, typed=model.typed))
    maps = torch.stack([weights.mean(1) for weights in kept])
    return 0.5 * maps + 0.5 * torch.eye(maps.shape[-1], device=maps.device, dtype=maps.dtype)


def _flows(layers: Float[np.ndarray, "layer place place"], source: int) -> Float[np.ndarray, " place"]:
    """The largest flow from one place on top to every place at the bottom."""
    depth, places, _ = layers.shape
    layer, above, below = np.indices(layers.shape).reshape(3, -1)
    # The top is level `depth`; layer l leads from level l + 1 down to level l.
    begins, ends = (layer + 1) * places + above, layer * places + below
    widths = np.rint(layers.reshape(-1) * UNITS).astype(np.int32)
    nodes = (depth + 1) * places
    pipes = coo_array((widths, (begins, ends)), shape=(nodes, nodes)).tocsr()
    top = depth * places + source
    return np.array([maximum_flow(pipes, top, sink).flow_value for sink in range(places)]) / UNITS


def _of_head(model: TransformerModel, heads: Float[Tensor, "batch head place"]) -> Tensor:
    return heads if model.head is None else heads[:, model.head, None]


def _deciding_row(reading: TransformerReading, found: Float[Tensor, "batch place place"]) -> PerPlace:
    return found[torch.arange(len(found), device=found.device), reading.deciding]


def _per_unit(reading: TransformerReading, places: PerPlace) -> PerUnit:
    """Sub-words merged to words; what is no unit is left out."""
    inside = places.masked_fill(reading.unit < 0, 0.0)
    return places.new_zeros(reading.mask.shape).scatter_add(1, reading.unit.clamp_min(0), inside)


def _unknown(model: TransformerModel, what: str, got: str) -> Refusal:
    return Refusal(
        f"{what} of a {family(model.transformer)} model",
        got=got,
        needs="one stack of layers whose attention and values can be seen",
        way_out="Choose the row of a layer: kind 'row'.",
    )
