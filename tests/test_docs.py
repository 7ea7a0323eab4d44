"""The documentation: measures are listed as their cards say, links within the project lead somewhere."""

import re
import sys
from pathlib import Path

import pytest

from attentest.experiments.cards import CARDS

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "docs"))
import measures  # noqa: E402

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in page.parts),
]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def test_the_list_of_measures_is_that_of_the_cards():
    assert measures.PAGE.read_text(encoding="utf-8") == measures.page(), "python docs/measures.py"
    assert all(f"| `{name.partition('/')[2]}` |" in measures.page() for name in CARDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_within_the_project_leads_to_a_file(page):
    links = [one or other for one, other in LINK.findall(page.read_text(encoding="utf-8"))]
    inside = [link.partition("#")[0] for link in links if not re.match(r"https?:|mailto:|#", link)]
    assert not [link for link in inside if not (page.parent / link).exists()]
