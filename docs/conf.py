"""How Sphinx builds the documentation: `make docs`, warnings as errors, into docs/_build/html, which works offline from disk."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import attentest  # noqa: E402

project = "attentest"
author = "the attentest maintainers"
release = version = attentest.__version__
html_title = f"attentest {release}"

extensions = ["myst_nb", "sphinx.ext.autodoc"]
root_doc = "index"
exclude_patterns = ["_build", "reproductions/claims", "**.ipynb_checkpoints"]

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
# A tutorial is executed when it is built; a cell that fails is a warning, and so an error.
nb_execution_mode = "cache"
nb_execution_in_temp = True  # what a tutorial writes is not left here
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

html_theme = "pydata_sphinx_theme"
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
}

# Docstrings are plain text with Markdown's single backticks; Sphinx would read these as roles.
BACKTICKS = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
MARKUP = re.compile(r"(?<!\\)([*|])")


def plain(line: str) -> str:
    """A line of a docstring with its code kept as code, and no other markup read into it."""
    parts = BACKTICKS.split(line)
    return "".join(f"``{part}``" if n % 2 else MARKUP.sub(r"\\\1", part) for n, part in enumerate(parts))


def read_as_text(app, what, name, obj, options, lines) -> None:
    """Docstrings as they are written: paragraphs, and blocks that are indented stay as they are."""
    lines[:] = [
        line if line.startswith("    ") else re.sub(r"_(?=\W|$)", r"\\_", plain(line)) for line in lines
    ]
    for n in range(len(lines) - 1, 0, -1):
        if lines[n].startswith("    ") and lines[n - 1] and not lines[n - 1].startswith("    "):
            lines[n:n] = ["", "::", ""] if not lines[n - 1].endswith("::") else [""]


def inside(app, name, source) -> None:
    """Links to the README of the results, which is outside this folder, lead to the page that includes it."""
    source[0] = re.sub(
        r"\]\((?:\.\./)*results/README\.md\)", f"]({'../' * name.count('/')}results.md)", source[0]
    )


def inside_included(app, path, name, content) -> None:
    """The same for a page that includes another."""
    inside(app, name, content)


def setup(app) -> None:
    """Connects the reader of docstrings and the mending of links."""
    app.connect("autodoc-process-docstring", read_as_text)
    app.connect("source-read", inside)
    app.connect("include-read", inside_included)
