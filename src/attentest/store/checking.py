"""Looking after a store: is every file what was written, what is damaged, what can go.

What can go are cells that a newer version made again, and from which nothing that is kept was made.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

from attentest.refusal import Refusal
from attentest.store.about import DESCRIPTION, KEY, About, Damage
from attentest.store.cell import canonical
from attentest.store.disk import asking
from attentest.store.folder import ABSENT
from attentest.store.store import GONE, Store

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


Document = dict[str, Any]
Result = TypeVar("Result")
Watch = Callable[[int, int], None]  # how many cells were looked at, of how many
BLOCK = 1 << 20
WEIGHTS = "model.safetensors"  # what a store may travel without


def without_damaged(store: Store, work: Callable[[Store], Result], *, at_once: bool = False) -> Result:
    """What the work gives. A cell that is found damaged on the way is left out, and the work begun again.

    One damaged cell is a reason to look at all of them, so it is begun again once, and not once for each.
    """
    while True:
        before = len(store.damaged)
        try:
            with asking(store.url):
                return work(store)
        except Refusal as refusal:
            if not refusal.cell:
                raise
            for damage in damages(store):
                store.leave_out(damage, at_once=at_once)
            if len(store.damaged) == before:  # it is as it should be by now, or that is not the reason
                raise


def named(store: Store) -> list[dict[str, str]]:
    """The cells that were found damaged, for a document."""
    return [damage.as_json() for _, damage in sorted(store.damaged.items())]


def damages(store: Store, watch: Watch = lambda done, of: None) -> Iterator[Damage]:
    """Every cell that is not what was written, by the digests of its files, which are read side by side."""
    keys = sorted(key for key in store.folder.names("cells") if KEY.fullmatch(key))
    keys = [key for key in keys if key not in store.left_out]
    with ThreadPoolExecutor(max_workers=min(16, 2 * (os.cpu_count() or 1))) as pool:
        for done, found in enumerate(pool.map(lambda key: _damage(store, key), keys), 1):
            watch(done, len(keys))
            if found is not None:
                yield found


def fault(store: Store, key: str) -> Damage | None:
    """What is wrong with a cell that has a folder, by its description and the sizes of its files."""
    if not store.has(key):  # on a disk cells appear whole; elsewhere the description is just not there yet
        return Damage(key, DESCRIPTION, GONE) if store.local else None
    try:
        files = store.about(key)["files"]
    except Refusal as refusal:
        return Damage(key, DESCRIPTION, refusal.got)
    for name, digest in files.items():
        with contextlib.suppress(*ABSENT):  # a store may travel without its model weights
            found = store.files.info(store.folder.path("cells", key, name))
            if found["type"] != "file":
                return Damage(key, name, "no file")
            if found["size"] != digest["bytes"]:
                return Damage(key, name, f"{found['size']:,} bytes of {digest['bytes']:,}")
    return None


def _damage(store: Store, key: str) -> Damage | None:
    found = fault(store, key)
    if found is not None or not store.has(key):
        return found
    for name, digest in store.about(key)["files"].items():
        try:
            if _digest(store, key, name) != digest["sha256"]:
                return Damage(key, name, "its digest is another")
        except ABSENT:
            continue
    return None


def _digest(store: Store, key: str, name: str) -> str:
    digest = hashlib.sha256()
    with store.files.open(store.folder.path("cells", key, name), "rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def lacking(store: Store, told: Mapping[str, About]) -> dict[str, list[str]]:
    """By cell the files that are not here, of those that the store does not know from a description alone."""
    absent = {
        key: [name for name in about["files"] if name not in about.get("elsewhere", ())]
        for key, about in told.items()
    }
    found = {key: [name for name in names if not store.holds(key, name)] for key, names in absent.items()}
    return {key: names for key, names in found.items() if names}


def lacking_rows(store: Store) -> list[dict[str, Any]]:
    """The cells that lack more than the weights of a model, for a document."""
    absent = lacking(store, store.descriptions())
    return [{"cell": key, "files": names} for key, names in absent.items() if names != [WEIGHTS]]


def check(store_url: str, watch: Watch = lambda done, of: None) -> Document:
    """What is damaged, and what is not here; nothing is changed."""
    store = Store(store_url).existing()
    found = [*damages(store, watch)]
    store.left_out |= {damage.key for damage in found}
    told = {key: store.about(key) for key in store.done()}
    absent = lacking(store, told)
    return {
        "store": store.url,
        "cells": len(told) + len(found),
        "bytes": sum(digest["bytes"] for about in told.values() for digest in about["files"].values()),
        "damaged": [damage.as_json() for damage in found],
        "lacking": [{"cell": key, "files": names} for key, names in absent.items() if names != [WEIGHTS]],
        "without_weights": sum(WEIGHTS in names for names in absent.values()),
        "set_aside": sorted(store.set_aside() - store.left_out),
        "plans": sorted(set(store.plans()) - store.planned().keys()),
    }


def prune(store_url: str, *, yes: bool = False) -> Document:
    """What nothing leads to any more; with `yes` it is removed.

    That is unfinished work on cells that are done or were never planned, what killed writers left, damaged
    cells that were computed again, and cells that were made again by a newer version.
    """
    store = Store(store_url).existing()
    told = store.descriptions()
    waiting = set(store.plans()) - told.keys()
    listed = {
        "partial": sorted(name for name in store.folder.names("partial") if name not in waiting),
        "damaged": sorted(name for name in store.folder.names("damaged") if name[:64] in told),
        "cells": superseded(told),
    }
    sizes = {
        folder: {name: _bytes(store, folder, name) for name in names} for folder, names in listed.items()
    }
    if yes:
        store.sweep()
        for key in listed["cells"]:
            store.forget("plans", f"{key}.json")
        for folder, names in listed.items():
            for name in names:
                store.forget(folder, name)
    sizes["superseded"] = sizes.pop("cells")
    whole = sum(sum(of.values()) for of in sizes.values())
    return {"store": store.url, **sizes, "bytes": whole, "removed": yes}


def _bytes(store: Store, *path: str) -> int:
    return int(store.files.du(store.folder.path(*path)))
