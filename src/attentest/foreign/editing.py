"""Replacing attention inside a Hugging Face model: through its own interface, or else by a hook.

The interface takes a function by name. Ours asks the model family's own plain function for the weights, so
whatever a family adds to its scores is there; if somebody is watching, they may answer with other weights,
and only then is the product with the values taken again. The mask must be registered under the same name:
without that it arrives as None, and padding is attended in silence.

Who watches is a context variable: two threads may edit one model differently at the same time.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any, final
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attentest.refusal import Refusal

NAME = "attentest"
NEEDS = (5, 1)  # of transformers: the first whose BERT-like models take their attention by name

Maps = Float[Tensor, "batch head query key"]
Sums = Float[Tensor, "batch query head each"]


@final
@dataclass(frozen=True)
class MadeOf:
    """What one call of attention was given, and the function that it was given to."""

    query: Tensor
    keys: Tensor
    mask: Tensor | None  # (batch, 1, query, key), to be added to scores
    plain: Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]  # query, keys, values, mask


@final
@dataclass(frozen=True)
class Call:
    """One call of attention: its number within the forward pass, and what it would do by itself."""

    number: int
    module: nn.Module
    weights: Maps
    values: Tensor | None  # (batch, head, key, each); None where a hook sees nothing but the weights
    made_of: MadeOf | None = None  # what the weights were made of; None where a hook sees nothing but them

    def summed(self, weights: Maps) -> Sums:
        """The values under these weights, as the model family takes the product itself."""
        assert self.values is not None, "a hook never takes the product"
        shared = weights.shape[1] // self.values.shape[1]  # heads in groups share their keys and values
        values = self.values.repeat_interleave(shared, dim=1) if shared > 1 else self.values
        return (weights.to(values.dtype) @ values).transpose(1, 2).contiguous()


# Other weights, or None: leave them. Other sums go with other weights that no product needs to be taken of.
Edit = Callable[[Call], Maps | tuple[Sums, Maps] | None]


@final
class Enough(Exception):
    """Raised by an edit that has seen what it wanted: the rest of the pass is not run."""


@final
@dataclass
class Watch:
    """Who watches a forward pass: the edit, the calls so far, and what else the pass must take from us."""

    edit: Edit
    paths: dict[nn.Module, str]
    seen: list[str] = field(default_factory=list)

    def call(
        self, module: nn.Module, weights: Maps, values: Tensor | None, made_of: MadeOf | None = None
    ) -> Any:
        """Count one call and ask the edit about it."""
        self.seen.append(self.paths.get(module, ""))
        return self.edit(Call(len(self.seen) - 1, module, weights, values, made_of))


WATCH: ContextVar[Watch | None] = ContextVar("attentest_watch", default=None)


def library() -> ModuleType:
    """The transformers library with our names registered, or the sentence that says how to get it."""
    if importlib.util.find_spec("transformers") is None:
        raise Refusal(
            "Hugging Face models",
            got="no transformers library",
            needs="transformers 5.1 or later",
            way_out="pip install 'attentest[hf]'.",
        )
    transformers = importlib.import_module("transformers")
    if tuple(int(part) for part in transformers.__version__.split(".")[:2]) < NEEDS:
        raise Refusal(
            "Hugging Face models",
            got=f"transformers {transformers.__version__}",
            needs="transformers 5.1 or later, where attention can be replaced by name",
            way_out="pip install --upgrade 'attentest[hf]'.",
        )
    masks = importlib.import_module("transformers.masking_utils")
    transformers.AttentionInterface.register(NAME, watched_attention)
    transformers.AttentionMaskInterface.register(NAME, masks.eager_mask)
    return transformers


def watched_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **more: Any
) -> tuple[Tensor, Tensor]:
    """The function under our name: the family's own, unless whoever watches has other weights."""
    plain = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if plain is None:
        raise Refusal(
            f"the attention {type(module).__name__}",
            got="a module without a plain attention function beside it",
            needs="eager_attention_forward, as the library's own models have",
            way_out="Write an adapter for such a model.",
        )
    output, weights = plain(module, query, key, value, attention_mask, **more)
    watch = WATCH.get()
    if watch is None:
        return output, weights
    made_of = MadeOf(query, key, attention_mask, partial(plain, module, **more))
    answer = watch.call(module, weights, value, made_of)
    if answer is None:
        return output, weights
    if isinstance(answer, tuple):
        return answer
    return Call(0, module, weights, value).summed(answer), answer


_lock = threading.Lock()
_borrowed: WeakKeyDictionary[nn.Module, tuple[int, str]] = WeakKeyDictionary()  # how often, and what it had


@contextmanager
def _by_name(model: Any, _: Watch) -> Iterator[None]:
    """Our function in the model's place; the last one out restores what the first one found."""
    with _lock:
        times, before = _borrowed.get(model, (0, model.config._attn_implementation))
        if times == 0:
            model.set_attn_implementation(NAME)
        _borrowed[model] = times + 1, before
    try:
        yield
    finally:
        with _lock:
            times, before = _borrowed.pop(model)
            if times > 1:
                _borrowed[model] = times - 1, before
            else:
                model.set_attn_implementation(before)


@contextmanager
def _by_hook(model: nn.Module, watch: Watch) -> Iterator[None]:
    """The dropout that some families put on their weights, as the place to change them.

    A module may drop out weights and other things too: only rows of a map that sum to one are weights.
    """

    def changed(module: nn.Module, _: Any, output: Tensor) -> Tensor | None:
        if WATCH.get() is not watch or output.ndim != 4:  # others may have hooks here at the same time
            return None
        if not torch.allclose(output.sum(-1), output.new_ones(()), atol=1e-4):
            return None
        return watch.call(module, output, None)

    hooks = [m.register_forward_hook(changed) for m in model.modules() if isinstance(m, nn.Dropout)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


ROADS = {"interface": _by_name, "hook": _by_hook}


@contextmanager
def watching(model: nn.Module, edit: Edit, road: str = "interface") -> Iterator[Watch]:
    """While this holds, every forward pass of the model in this thread is shown to `edit`.

    Whatever happens inside, the model is afterwards as it was. A watch may stand inside another: the inner
    one sees, the outer one waits.
    """
    watch = Watch(edit, {module: path for path, module in model.named_modules()})
    with ROADS[road](model, watch):
        token = WATCH.set(watch)
        try:
            yield watch
        finally:
            WATCH.reset(token)
