"""The engines by name, and one of them made ready: whatever is wrong with it is said before any work."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from attentest.bench.engine import inline
from attentest.bench.engine.cluster import Cluster, joined
from attentest.bench.engine.contract import RunCells
from attentest.bench.engine.local import Local
from attentest.bench.needs import Resources, check_room
from attentest.bench.sharing import shared
from attentest.bench.work import best_device
from attentest.refusal import Refusal, look_up
from attentest.store.store import Store

HERE: dict[str, Callable[[int], RunCells]] = {
    "local": lambda workers: Local(workers).run,
    "inline": lambda workers: inline.run,
}
ENGINES = (*HERE, "ray")


def default_workers(device: str) -> int:
    """Two processes of one thread each suit a laptop; small models share a GPU well."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, 2 if device == "cpu" else 8))


def check_engine(name: str) -> None:
    """Refuse another word than those of the catalogue."""
    look_up(name, dict.fromkeys(ENGINES), "engine")


def here(engine: str | RunCells, workers: int | None, device: str) -> RunCells:
    """An engine of this machine by its name; one that is ready already as it is."""
    if not isinstance(engine, str):
        return engine
    return look_up(engine, HERE, "engine")(workers or default_workers(device))


@contextlib.contextmanager
def planning(device: str) -> Iterator[tuple[RunCells, str]]:
    """No engine, since nothing is done; the device may be one that is not here."""
    yield inline.run, device if device == "cuda" else best_device(device)


@contextlib.contextmanager
def started(
    name: str,
    store: Store,
    device: str,
    *,
    workers: int | None = None,
    address: str | None = None,
    resources: Resources | None = None,
) -> Iterator[tuple[RunCells, str]]:
    """The engine, and the device that its cells are for, which on a cluster is what its nodes have."""
    check_engine(name)
    if name != "ray":
        if address is not None or resources:
            raise Refusal(
                "--ray-address" if address is not None else "--resources",
                got=f"the engine {name}",
                needs="--engine ray",
                way_out="Add it, or leave this out.",
            )
        device = best_device(device)
        yield here(name, workers, device), device
        return
    with joined(address, workers=workers) as cluster:
        device = _device_of(cluster, device)
        check_room(cluster.largest(), device, resources or {})
        with shared(store, cluster):
            yield cluster.run, device


def _device_of(cluster: Cluster, asked: str) -> str:
    """`auto` is a GPU where a node has one."""
    has_gpu = cluster.largest().get("GPU", 0) > 0
    if asked == "cuda" and not has_gpu:
        raise Refusal(
            "device cuda",
            got="a cluster without a GPU",
            needs="a node that has one",
            way_out="Use --device cpu, or add a node.",
        )
    if asked == "auto":
        return "cuda" if has_gpu else "cpu"
    return asked if asked == "cuda" else best_device(asked)
