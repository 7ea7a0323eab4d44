"""Once this is imported, types are checked on every call: in the modules that speak of shapes, or in all.

Checks cost a tenth of the time of tests that call many small functions, and seconds of every process that
imports the package. So `make test` checks the modules that name a shape; `.ci/run` sets `CHECKED=everything`.

A function within a function is a new one in every call, and to decorate it takes longer than to run it. So
`make test` checks the first few of each.
"""

import os
from collections import Counter
from pathlib import Path

import jaxtyping
from jaxtyping import install_import_hook

PACKAGE = Path(__file__).parents[1] / "src" / "attentest"
SHAPES = ("from jaxtyping import", "from attentest.shapes import", "from attentest import shapes")


def modules_with_shapes():
    """Their dotted names."""
    files = (file for file in PACKAGE.rglob("*.py") if has_shapes(file.read_text(encoding="utf-8")))
    parts = (("attentest", *file.relative_to(PACKAGE).with_suffix("").parts) for file in files)
    return sorted(".".join(part for part in each if part != "__init__") for each in parts)


def has_shapes(source):
    return any(name in source for name in SHAPES)


EVERYTHING = os.environ.get("CHECKED") == "everything"
FEW = 3
_checked, _jaxtyped = Counter(), jaxtyping.jaxtyped


def jaxtyped(**how):
    """The decorator that the hook puts on whatever is defined."""
    decorate = _jaxtyped(**how)

    def decorated(made):
        if EVERYTHING or "<locals>" not in made.__qualname__ or isinstance(made, type):
            return decorate(made)
        _checked[made.__code__] += 1
        return decorate(made) if _checked[made.__code__] <= FEW else made

    return decorated


jaxtyping.jaxtyped = jaxtyped
install_import_hook(["attentest"] if EVERYTHING else modules_with_shapes(), "beartype.beartype")
