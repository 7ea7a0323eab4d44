"""docs/architecture.md is true: its picture is that of the imports, its files and classes exist."""

import re
import sys
from pathlib import Path

import pytest

from tests.house import MAY_IMPORT, SOURCE

HERE = Path(__file__).parents[1] / "docs"
sys.path.append(str(HERE))
from architecture import edges, parts, picture  # noqa: E402

PAGE = (HERE / "architecture.md").read_text(encoding="utf-8")


def test_the_picture_is_that_of_the_imports():
    assert picture() == (HERE / "architecture.svg").read_text(encoding="utf-8"), "python docs/architecture.py"
    assert all(part in picture() for part in parts())


def test_lines_lead_to_everything_that_a_part_may_use():
    lines = set(edges())
    for part in parts():
        reached, ahead = set(), {part}
        while ahead:
            ahead = {used for user, used in lines if user in ahead} - reached
            reached |= ahead
        assert reached >= MAY_IMPORT[part] - {"refusal", "notebook"}


FILES = sorted(set(re.findall(r"`([\w/]+\.py)`", PAGE)))


@pytest.mark.parametrize("file", FILES)
def test_every_file_it_names_exists(file):
    assert list(SOURCE.glob(file.replace("NAME", "*"))), file


@pytest.mark.parametrize(("name", "file"), re.findall(r"`(\w+)` \(`([\w/]+\.py)`\)", PAGE))
def test_every_stop_is_a_class_of_its_file(name, file):
    assert re.search(rf"^class {name}\b", (SOURCE / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_a_text_has_seven_stops_and_a_reader_eight_files():
    assert len(re.findall(r"^\| \d \|", PAGE, re.MULTILINE)) == 7
    assert len(re.findall(r"^\d\. `", PAGE, re.MULTILINE)) == 8
