"""What the attentions of a transformer are called in a report."""

from __future__ import annotations

ROW = "row"
THROUGH_LAYERS = ("rollout", "flow")  # made of all heads of several layers

# How a report names each map, and why the model cannot be given another one.
OF_LAYERS = "is computed from several layers, so that the model cannot be given another one"
OF_FACTORS = "is a product that has the weight as one factor, so that the model cannot be given another one"
NAMES = {
    "rollout": ("attention rollout", OF_LAYERS),
    "flow": ("attention flow", OF_LAYERS),
    "value-norm": ("attention x length of the value", OF_FACTORS),
    "gradient": ("attention x gradient", OF_FACTORS),
}


def in_words(kind: str, *, family: str, layer: int, layers: int, head: int | None, words: bool) -> str:
    """Which attention of which family of models it is, and over what."""
    units = "words" if words else "sub-words"
    where = f"the deciding position's row in layer {layer} of 0 to {layers - 1}"
    together = "the mean over heads" if kind in (ROW, *THROUGH_LAYERS) else "the sum over heads"
    heads = together if head is None else f"head {head}"
    if kind == ROW:
        past = "this row only; words also reach the output past it"
        row = f"attention from the position that decides in layer {layer} of 0 to {layers - 1}"
        return f"{family}: {row}, {heads}, over {units} ({past})"
    named = NAMES[kind][0]
    where = f"{named} from {where} down" if kind in THROUGH_LAYERS else f"{named} in {where}"
    return f"{family}: {where}, {heads}, over {units}"
