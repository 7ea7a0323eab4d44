"""The locked versions are those of everything that the package names, and they are allowed."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TOP = Path(__file__).parents[1]
LOCKED = [line for line in (TOP / "constraints.txt").read_text().splitlines() if not line.startswith("#")]


def test_the_lock_is_sorted_and_holds_nothing_but_names_and_versions():
    assert sorted(LOCKED) == LOCKED and "torch==2.13.0" in LOCKED
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9a-z.]+", line) for line in LOCKED)
    assert not [line for line in LOCKED if line.startswith(("nvidia", "triton"))]


def test_whatever_the_package_names_is_locked_to_a_version_that_is_allowed():
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    extras = re.search(r"^export EXTRAS=(\S+)$", (TOP / ".ci" / "run").read_text(), re.MULTILINE)[1].split(
        ","
    )
    lists = [project["dependencies"], *(project["optional-dependencies"][name] for name in extras)]
    versions = dict(line.split("==") for line in LOCKED)
    for asked in (Requirement(line) for lines in lists for line in lines):
        assert versions[canonicalize_name(asked.name)] in asked.specifier, f"{asked}: make lock"


def test_the_lowest_versions_are_the_bounds_and_the_torch_that_is_locked():
    script = [sys.executable, str(TOP / ".ci" / "versions"), "lowest"]
    lowest = subprocess.run(script, check=True, capture_output=True, text=True).stdout.splitlines()
    assert "torch==2.13.0" in lowest and "scikit-learn==1.8" in lowest and len(lowest) > 30
