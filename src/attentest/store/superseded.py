"""Cells that were made again by a newer version, and from which nothing that is kept was made."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from attentest.store.about import About
from attentest.store.cell import canonical

Rank = tuple[int, ...]  # a cell's own version, and then the highest rank of its inputs


def superseded(told: Mapping[str, About]) -> list[str]:
    """By the descriptions of a store, in the order of their keys."""
    kinds = _Kinds(told)
    newest: dict[str, Rank] = {}
    for key in told:
        kind, rank = kinds.of(key)
        newest[kind] = max(newest.get(kind, ()), rank)
    current = [key for key in told if kinds.of(key)[1] == newest[kinds.of(key)[0]]]
    return sorted(told.keys() - _with_inputs(current, told))


def _with_inputs(keys: list[str], told: Mapping[str, About]) -> set[str]:
    kept: set[str] = set()
    ahead = set(keys)
    while ahead:
        kept |= ahead
        inputs = {each for key in ahead for each in told[key]["inputs"].values()}
        ahead = {key for key in inputs if key in told} - kept
    return kept


@final
@dataclass(frozen=True)
class _Kinds:
    """Cells are of one kind that differ in nothing but versions, theirs and those of their inputs."""

    told: Mapping[str, About]
    known: dict[str, tuple[str, Rank]] = field(default_factory=dict)

    def of(self, key: str) -> tuple[str, Rank]:
        """The kind, and how new the cell is; a cell that is not here is a kind of its own."""
        if key not in self.known:
            about = self.told.get(key)
            self.known[key] = (key, ()) if about is None else self._found(about)
        return self.known[key]

    def _found(self, about: About) -> tuple[str, Rank]:
        inputs = {role: self.of(key) for role, key in about["inputs"].items()}
        named = [about["stage"], about["config"], {role: kind for role, (kind, _) in inputs.items()}]
        highest = max((rank for _, rank in inputs.values()), default=())
        return hashlib.sha256(canonical(named).encode()).hexdigest(), (about["version"], *highest)
