"""The notebooks of the documentation, and how their cells are run."""

import json
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOKS = [DOCS / "audit.ipynb", *sorted((DOCS / "tutorials").glob("*.ipynb"))]


def read_notebook(path):
    return json.loads(path.read_text(encoding="utf-8"))


def code_of(notebook):
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cells(notebook):
    """Every cell of code in one namespace, which is given back."""
    names = {"__name__": "__main__"}
    for number, code in enumerate(code_of(notebook)):
        exec(compile(code, f"<cell {number}>", "exec"), names)
    return names
