"""Models that are served beside those of a store: loaded when the server starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attentest.auditing.digest import audited_digest
from attentest.auditing.held import check_held, held_model
from attentest.foreign.prompt import CLASSIFY
from attentest.live.session import LoadedModel, given_model
from attentest.model.seam import Model

Described = dict[str, Any]


def given_models(
    names: Sequence[str],
    labels: str | None = None,
    *,
    network: bool = False,
    remote_code: bool = False,
    task: str = CLASSIFY,
    lower: bool = False,
    mark: str | None = None,
    **asked: Any,
) -> tuple[Mapping[str, LoadedModel], list[Described]]:
    """Each model by its key, the digest of its parameters, and what the page has to know of it.

    `asked` is what an audit may say of how a model is loaded: attention, prompt, device, dtype; `lower` and
    `mark` are of the texts that will be typed.
    """
    for name in names:
        check_held(name, network=network, remote_code=remote_code, task=task)
    models, about = dict[str, LoadedModel](), []
    for name in names:
        model = held_model(name, labels=labels, network=network, remote_code=remote_code, task=task, **asked)
        known = described(name, model)
        models[known["key"]] = given_model(model, lower=lower, mark=mark)
        about.append(known)
    return models, about


def described(name: str, model: Model) -> Described:
    """What the page has to know of a model: its key, how to call it, and what it can be asked."""
    network, answered_by = model.network, model.capabilities.answered_by
    return {
        "key": audited_digest(model),
        "name": name,
        "corpus": "",
        "encoder": "" if network is None else network.config.encoder,
        "attention": model.capabilities.attention,
        "projection": "softmax" if network is None else network.projection.name,
        "seed": 0,
        "kind": "given",
        "trained_on": "",
        "labels": list(model.labels),
        "has_query": network is not None and network.query_encoder is not None,
        "takes_query": (model if answered_by is None else answered_by.model).capabilities.layered is not None,
        "unreadable": "",
    }
