"""Fills the generated blocks of the pages docs/reproductions/*.md from the files under results/.

    python docs/reproductions.py            writes the pages and their figures
    python docs/reproductions.py --check    writes nothing, names the stale files and exits with 1

How to write a block is said in docs/reproduction_blocks.py; what each kind shows, in the table KINDS below.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from reproduction_audits import criteria, measures
from reproduction_blocks import Block, PageError, blocks, filled
from reproduction_figures import FOLDER, figure
from reproduction_findings import ROOT, table
from reproduction_tables import claims, provenance, published, scales

from attentest.refusal import Refusal

PAGES = ROOT / "docs" / "reproductions"
KINDS: dict[str, Callable[[Block], str]] = {
    "findings": table,  # models, with their controls below them; a column for each measure
    "groups": table,  # groups of an experiment; a column for each measure or corpus
    "claims": claims,  # the claims of a study with their verdicts
    "published": published,  # the published numbers of a study beside ours
    "provenance": provenance,  # where the findings of a file come from
    "scales": scales,  # the rule of the study `vectors`
    "audit": criteria,  # the criteria of an audit with their tests
    "audit-findings": measures,  # numbers of an audit beside those of the untrained twin
}


def generated(path: Path, page: str) -> dict[Path, str]:
    """The page and its figures by their paths, as the results make them."""
    figures: dict[Path, str] = {}

    def generate(block: Block) -> str:
        if block.kind == "figure":
            lines, figures[path.parent / FOLDER / f"{block.name}.svg"] = figure(block)
            return lines
        if block.kind not in KINDS:
            known = ", ".join([*KINDS, "figure"])
            raise block.error(f"the kind is one of {known}, and {block.kind!r} is none of them.")
        return KINDS[block.kind](block)

    try:
        return {path: filled(page, generate), **figures}
    except (PageError, Refusal) as error:
        raise PageError(f"{path.name}: {error}") from error


def pages(folder: Path = PAGES) -> list[Path]:
    """The pages that have blocks; those of the first edition have none."""
    return [path for path in sorted(folder.glob("*.md")) if "<!-- table " in path.read_text(encoding="utf-8")]


def made(paths: list[Path]) -> dict[Path, str]:
    """Every file that the results make for these pages."""
    files: dict[Path, str] = {}
    for path in paths:
        for file, content in generated(path, path.read_text(encoding="utf-8")).items():
            if file in files:
                raise PageError(f"{path.name}: another page has a figure of the name {file.stem} already.")
            files[file] = content
    return files


def stale(files: dict[Path, str]) -> list[Path]:
    """The files that are not what the results make."""
    return [p for p, content in files.items() if not p.is_file() or p.read_text(encoding="utf-8") != content]


def unused(folder: Path = PAGES) -> list[Path]:
    """Figures that no block of any page draws."""
    drawn = {
        block.name
        for path in pages(folder)
        for block in blocks(path.read_text(encoding="utf-8"))
        if block.kind == "figure"
    }
    return [path for path in sorted((folder / FOLDER).glob("*.svg")) if path.stem not in drawn]


def main(arguments: list[str]) -> int:
    """Write what is stale, or name it."""
    if arguments not in ([], ["--check"]):
        print("Usage: python docs/reproductions.py [--check]", file=sys.stderr)
        return 2
    try:
        files = made(pages())
    except PageError as error:
        print(error, file=sys.stderr)
        return 2
    changed, left = stale(files), unused()
    for path in [*changed, *left]:
        print(
            path.relative_to(ROOT),
            "is drawn by no page" if path in left else "is stale" if arguments else "is written",
        )
    if arguments:
        return 1 if changed or left else 0
    for path in changed:
        path.parent.mkdir(exist_ok=True)
        path.write_text(files[path], encoding="utf-8")
    for path in left:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
