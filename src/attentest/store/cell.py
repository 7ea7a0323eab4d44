"""A Cell is one stage of work, named by the sha256 of what it is made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, final

Stage = Literal["corpus", "model", "reading", "observation", "finding", "audit"]
STAGES: tuple[Stage, ...] = ("corpus", "model", "reading", "observation", "finding", "audit")


def canonical(value: Any) -> str:
    """One spelling for one value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@final
@dataclass(frozen=True, kw_only=True)
class Cell:
    """What is to be computed. There is no "latest run": there is this key.

    `where` holds what the work needs but the result does not depend on (paths of files whose content is in
    the configuration already); it is written into the plan and stays out of the key.
    """

    stage: Stage
    version: int
    config: Mapping[str, Any]
    inputs: Mapping[str, str] = field(default_factory=dict)  # role -> key
    where: Mapping[str, str] = field(default_factory=dict, compare=False)

    @cached_property
    def key(self) -> str:
        """The sha256 of the canonical JSON of stage, version, config and inputs."""
        named = {"stage": self.stage, "version": self.version}
        spelled = canonical({**named, "config": dict(self.config), "inputs": dict(self.inputs)})
        return hashlib.sha256(spelled.encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """The plan: everything a worker needs."""
        named = {"stage": self.stage, "version": self.version}
        return {
            **named,
            "config": dict(self.config),
            "inputs": dict(self.inputs),
            "where": dict(self.where),
        }

    @classmethod
    def from_json(cls, plan: Mapping[str, Any]) -> Cell:
        """The inverse of `as_json`; a `cell.json` may have more fields."""
        return cls(
            **{name: plan[name] for name in ("stage", "version", "config", "inputs")},
            where=plan.get("where", {}),
        )


def short(key: str) -> str:
    """A key as people see it."""
    return key[:12]
