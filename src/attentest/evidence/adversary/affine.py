"""What a kernel of an affine decision, `logits = weights @ values + bias`, must be given."""

from __future__ import annotations

from torch import Tensor

from attentest.refusal import Refusal


def affine_parts(what: str, values: Tensor | None, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """The values and the bias of a reading; refused where its decision is not affine, so that it has none."""
    if values is None or bias is None:
        raise Refusal(
            what,
            got="no values or no bias: the model's decision is not affine in its attention weights",
            needs="logits = weights @ values + bias, as models trained here with an affine decoder have it",
            way_out="Search instead: PublishedSearch().run(model, reading, rng=rng), or attentest.inspect.",
        )
    return values, bias


def check_affine(
    what: str, weights: Tensor, values: Tensor, bias: Tensor, mask: Tensor, answers: Tensor | None
) -> None:
    """Refuse shapes that do not belong together, and texts without any real token."""
    batch, token, classes = values.shape if values.ndim == 3 else (-1, -1, -1)
    fits = [weights.shape == (batch, token), mask.shape == (batch, token), bias.shape == (classes,)]
    if answers is not None:
        fits.append(answers.shape == (batch, classes) and classes > 1)
    if not all(fits) or classes < 1:
        given = [weights, values, bias, mask] + ([] if answers is None else [answers])
        raise Refusal(
            what,
            got=f"shapes {', '.join(str(tuple(one.shape)) for one in given)}",
            needs="weights (batch, token), values (batch, token, class), bias (class,), mask (batch, token), "
            "and answers (batch, class) only where there are several classes",
            way_out="Take all of them from one reading.",
        )
    if not mask.any(1).all():
        raise Refusal(
            what,
            got=f"{int((~mask.any(1)).sum())} texts without any real token",
            needs="at least one token in every text",
            way_out="Leave empty texts out.",
        )
