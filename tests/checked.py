"""Once this is imported, types are checked on every call: in the modules that speak of shapes, or in all.

Checks cost a tenth of the time of tests that call many small functions, and seconds of every process that
imports the package. So `make test` checks the modules that name a shape; `.ci/run` sets `CHECKED=everything`.
"""

import os
from pathlib import Path

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
install_import_hook(["attentest"] if EVERYTHING else modules_with_shapes(), "beartype.beartype")
