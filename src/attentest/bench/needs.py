"""What a cell takes of a machine: a core, a share of a GPU or none, and memory, by its stage and inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from functools import lru_cache

from attentest.bench.engine.contract import Needs
from attentest.bench.work import device_of
from attentest.refusal import Refusal
from attentest.store.cell import Cell
from attentest.store.store import Store

Resources = Mapping[str, Mapping[str, float]]  # by stage, or `fleet`: cpus, gpus, memory in bytes

FLEET = "fleet"  # models that are trained together
KINDS = ("corpus", "model", "reading", "observation", "finding", FLEET)
NAMES = tuple(each.name for each in fields(Needs))
SHARE = 1 / 8  # of a GPU: eight processes of small models use it up (`default_workers`)
GIGABYTE = 2**30
# A process with torch in it holds 0.7 GB, at its peak 1.1 (docs/benchmarks.md); texts and weights are read,
# decoded and copied, which is more than their compressed bytes.
BASE, DECODED = 1.25 * GIGABYTE, 20


def needs_of(cells: Sequence[Cell], store: Store, device: str, resources: Resources) -> Needs:
    """What a job needs; what a user says of its stage comes before what we think."""
    (stage, *_) = {cell.stage for cell in cells}
    kind = FLEET if len(cells) > 1 else stage
    inputs = {key for cell in cells for key in cell.inputs.values()}
    held = sum(_bytes(store, key) for key in inputs)
    ours = Needs(gpus=_gpus(cells, device), memory=int(BASE + DECODED * held))
    return changed(ours, resources.get(kind, {}))


@lru_cache(maxsize=100_000)
def _bytes(store: Store, key: str) -> int:
    """The size of a cell's files: many cells have the same inputs, and an object store answers slowly."""
    return sum(file["bytes"] for file in store.about(key)["files"].values())


def _gpus(cells: Sequence[Cell], device: str) -> float:
    """One fleet a GPU; alone a model shares it, as what only reads models does. To conclude takes none."""
    if device != "cuda" or cells[0].stage in ("corpus", "finding"):
        return 0.0
    if cells[0].stage == "model" and device_of(cells[0], device) != "cuda":
        return 0.0
    return 1.0 if len(cells) > 1 else SHARE


def changed(needs: Needs, said: Mapping[str, float]) -> Needs:
    """The needs with what was said of them."""
    cpus, gpus = said.get("cpus", needs.cpus), said.get("gpus", needs.gpus)
    return Needs(float(cpus), float(gpus), int(said.get("memory", needs.memory)))


def check_room(largest: Mapping[str, float], device: str, resources: Resources) -> None:
    """Refuse what is misspelled, and what no node has: it would be waited for for ever."""
    most = {"cpus": largest.get("CPU", 0), "gpus": largest.get("GPU", 0), "memory": largest.get("memory", 0)}
    for kind, said in resources.items():
        if kind not in KINDS or not said.keys() <= set(NAMES):
            raise _refusal(
                f"{kind}:{','.join(said)}", f"a stage of {', '.join(KINDS)} and {', '.join(NAMES)}"
            )
        for name, number in said.items():
            _check_number(f"{kind}:{name}={number:g}", name, number, most[name], device)


def _check_number(written: str, name: str, number: float, most: float, device: str) -> None:
    if not (math.isfinite(number) and number >= 0):
        raise _refusal(written, "numbers, zero or more")
    if name == "gpus" and number and device != "cuda":
        raise _refusal(written, "--device cuda: cells of a CPU use no GPU")
    if number > most:
        raise _refusal(written, f"at most {most:g}, the most that a node has")


def parse(written: Sequence[str]) -> dict[str, dict[str, float]]:
    """`STAGE:NAME=NUMBER,...` as options have it; memory may end in MB, GB or TB."""
    found: dict[str, dict[str, float]] = {}
    for each in written:
        kind, _, rest = each.partition(":")
        for part in rest.split(","):
            name, _, number = part.partition("=")
            try:
                found.setdefault(kind.strip(), {})[name.strip()] = _number(number.strip())
            except ValueError as error:
                raise _refusal(
                    each, "STAGE:NAME=NUMBER,... as in observation:gpus=0.25,memory=4GB"
                ) from error
    return found


def _number(written: str) -> float:
    for unit, size in {"MB": 2**20, "GB": 2**30, "TB": 2**40}.items():
        if written.upper().endswith(unit):
            return float(written[: -len(unit)]) * size
    return float(written)


def _refusal(got: str, needs: str) -> Refusal:
    return Refusal("--resources", got=got, needs=needs, way_out=f"Defaults without it: {asdict(Needs())}.")
