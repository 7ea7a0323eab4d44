"""What else is called a transformer's attention: maps of all layers made into one number a unit.

Only the row of one layer can be given back to the model and so be put to the test directly. These are shown
instead of it, or ranked beside it: each is a distribution over a text's units.

One is attention flow (Abnar & Zuidema 2020), with weights as widths of pipes, layer upon layer. How much of
a word can reach the decision is the largest flow between the two: a problem of its own for every word, solved
exactly. What it takes grows with about the cube of a text's places.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor

from attentest.foreign.editing import Call, watching
from attentest.foreign.proof import family
from attentest.foreign.roads import TransformerReading, inputs_of, looked_up
from attentest.foreign.rows import Portions
from attentest.foreign.transformer import TransformerModel
from attentest.foreign.words import RECEIVED, ROW, THROUGH_LAYERS, averaged
from attentest.model.batch import Batch
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Reading
from attentest.refusal import Refusal, look_up

UNITS = 2**20  # of width: flows are found in whole numbers


def flows(
    layers: Float[np.ndarray, "layer place place"], source: int, sinks: Int[np.ndarray, " sink"]
) -> Float[np.ndarray, " sink"]:
    """The largest flow from one place on top to each of these places at the bottom."""
    depth, places, _ = layers.shape
    layer, above, below = np.indices(layers.shape).reshape(3, -1)
    # The top is level `depth`; layer l leads from level l + 1 down to level l.
    begins, ends = (layer + 1) * places + above, layer * places + below
    widths = np.rint(layers.reshape(-1) * UNITS).astype(np.int32)
    nodes = (depth + 1) * places
    pipes = coo_array((widths, (begins, ends)), shape=(nodes, nodes)).tocsr()
    top = depth * places + source
    return np.array([maximum_flow(pipes, top, sink).flow_value for sink in sinks]) / UNITS


PerPlace = Float[Tensor, "batch place"]
PerUnit = Float[Tensor, "batch unit"]
Joined = Float[Tensor, "layer batch place place"]


def attention_map(model: TransformerModel, batch: Batch, kind: str) -> PerUnit:
    """The attention of this kind, by name: a share for every unit of every text."""
    return map_of(model, model.read(batch), kind)


def map_of(model: TransformerModel, reading: Reading, kind: str) -> PerUnit:
    """The map of this kind under the vectors of a reading; NaN where a text has nothing to share out."""
    if kind != RECEIVED or not model.averages:
        check_kind(model, kind)
    found = {**KINDS, RECEIVED: received}[kind](model, TransformerReading.of(reading))
    return torch.where(reading.mask, found / found.sum(1, keepdim=True), 0.0)


def check_kind(model: TransformerModel, kind: str) -> None:
    """Refuse a kind that there is not, or that this family of models does not show."""
    look_up(kind, KINDS, "attention")
    if model.averages:
        raise averaged(f"the attention {kind!r}")
    if kind in THROUGH_LAYERS and len(model.proof.layers) != len(model.proof.paths):
        raise _unknown(model, "attention through all layers", "two stacks, through which no one path leads")
    if kind == "value-norm" and model.proof.road == "hook":
        raise _unknown(model, "attention x value norm", "values that an edit by a hook does not see")


def row(model: TransformerModel, reading: TransformerReading) -> PerUnit:
    """The deciding row of the chosen layer: one head's, or the mean over heads."""
    return reading.base.weights if model.head is not None else reading.base.weights.mean(1)


def received(model: TransformerModel, reading: TransformerReading) -> PerUnit:
    """What all positions rest on in the mean, of a model that averages their states: columns of the map."""
    heads = Portions.of(reading.row, reading.unit, reading.base.mask.shape[1]).sums
    return heads.mean(1) if model.head is None else heads[:, model.head]


def rollout(model: TransformerModel, reading: TransformerReading) -> PerUnit:
    """Attention times attention, down to the words, half of each layer passing by (Abnar & Zuidema 2020)."""
    top, *below = _joined(model, reading).flip(0)
    begins = torch.arange(len(top), device=top.device), reading.deciding
    found = reduce(torch.matmul, below, top[begins][:, None])
    return _per_unit(reading, found[:, 0])


def flow(model: TransformerModel, reading: TransformerReading) -> PerUnit:
    """The most that can flow from the decision down to each word, weights being widths of pipes.

    Abnar & Zuidema 2020. A word of several sub-words has the sum of theirs.
    """
    layers = _joined(model, reading).cpu().numpy()
    present, of_units = reading.present.cpu().numpy(), (reading.unit >= 0).cpu().numpy()
    found = np.zeros(present.shape)
    for text, deciding in enumerate(reading.deciding.tolist()):
        there = np.flatnonzero(present[text])
        inside = layers[:, text][:, there][:, :, there]
        sinks = np.flatnonzero(of_units[text, there])
        found[text, there[sinks]] = flows(inside, int(np.searchsorted(there, deciding)), sinks)
    return _per_unit(reading, torch.as_tensor(found).to(reading.row))


def value_norm(model: TransformerModel, reading: TransformerReading) -> PerUnit:
    """Each weight times the length of its value, summed over heads (after Kobayashi et al. 2020)."""
    assert reading.carried is not None, "checked by the road"
    return _per_unit(reading, _of_head(model, reading.row * reading.carried.norm(dim=3)).sum(1))


def gradient(model: TransformerModel, reading: TransformerReading) -> PerUnit:
    """|weight x derivative of the likeliest class's probability|, summed over heads."""
    with torch.enable_grad():
        given = reading.base.weights.detach().requires_grad_()
        # In double precision, where what is left beside a sure answer does not round to nothing.
        likeliest = distribution(model.decide(reading.base, given).double()).amax(-1)
        (slope,) = torch.autograd.grad(likeliest.sum(), given)
    found = (slope * given.detach()).abs()
    return found if model.head is not None else found.sum(1)


KINDS: dict[str, Callable[[TransformerModel, TransformerReading], PerUnit]] = {
    ROW: row,
    "rollout": rollout,
    "flow": flow,
    "value-norm": value_norm,
    "gradient": gradient,
}


def _joined(model: TransformerModel, reading: TransformerReading) -> Joined:
    """Every layer's map up to the chosen one, mean over heads, half of each layer passing by unattended."""
    kept: list[Float[Tensor, "batch place place"]] = []

    def keep(call: Call) -> None:
        if call.number <= model.layer:
            kept.append(call.weights.mean(1))

    laid = model.laid(reading.base.batch)
    with (
        torch.no_grad(),
        watching(model.transformer, keep, model.proof.road),
        looked_up(model.tables, laid, reading.base.embeddings),
    ):
        model.transformer(**inputs_of(model.transformer, laid, typed=model.typed))
    maps = torch.stack(kept)
    return 0.5 * maps + 0.5 * torch.eye(maps.shape[-1], device=maps.device, dtype=maps.dtype)


def _of_head(model: TransformerModel, heads: Float[Tensor, "batch head place"]) -> Tensor:
    return heads if model.head is None else heads[:, model.head, None]


def _per_unit(reading: TransformerReading, places: PerPlace) -> PerUnit:
    """Sub-words merged to words; what is no unit is left out."""
    inside = places.masked_fill(reading.unit < 0, 0.0)
    return places.new_zeros(reading.base.mask.shape).scatter_add(1, reading.unit.clamp_min(0), inside)


def _unknown(model: TransformerModel, what: str, got: str) -> Refusal:
    return Refusal(
        f"{what} of a {family(model.transformer)} model",
        got=got,
        needs="one stack of layers whose attention and values can be seen",
        way_out="Choose the row of a layer: kind 'row'.",
    )
