"""What a chart holds, as its JSON says; and drawings that are made once in a run."""

import functools
import hashlib
import json
import os
from contextlib import contextmanager
from importlib import import_module

import pytest


def spec(chart):
    return json.loads(chart.to_json(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def layers(chart):
    """The rows embedded in each layer; what all layers share stands above them."""
    whole = spec(chart)
    return [whole["datasets"][layer.get("data", whole.get("data"))["name"]] for layer in whole["layer"]]


def words(chart):
    return json.dumps(spec(chart), ensure_ascii=False)


@contextmanager
def drawn_once(folder):
    """To draw a figure is half of a report: what was drawn from a specification is kept in a folder.

    The processes of one run share it; the file of a specification holds what Vega made of these very bytes.
    """
    vl_convert = import_module("vl_convert")
    draw = vl_convert.vegalite_to_svg

    @functools.wraps(draw)
    def kept(specification, **options):
        asked = f"{sorted(options.items())}\n{specification}"
        file = folder / f"{hashlib.sha256(asked.encode()).hexdigest()}.svg"
        if not file.exists():
            written = folder / f"{file.stem}.{os.getpid()}"
            written.write_text(draw(specification, **options), encoding="utf-8", newline="")
            written.replace(file)  # another process may do the same
        with file.open(encoding="utf-8", newline="") as held:
            return held.read()

    vl_convert.vegalite_to_svg = kept
    yield
    vl_convert.vegalite_to_svg = draw
