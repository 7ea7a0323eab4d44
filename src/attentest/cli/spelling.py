"""Refusals as a terminal says them: what Python calls `labels=...` is `--labels` there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from attentest.refusal import Refusal

ARGUMENTS = (
    *("labels", "text", "label", "query", "rationale", "budget", "lower", "missing", "too_long", "texts"),
    *("seed", "network", "remote_code", "device", "batch_size", "dtype", "task", "prompt", "mark", "store"),
    *("attention", "layer", "head", "out", "epsilon", "permutations", "importance", "nulls", "steps"),
)
VALUE = r"\([^()]*\)|'[^']*'|\"[^\"]*\"|\.\.\.|[\w-]+"
ASSIGNED = re.compile(rf"(?<!\w)({'|'.join(ARGUMENTS)})=({VALUE})")


def as_option(assigned: re.Match[str]) -> str:
    """`labels=('no', 'yes')` as `--labels no,yes`, `network=True` as `--network`."""
    option, value = "--" + assigned[1].replace("_", "-"), assigned[2]
    if value == "True":
        return option
    if value.startswith("("):
        inside = [each.strip()[1:-1] for each in value[1:-1].split(",") if each.strip()]
        names = ",".join(inside) if all(inside) else "no,yes"
        return f"{option} '{names}'" if " " in names else f"{option} {names}"
    return f"{option} {value if ' ' in value else value.strip(chr(39) + chr(34))}"


@contextmanager
def in_options() -> Iterator[None]:
    """Let refusals name options; `got` may quote a user's own text and stays as it is."""
    try:
        yield
    except Refusal as refusal:
        what, needs, way_out = (
            ASSIGNED.sub(as_option, said) for said in (refusal.what, refusal.needs, refusal.way_out)
        )
        more = {"cell": refusal.cell, "below": refusal.below}
        raise Refusal(what, got=refusal.got, needs=needs, way_out=way_out, **more) from refusal
