"""The HTTP interface, described by the same table that answers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from attentest.web.contract import ErrorAnswer

WRONG = "A sentence that says what was wrong: what, got, needs, way out."


@final
@dataclass(frozen=True, kw_only=True)
class Operation:
    """One thing that can be asked: where, by which question, and with which answer."""

    method: str
    path: str
    says: str
    question: type[BaseModel] | None
    answer: type[BaseModel]


def described(routes: Sequence[Operation], *, version: str) -> dict[str, Any]:
    """OpenAPI 3.1 of these routes."""
    said: list[type[BaseModel]] = [ErrorAnswer]
    said += [each for route in routes for each in (route.question, route.answer) if each is not None]
    _, definitions = models_json_schema(
        [(each, "validation") for each in said], ref_template="#/components/schemas/{model}"
    )
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, definitions["$defs"])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "attentest serve",
            "version": version,
            "description": "Read-only: asks models of a store about texts. Nothing that is sent is kept.",
        },
        "paths": paths,
        "components": {"schemas": definitions["$defs"]},
    }


def _operation(route: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.says,
        "responses": {
            "200": {"description": "The answer.", "content": _json(route.answer)},
            "4XX": {"description": WRONG, "content": _json(ErrorAnswer)},
        },
    }
    if route.question is not None and route.method == "POST":
        operation["requestBody"] = {"required": True, "content": _json(route.question)}
    elif route.question is not None:
        schema = schemas[route.question.__name__]
        operation["parameters"] = [
            {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": about}
            for name, about in schema["properties"].items()
        ]
    return operation


def _json(said: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{said.__name__}"}}}
