"""What the attentions of a transformer are called in a report."""

from __future__ import annotations

from attentest.refusal import Refusal

ROW, RECEIVED = "row", "received"
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
# Of models that average their states, where it stands instead of the row. It cannot be chosen.
ALL_NAMES = {
    **NAMES,
    RECEIVED: (
        "attention received",
        "is the mean of all rows of a model that averages its states, where no one row decides",
    ),
}


def averaged(what: str) -> Refusal:
    """Why something is not asked of a model that averages its states."""
    return Refusal(
        f"{what} of a model that averages its states",
        got="a decision in which every position's row has its share",
        needs="one position that decides, whose row can be ranked, given and searched",
        way_out="Leave the kind of attention out: attention received, the mean of all rows, is ranked.",
    )


def in_words(kind: str, *, family: str, layer: int, layers: int, head: int | None, words: bool) -> str:
    """Which attention of which family of models it is, and over what."""
    units = "words" if words else "sub-words"
    where = f"the deciding position's row in layer {layer} of 0 to {layers - 1}"
    together = "the mean over heads" if kind in (ROW, RECEIVED, *THROUGH_LAYERS) else "the sum over heads"
    heads = together if head is None else f"head {head}"
    if kind == ROW:
        past = "this row only; words also reach the output past it"
        row = f"attention from the position that decides in layer {layer} of 0 to {layers - 1}"
        return f"{family}: {row}, {heads}, over {units} ({past})"
    named = ALL_NAMES[kind][0]
    if kind == RECEIVED:
        return f"{family}: {named} in layer {layer} of 0 to {layers - 1}, {heads}, over {units}"
    where = f"{named} from {where} down" if kind in THROUGH_LAYERS else f"{named} in {where}"
    return f"{family}: {where}, {heads}, over {units}"
