"""The one way to ask a user's adapter: whatever its code does becomes a result that fits, or one sentence.

Evidence relies on what is checked here: weights are a distribution, gradients flow, and nothing that was
handed over is edited. A method that raises is refused with its own traceback below the sentence.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any, Final, final

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from attentest.refusal import Refusal

GUIDE = "docs/guides/your-model.md shows an adapter of ten lines."
TYPES = (torch.float32, torch.float64)
OFF: Final = {torch.float32: 1e-3, torch.float64: 1e-6}  # how far from 1 the weights of a text may sum


def user_raised(what: str, error: BaseException, needs: str, way_out: str) -> Refusal:
    """What is said of a user's own code that raised, or ended the program; `except` it where it is called.

    The first frame of the traceback is ours, whoever calls this, and is left out.
    """
    frames = error.__traceback__.tb_next if error.__traceback__ else None
    got = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    below = "".join(traceback.format_exception(type(error), error, frames, chain=False)).rstrip()
    return Refusal(what, got=_in_a_line(got), needs=needs, way_out=way_out, below=below)


@final
class CheckedAdapter:
    """An adapter's methods, each checked as it returns."""

    def __init__(self, adapter: Any) -> None:
        embedding = adapter.embedding
        if not isinstance(embedding, nn.Embedding):
            raise _refused("embedding", _said(embedding), "a torch.nn.Embedding")
        self.adapter, self.embedding = adapter, embedding
        if self.dtype not in TYPES:
            raise _refused("embedding", f"numbers of the type {_type(self.dtype)}", "float32 or float64")
        if not bool(embedding.weight.isfinite().all()):
            raise _refused("embedding", "vectors that are NaN or infinite", "finite numbers")

    @property
    def dtype(self) -> torch.dtype:
        """The type of all its numbers."""
        return self.embedding.weight.dtype

    def numbers(self, name: str, words: Sequence[str]) -> Int[np.ndarray, " word"]:
        """The row of every word of the text of that name: integers, none without a vector."""
        given = self._ask("numbers", words)
        try:
            found = np.asarray(given)
        except (TypeError, ValueError, RuntimeError):
            found = np.array(None)
        whole = found.ndim == 1 and (found.dtype.kind in "iu" or not found.size)
        if whole and found.shape == (len(words),) and found.size:
            if found.min() >= 0 and found.max() < self.embedding.num_embeddings:
                return found.astype(np.int64)
            got = f"numbers from {found.min()} to {found.max()}"
        else:
            got = f"{found.size} numbers for {len(words)} words" if whole else _said(given)
        needs = f"one integer a word, from 0 to {self.embedding.num_embeddings - 1}"
        way_out = "Let numbers give unknown words a row of their own."
        raise Refusal(f"numbers of an adapter, of text {name!r}", got=got, needs=needs, way_out=way_out)

    def attend(self, vectors: Tensor, mask: Bool[Tensor, "batch token"]) -> tuple[Tensor, Tensor]:
        """States, and weights that are a distribution over the tokens of every text."""
        given = self._ask("attend", vectors, mask)
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise _refused("attend", _said(given), "a pair: states and attention weights")
        states, weights = given
        self._check("attend", "states", states, (*mask.shape, None), [vectors])
        self._check("attend", "weights", weights, tuple(mask.shape), [])
        _check_distribution(weights.detach(), mask)
        return states, weights

    def decide(self, states: Tensor, weights: Tensor) -> Tensor:
        """Logits of these states under these weights."""
        logits = self._ask("decide", states, weights)
        asked = weights.detach().isfinite().all(1) & states.detach().isfinite().flatten(1).all(1)
        self._check_logits("decide", logits, asked, [states, weights])
        return logits

    def predict(self, tokens: Tensor, mask: Bool[Tensor, "batch token"]) -> Tensor:
        """The module's own logits."""
        logits = self._ask("predict", tokens, mask)
        self._check_logits("predict", logits, mask.any(1), [])
        return logits

    def _ask(self, name: str, *given: Any) -> Any:
        """Call a method. What it raises is refused, but a lack of memory is its caller's to deal with."""
        tensors = [each for each in given if isinstance(each, Tensor)]
        before = [_edits(each) for each in tensors]
        try:
            found = getattr(self.adapter, name)(*given)
        except (Refusal, MemoryError, torch.OutOfMemoryError):
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001  a user's code may raise anything
            way_out = "Its traceback is below."
            refusal = user_raised(f"{name} of an adapter", error, "a method that returns", way_out)
            raise refusal from None
        if before != [_edits(each) for each in tensors]:
            raise _refused(
                name, "a method that edits its arguments in place", "new tensors (w * 2, not w.mul_(2))"
            )
        return found

    def _check_logits(
        self, name: str, logits: Any, asked: Bool[Tensor, " text"], needing: Sequence[Tensor]
    ) -> None:
        """One row a text, and numbers where it is `asked` about numbers: a text without words has none."""
        self._check(name, "logits", logits, (len(asked), None), needing)
        if not bool(logits.detach()[asked].isfinite().all()):
            raise _refused(name, "logits that are NaN or infinite", "finite numbers")

    def _check(
        self, name: str, what: str, found: Any, shape: tuple[int | None, ...], needing: Sequence[Tensor]
    ) -> None:
        """A tensor of this shape and of the embedding's type, in the graph where what it is made of is."""
        if not isinstance(found, Tensor):
            raise _refused(name, f"{what} that are {_said(found)}", "a torch.Tensor")
        fits = found.ndim == len(shape) and all(
            wanted in (None, size) for wanted, size in zip(shape, found.shape, strict=True)
        )
        if not fits:
            spelled = ", ".join("any" if size is None else str(size) for size in shape)
            raise _refused(name, f"{what} in the shape {tuple(found.shape)}", f"({spelled})")
        if found.dtype != self.dtype:
            raise _refused(
                name,
                f"{what} of the type {_type(found.dtype)}",
                f"{_type(self.dtype)}, the type of the embedding",
            )
        graph = torch.is_grad_enabled() and any(each.requires_grad for each in needing)
        if graph and not found.requires_grad:
            needs = "differentiable ones: no detach, .data, numpy or no_grad on the way"
            raise _refused(name, f"{what} without a gradient", needs)


def _check_distribution(weights: Tensor, mask: Bool[Tensor, "batch token"]) -> None:
    """No weight below 0 or on padding, and a sum of 1: permuting and moving them keeps what is a share."""
    got, needs = None, "weights that sum to 1 over the tokens of a text"
    weights, mask = weights[mask.any(1)], mask[mask.any(1)]
    sums = weights.sum(1)
    if not bool(weights.isfinite().all()):
        got = "weights that are NaN or infinite"
    elif bool((weights < 0).any()):
        got, needs = f"a weight of {float(weights.min()):.3g}", "none below 0"
    elif bool(weights.masked_fill(mask, 0.0).any()):
        got, needs = "weight on padding", "no weight where the mask is False"
    elif bool(((sums - 1).abs() > OFF[weights.dtype]).any()):
        got = f"weights of a text that sum to {float(sums[(sums - 1).abs().argmax()]):.4g}"
    if got:
        way_out = (
            "Mask the scores, then take a softmax or another map to shares; see docs/guides/your-model.md."
        )
        raise Refusal("attend of an adapter", got=got, needs=needs, way_out=way_out)


def _edits(tensor: Tensor) -> int:
    """How often a tensor was edited in place, as autograd counts it; of one made for inference, not told."""
    return 0 if tensor.is_inference() else tensor._version


def _refused(name: str, got: str, needs: str) -> Refusal:
    return Refusal(f"{name} of an adapter", got=got, needs=needs, way_out=GUIDE)


def _said(given: Any) -> str:
    """What a method returned, in a few words: a value that is short, else its type."""
    kind = type(given)
    named = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    if given is None:
        return "None"
    size = f" of {len(given)}" if isinstance(given, tuple | list) else ""
    first = f", {given[0]!r} the first" if size and len(given) and isinstance(given[0], str | float) else ""
    return f"a {named}{size}{_in_a_line(first)}"


def _type(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _in_a_line(said: str) -> str:
    return " ".join(said.split())[:300]
