"""Whatever a user has, as a model on the bench: one of ours, a Hugging Face model, or an adapter."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attentest.auditing.options import is_ours
from attentest.foreign.adapter import METHODS, AdaptedModel
from attentest.foreign.checked_adapter import user_raised
from attentest.foreign.loading import adopt, load_transformer
from attentest.foreign.maps import KINDS
from attentest.foreign.placement import AUTO, best_device, device_named, placed
from attentest.foreign.prompt import CLASSIFY, prompt_of
from attentest.foreign.views import ranked_by
from attentest.foreign.words import ROW
from attentest.model.seam import Model
from attentest.model.training.files import load
from attentest.refusal import Refusal, look_up

CHOICES = ("kind", "layer", "head", "words", "special_tokens")


def as_model(
    model: Any,
    *,
    tokenizer: Any = None,
    labels: Sequence[str] | None = None,
    attention: Mapping[str, Any] | None = None,
    task: str = CLASSIFY,
    prompt: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
) -> Model:
    """An object as a model on the bench; `attention` chooses among those of a transformer."""
    choice, kind = _chosen(attention)
    prompt_of(task, prompt)
    if isinstance(model, Model):
        _no_task(task)
        model = _moved(model, device, dtype)
        _nothing_more(attention or {} if model.capabilities.layered is None else choice, tokenizer, labels)
        return ranked_by(model, kind)
    if tokenizer is not None or hasattr(model, "get_input_embeddings"):
        if tokenizer is None:
            raise Refusal(
                f"a {type(model).__name__}",
                got="no tokenizer",
                needs="the tokenizer it was trained with",
                way_out="Give it: audit(model, data, tokenizer=tokenizer).",
            )
        model = placed(model, device, dtype)
        return ranked_by(adopt(model, tokenizer, labels=labels, task=task, prompt=prompt, **choice), kind)
    if not any(hasattr(model, name) for name in METHODS):
        raise Refusal(
            f"a model of the class {type(model).__name__}",
            got="something that no road leads to",
            needs="a model trained here, a Hugging Face classifier with its tokenizer, or an adapter",
            way_out="docs/guides/your-model.md shows an adapter of ten lines.",
        )
    _no_task(task)
    if labels is None:
        raise Refusal(
            "an adapter",
            got="no labels",
            needs="the names of the classes, in the order of its logits",
            way_out="Give labels=('no', 'yes').",
        )
    _nothing_more(attention or {}, None, None)
    return _moved(AdaptedModel(model, labels), device, dtype)


def _chosen(attention: Mapping[str, Any] | None) -> tuple[dict[str, Any], str]:
    """Which row of a transformer, and what is made of it."""
    choice = dict(attention or {})
    for name in choice:
        look_up(name, dict.fromkeys(CHOICES), "choice of attention")
    kind = str(choice.pop("kind", ROW))
    look_up(kind, KINDS, "attention")
    return choice, kind


def _moved(model: Model, device: str | None, dtype: str | None) -> Model:
    """A model on the bench, on another device; its numbers stay as they are."""
    if dtype not in (None, AUTO):
        raise Refusal(
            f"dtype={dtype!r}",
            got="a model that is on the bench already, or no Hugging Face model",
            needs="no type: its numbers stay as they are",
            way_out="Leave the type out.",
        )
    where = None if device == AUTO else device_named(device)
    return model if where is None else model.to(where)


def _no_task(task: str) -> None:
    if task != CLASSIFY:
        raise Refusal(
            f"task={task!r}",
            got="a model that is no causal language model of transformers",
            needs="a Hugging Face model whose class ends in ForCausalLM",
            way_out="Leave the task out: this model classifies texts.",
        )


def _nothing_more(choice: Mapping[str, Any], tokenizer: Any, labels: Sequence[str] | None) -> None:
    more = [*choice, *(["tokenizer"] if tokenizer is not None else []), *(["labels"] if labels else [])]
    if more:
        raise Refusal(
            "a model with one attention and labels of its own",
            got=f"a choice of {', '.join(more)}",
            needs="nothing more",
            way_out="Such choices are for Hugging Face models.",
        )


def load_model(
    where: str,
    *,
    labels: Sequence[str] | None = None,
    attention: Mapping[str, Any] | None = None,
    network: bool = False,
    remote_code: bool = False,
    task: str = CLASSIFY,
    prompt: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
) -> Model:
    """The model in a folder, under a name of the hub, or made by `module:factory`."""
    if not Path(where).is_dir() and ":" in where:
        made = _made(where)
        model, tokenizer = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
        asked: dict[str, Any] = {"task": task, "prompt": prompt, "device": device, "dtype": dtype}
        return as_model(model, tokenizer=tokenizer, labels=labels, attention=attention, **asked)
    if Path(where).is_dir() and is_ours(Path(where)):
        _no_task(task)
        ours = load(where)
        ours = ours if device != AUTO else ours.to(best_device())
        return as_model(ours, labels=labels, attention=attention, device=device, dtype=dtype)
    choice, kind = _chosen(attention)
    how: dict[str, Any] = {"task": task, "prompt": prompt, "device": device, "dtype": dtype}
    trust: dict[str, Any] = {"network": network, "remote_code": remote_code}
    found = load_transformer(where, labels=labels, **trust, **how, **choice)
    return ranked_by(found, kind)


def _made(where: str) -> Any:
    """What a factory of the user's returns: the working directory is looked in, as `python -m` does."""
    module, _, factory = where.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        make = getattr(importlib.import_module(module), factory)
    except (ImportError, AttributeError, ValueError, TypeError) as error:  # a TypeError is of dots alone
        raise Refusal(
            f"model {where}",
            got=f"nothing under that name ({error})",
            needs="module:factory, a module that can be imported and a function in it",
            way_out="Check the spelling, and that the module is in this folder or installed.",
        ) from error
    except (Exception, SystemExit) as error:  # noqa: BLE001  a user's code may raise anything
        raise _raised(where, error) from None
    finally:
        sys.path.remove(str(Path.cwd()))
    if not callable(make):
        raise Refusal(
            f"model {where}",
            got=f"a {type(make).__name__}",
            needs="a function without arguments",
            way_out="Let it return a model, an adapter, or a model and its tokenizer.",
        )
    try:
        return make()
    except (Refusal, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  as above
        raise _raised(where, error) from None


def _raised(where: str, error: BaseException) -> Refusal:
    needs = "a module that can be imported, and a function that returns a model"
    return user_raised(f"model {where}", error, needs, "Its traceback is below.")
