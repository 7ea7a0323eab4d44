"""A Cell is one stage of work, named by the sha256 of what it is made from."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, final

Stage = Literal["corpus", "model", "reading", "observation", "finding", "audit"]
STAGES: tuple[Stage, ...] = ("corpus", "model", "reading", "observation", "finding", "audit")


def canonical(value: Any) -> str:
    """One spelling for one value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


SEED = re.compile(r"seed (\d{1,9})")


def seed_role(seed: int) -> str:
    """What the observation of a seed is called among the inputs of a finding."""
    return f"seed {seed}"


def seed_of(role: str) -> int | None:
    """The inverse; None for what is called otherwise."""
    found = SEED.fullmatch(role)
    return int(found[1]) if found else None


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

    @property
    def observations(self) -> dict[int, str]:
        """By seed the keys of the observations that a finding was concluded from, in their order."""
        seeds = {role: seed_of(role) for role in self.inputs}
        return {seed: self.inputs[role] for role, seed in seeds.items() if seed is not None}

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
