"""What is left of a transformer from one layer on: the same parameters, without what comes before.

Containers are copied, never layers, so nothing is patched and the model itself stays usable. Which states
enter is a context variable, as is who watches: threads do not meet.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, final

from torch import Tensor, nn

from attentest.foreign.editing import NAME, WATCH

ENTERING: ContextVar[Tensor | None] = ContextVar("attentest_entering", default=None)


@final
class Entrance(nn.Module):
    """A layer that takes over from nobody: the first time in a pass, its states are those at the door."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:  # some loops ask a layer what kind it is
            return getattr(super().__getattr__("layer"), name)

    def forward(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> Any:
        """The layer on the states at the door; on the caller's when there are none."""
        waiting = ENTERING.get()
        ENTERING.set(None)  # a layer that stands for several is entered once
        return self.layer(hidden_states if waiting is None else waiting, *args, **kwargs)


@contextmanager
def entering(states: Tensor) -> Iterator[None]:
    """While this holds, these states enter the next remainder that is run in this thread."""
    token = ENTERING.set(states)
    try:
        yield
    finally:
        ENTERING.reset(token)


def stack_of(model: nn.Module, path: str) -> str | None:
    """The outermost list of modules on the way to an attention: its stack of layers."""
    parts = path.split(".")
    ways = (".".join(parts[:n]) for n in range(1, len(parts)))
    return next((way for way in ways if isinstance(model.get_submodule(way), nn.ModuleList)), None)


def remainder(model: nn.Module, stack: str, first: int, layers: int) -> nn.Module:
    """The model from layer `first` of `layers` on, to be run while states enter it."""
    whole = holder = shallow_copy(model)
    *way, name = stack.split(".")
    for part in way:
        holder._modules[part] = holder = shallow_copy(holder.get_submodule(part))
    listed = list(model.get_submodule(stack).children())
    left = listed[first:] if len(listed) == layers else listed  # fewer: one stands for several
    holder._modules[name] = nn.ModuleList([Entrance(left[0]), *left[1:]])
    if hasattr(holder, "config"):
        config: Any = copy.copy(holder.config)
        config.num_hidden_layers = layers - first
        kinds = getattr(config, "layer_types", None)
        if kinds is not None:  # which layers see a window only is counted from the first one left
            config.layer_types = list(kinds)[first:]
        config._attn_implementation = NAME
        holder.config = config
    return whole


def shallow_copy(module: nn.Module) -> nn.Module:
    """The module with the same parts, so that other parts can be put into the copy."""
    shallow = copy.copy(module)
    shallow._modules = dict(module._modules)
    return shallow


@contextmanager
def overheard(model: nn.Module, stack: str | None, number: int) -> Iterator[list[Tensor]]:
    """While this holds, the states that enter layer `number` are kept; without a stack, none."""
    watch = WATCH.get()
    kept: list[Tensor] = []
    count = iter(range(1_000_000))

    def hear(_: nn.Module, args: Any, kwargs: Any) -> None:
        if WATCH.get() is watch and next(count) == number:
            kept.append(args[0] if args else kwargs["hidden_states"])

    listed = set() if stack is None else set(model.get_submodule(stack).children())
    hooks = [layer.register_forward_pre_hook(hear, with_kwargs=True) for layer in listed]
    try:
        yield kept
    finally:
        for hook in hooks:
            hook.remove()
