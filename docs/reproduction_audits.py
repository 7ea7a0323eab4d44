"""Tables of an audit that lies under results/ as the JSON document of `attentest audit --out FILE.json`."""

import json
import math
from functools import cache
from typing import Any

import reproduction_findings
from reproduction_blocks import Block, PageError
from reproduction_findings import markdown


@cache
def document(file: str) -> dict[str, Any]:
    """The JSON document of an audit under results/."""
    try:
        found = json.loads(reproduction_findings.path_of(file).read_text(encoding="utf-8"))
    except ValueError as error:
        raise PageError(f"The file results/{file} is not JSON ({error}).") from error
    if not isinstance(found, dict) or "criteria" not in found:
        raise PageError(f"The file results/{file} was not written by `attentest audit --out`.")
    return found


def criteria(block: Block) -> str:
    """The block `audit`: every criterion with its verdict and the numbers of its tests."""
    block.allow("file", "digits")
    digits = block.count("digits", 3)
    lines = []
    for one in document(block.one("file"))["criteria"]:
        head = [one["criterion"], one["question"], one["verdict"]]
        for test in one["tests"]:
            numbers = [_interval(test, digits), *(_number(test[name], digits) for name in ("null", "margin"))]
            lines.append([*head, f"`{test['experiment']}/{test['measure']}`", *numbers, _p(test["p"])])
            head = ["", "", ""]
        if not one["tests"]:
            lines.append([*head, "–", "–", "–", "–", "–"])
    return markdown(
        ["criterion", "question", "verdict", "test", "estimate [95 %]", "null", "margin", "p (Holm)"], lines
    )


def measures(block: Block) -> str:
    """The block `audit-findings`: measures over all texts, each `experiment/measure`."""
    block.allow("file", "measures", "digits")
    digits = block.count("digits", 3)
    findings = document(block.one("file"))["findings"]
    lines = []
    for item in block.many("measures"):
        experiment, _, measure = item.value.rpartition("/")
        own = [f for f in findings if (f["experiment"], f["measure"]) == (experiment, measure)]
        by_group = {finding["group"]: finding for finding in own}
        if "overall" not in by_group:
            raise block.error(f"the audit has no finding {item.value!r} over all texts.")
        found, twin = by_group["overall"], by_group.get("untrained")
        number = _interval(found, digits)
        lines.append(
            [item.shown, number, _number(found["null"], digits), _interval(twin, digits), f"{found['n']:,}"]
        )
    return markdown(["measure", "estimate [95 %]", "null", "untrained twin", "n"], lines)


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def _interval(one: dict[str, Any] | None, digits: int) -> str:
    if one is None or one["estimate"] is None:
        return "–"
    number = _number(one["estimate"], digits)
    return number if one["low"] is None else f"{number} [{one['low']:.{digits}f}, {one['high']:.{digits}f}]"


def _p(value: float | None) -> str:
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"
