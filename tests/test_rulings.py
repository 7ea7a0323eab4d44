"""Every short code that is cited has its entry in docs/rulings.md, and every entry is cited."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RULINGS = ROOT / "docs" / "rulings.md"
# Pictures are left out: the arcs of their paths are written A5 and the like. The entries themselves and this
# file cite nothing: else every entry would be cited.
SUFFIXES = {".py", ".md", ".toml", ".csv", ".html", ".js", ".css", ".bib", ".ipynb"}
UNREAD = {RULINGS, Path(__file__)}

# Of the shape of a code, and none.
NO_CODES = {
    "UTF-8": "an encoding",
    "UTF-16": "an encoding",
    "ICD-9": "the classification of diseases behind MIMIC's labels",
    "GPT-2": "a language model",
    "PG-13": "a token of a test of the tokeniser",
}

RULING, EXPERIMENT, PAPER = r"A\d{1,2}", r"[A-Z]{2,3}-\d{1,2}", r"PR|TM|ER"
SHAPE = re.compile(rf"(?<![\w#-])(?:{RULING}|{EXPERIMENT}|{PAPER})(?![\w-])")
RANGE = re.compile(r"\b([A-Z]{2,3}-|A)(\d{1,2}) to \1(\d{1,2})\b")
LIST = re.compile(r"\b([A-Z]{2,3}-)\d{1,2}((?:, \d{1,2})+)(?=\))")


def codes(text):
    """The codes a text cites; those that a range or a list such as (JW-1, 2, 5) means are among them."""
    found = set(SHAPE.findall(text))
    for family, first, last in RANGE.findall(text):
        found |= {f"{family}{number}" for number in range(int(first), int(last) + 1)}
    for family, others in LIST.findall(text):
        found |= {family + number for number in re.findall(r"\d+", others)}
    return found


def files(root):
    folders = (path for name in ("src", "docs", "tests") for path in (root / name).rglob("*"))
    written = (path for path in folders if "_build" not in path.parts)  # pages that Sphinx made are copies
    return [path for path in (*written, root / "README.md") if path.suffix in SUFFIXES and path.is_file()]


def citations(root, unread=frozenset()):
    """Every code with the files that cite it."""
    cited = {}
    for path in files(root):
        if path not in unread:
            for code in codes(path.read_text(encoding="utf-8")):
                cited.setdefault(code, set()).add(path.relative_to(root).as_posix())
    return cited


def entries(text):
    """The lines under every heading that is a code, in order."""
    parts = re.split(r"^### ([\w-]+): .+$", text.partition("\n## ")[2], flags=re.MULTILINE)
    bodies = (re.split(r"^## ", body, flags=re.MULTILINE)[0] for body in parts[2::2])
    return list(zip(parts[1::2], (body.strip().splitlines() for body in bodies), strict=True))


def test_every_citation_has_an_entry():
    known = {code for code, _ in entries(RULINGS.read_text())} | set(NO_CODES)
    unknown = {code: sorted(where) for code, where in citations(ROOT, UNREAD).items() if code not in known}
    assert unknown == {}


def test_every_entry_is_cited_and_every_exception_is_used():
    cited = citations(ROOT, UNREAD).keys()
    listed = [code for code, _ in entries(RULINGS.read_text())]
    assert len(listed) > 40 and len(set(listed)) == len(listed)
    assert set(listed) <= cited, "an entry that nothing cites"
    assert set(NO_CODES) <= cited, "an exception for a code that does not occur"


def test_every_entry_says_what_is_open_or_measured_and_what_we_do():
    for code, (first, second) in entries(RULINGS.read_text()):
        opening = "- **Open:** " if re.fullmatch(RULING, code) else "- **Measures:** "
        assert first.startswith(opening) and first.endswith("."), code
        assert second.startswith("- **We:** ") and second.endswith("."), code


def test_entries_are_in_order():
    listed = [code for code, _ in entries(RULINGS.read_text())]
    rulings = [int(code[1:]) for code in listed if re.fullmatch(RULING, code)]
    assert rulings == sorted(rulings)


def test_codes_within_entries_have_entries_too():
    text = RULINGS.read_text()
    known = {code for code, _ in entries(text)}
    assert codes(text.partition("\n## ")[2]) <= known


@pytest.mark.parametrize(
    ("written", "cited"),
    [
        ("as the published code has it (A99).", {"A99"}),
        ("the largest change (Somebody 2031, XY-7)", {"XY-7"}),
        ("(JW-1 to JW-3)", {"JW-1", "JW-2", "JW-3"}),
        ("(A9 to A11, A23)", {"A9", "A10", "A11", "A23"}),
        ("over settings (WE-1, 4, 5).", {"WE-1", "WE-4", "WE-5"}),
        ('"A10: 50 clusters"', {"A10"}),
        ("Faithfulness (ER) and deception (PR), TM: success", {"ER", "PR", "TM"}),
        ("color: #A10; 0xA1B2 sha-A1 DATA1 A100 JW-1-2 ERASER", set()),
    ],
)
def test_the_scanner_reads_codes_as_they_are_written(written, cited):
    assert codes(written) == cited


@pytest.mark.parametrize("name", ["src/a.py", "docs/deep/b.md", "tests/c.toml", "README.md"])
def test_the_scanner_finds_a_code_that_nobody_knows(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("This follows a ruling of its own (A98).")
    assert citations(tmp_path) == {"A98": {name}}
    assert citations(tmp_path, {path}) == {}
