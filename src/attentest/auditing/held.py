"""Whatever a user holds becomes a model on the bench: an object, a pipeline, a folder's path, a name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from attentest.auditing.models import as_model, load_model
from attentest.auditing.options import check_model, named, verbatim
from attentest.foreign.prompt import CLASSIFY, PROMPT
from attentest.model.seam import Model
from attentest.refusal import Refusal


def check_held(model: Any, *, network: bool = False, remote_code: bool = False, task: str = CLASSIFY) -> None:
    """Refuse what its name, files and settings rule out, before anything is loaded; not of an object."""
    if isinstance(model, str | os.PathLike):
        check_model(os.fspath(model), network=network, remote_code=remote_code, task=task)


def held_model(
    model: Any,
    *,
    tokenizer: Any = None,
    labels: Sequence[str] | Mapping[int, str] | None = None,
    attention: Mapping[str, Any] | None = None,
    network: bool = False,
    remote_code: bool = False,
    **asked: Any,
) -> Model:
    """The model, with whatever is `asked` of `as_model`; what is None is left out."""
    asked = {name: value for name, value in asked.items() if value is not None}
    words = verbatim if asked.get("task") == PROMPT else named
    given: dict[str, Any] = {"labels": None if labels is None else words(labels), "attention": attention}
    if isinstance(model, str | os.PathLike):
        if tokenizer is not None:
            raise Refusal(
                f"a model that is loaded from {os.fspath(model)}",
                got="a tokenizer of its own beside it",
                needs="the tokenizer in the same folder",
                way_out="Leave tokenizer out, or load the model yourself and hand over both.",
            )
        given |= {"network": network, "remote_code": remote_code}
        return load_model(os.fspath(model), **given, **asked)
    inside, own = _unpacked(model)
    return as_model(inside, tokenizer=own if tokenizer is None else tokenizer, **given, **asked)


def name_of(model: Any) -> str:
    """What a result calls it: the path or name it came by, or its class."""
    if isinstance(model, str | os.PathLike):
        return os.fspath(model)
    inside, _ = _unpacked(model)
    return type(inside).__name__


def _unpacked(model: Any) -> tuple[Any, Any]:
    """A pipeline's model and tokenizer; anything else is a model without one."""
    if not isinstance(model, Model) and hasattr(model, "preprocess") and hasattr(model, "tokenizer"):
        return model.model, model.tokenizer
    return model, None
