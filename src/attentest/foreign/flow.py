"""Attention flow (Abnar & Zuidema 2020): weights as widths of pipes, layer upon layer.

How much of a word can reach the decision is the largest flow between the two: a problem of its own for every
word, solved exactly. What it takes grows with about the cube of a text's places.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

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
