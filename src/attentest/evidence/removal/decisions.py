"""A decision and what overturns it: the predicted class, items taken away, and a rival strictly above."""

from __future__ import annotations

from dataclasses import replace

from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from attentest.model.networks.decoder import distribution
from attentest.model.seam import Reading
from attentest.refusal import Refusal
from attentest.shapes import Logits


def as_classes(logits: Float[Tensor, "*any class"]) -> Float[Tensor, "*any outcome"]:
    """One sigmoid logit as the second of two classes whose first is always 0; several as they are."""
    return functional.pad(logits, (1, 0)) if logits.shape[-1] == 1 else logits


def predicted(logits: Float[Tensor, "batch class"]) -> Int[Tensor, " batch"]:
    """The likeliest class, and of equals the first: a single logit of exactly 0 predicts class 0."""
    return as_classes(logits).argmax(-1)


def explained_class(reading: Reading, logits: Float[Tensor, "batch class"]) -> Int[Tensor, " batch"]:
    """The class that importances are of: the one that the reading names, else the predicted one."""
    return predicted(logits) if reading.explained is None else reading.explained


def overtaken(
    logits: Float[Tensor, "batch variant class"], own: Int[Tensor, " batch"]
) -> Bool[Tensor, "batch variant"]:
    """Whether some class is strictly above each text's `own`: a tie overturns nothing."""
    classes = as_classes(logits)
    held = classes.gather(2, own[:, None, None].expand(-1, classes.shape[1], 1))
    return (classes > held).any(-1)


def check_one_distribution(what: str, reading: Reading) -> None:
    """Refuse heads together: what it is to remove an item from several distributions is not defined."""
    if reading.weights.ndim != 2:
        raise Refusal(
            what,
            got=f"attention of the shape {tuple(reading.weights.shape)}: heads together",
            needs="one distribution a text: (batch, unit)",
            way_out="Load the model with one head (head=0), or ask attentest.inspect, which takes the mean.",
        )


def attended(reading: Reading) -> Bool[Tensor, "batch unit"]:
    """The items of a text: its units of positive weight. Taking away any other changes nothing."""
    return reading.mask & (reading.weights > 0)


def without(
    weights: Float[Tensor, "batch unit"], removed: Bool[Tensor, "batch variant unit"]
) -> Float[Tensor, "batch variant unit"]:
    """The weights with these removed and the rest renormalised; all zero where nothing is left.

    The rest is summed up, not taken from one: a weight above 0.999 would leave little but rounding.
    """
    rest = weights[:, None].masked_fill(removed, 0.0)
    mass = rest.sum(-1, keepdim=True)
    return rest / mass.where(mass > 0, 1.0)


def is_defined(reading: Reading, logits: Logits) -> Bool[Tensor, " batch"]:
    """Whether a text has attention and an output at all; NaN anywhere in them means it has not."""
    weights = reading.weights.masked_fill(~reading.mask, 0.0)
    proper = weights.isfinite() & (weights >= 0)
    return proper.all(1) & (weights > 0).any(1) & distribution(logits).isfinite().all(-1)


def in_double(reading: Reading) -> Reading:
    """The same reading, to be decided in double precision where the decision is affine.

    Which of two nearly equal classes is above must not depend on the order in which items are summed up.
    Other decoders have parameters of their own, in single precision, and decide in that.
    """
    if reading.values is None or reading.bias is None:
        return reading
    return replace(
        reading,
        weights=reading.weights.detach().double(),
        values=reading.values.detach().double(),
        bias=reading.bias.detach().double(),
    )
