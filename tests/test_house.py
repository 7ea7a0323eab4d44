"""The house tests itself: imports run downhill, the gallery never sees torch, files stay readable."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from attentest.bench.plan import MODEL_VERSION, READING_VERSION
from attentest.corpus.sources import CORPORA
from attentest.experiments.catalogue import EXPERIMENTS
from attentest.experiments.contract import AbstractExperiment
from attentest.findings.cards import CARDS
from attentest.findings.conclusions import CONCLUSIONS
from attentest.references import references
from attentest.studies.recipe import load_study, names

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "attentest"

# What each part of the house may use; everything may use `refusal` and `notebook`.
MAY_IMPORT = {
    "refusal": set(),
    "notebook": set(),
    "shapes": set(),
    "references": set(),
    "findings": {"references"},
    "corpus": set(),
    "store": set(),
    "engine": set(),
    "studies": set(),
    "model": {"corpus", "shapes", "findings"},
    "evidence": {"model", "corpus", "shapes"},
    "experiments": {"evidence", "model", "corpus", "shapes", "findings"},
    "bench": {"experiments", "evidence", "model", "corpus", "findings", "store", "engine", "studies"},
    "figures": {"findings", "store", "engine"},
    "report": {"figures", "findings", "references", "store", "studies"},
    "cli_shared": {"figures"},
    "cli_corpora": {"cli_shared", "corpus", "figures"},
    "web": {"report", "store"},
    "live": {"bench", "evidence", "model", "corpus", "findings", "store"},
    "auditor": {"experiments", "corpus", "findings", "model", "report"},
    "cli_audit": {"auditor", "experiments", "cli_shared", "corpus", "figures", "report"},
    "cli_results": {"cli_shared", "corpus", "figures", "report", "store"},
    "cli_store": {"cli_shared", "figures", "report", "store"},
    "cli_serve": {"cli_results", "cli_shared", "corpus", "live", "store", "web"},
    "cli": {
        "cli_audit",
        "cli_corpora",
        "cli_results",
        "cli_serve",
        "cli_shared",
        "cli_store",
        "bench",
        "corpus",
        "figures",
        "store",
        "studies",
    },
    "__main__": {"cli"},
    "__init__": {"auditor", "bench", "corpus", "model"},
}


def imports(path):
    """The parts of the house this file uses, however and wherever it imports them."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return {name.split(".")[1] for name in found if name.startswith("attentest.")}


def files_of(part):
    return [file for file in (SOURCE / f"{part}.py", *SOURCE.glob(f"{part}/**/*.py")) if file.exists()]


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_imports_only_run_downhill(part):
    files = [file for file in files_of(part) if file.relative_to(SOURCE).as_posix() not in CATALOGUES]
    used = set().union(*(imports(file) for file in files)) - {part, "refusal", "notebook"}
    assert files and used <= MAY_IMPORT[part]


# They list what every experiment has; one in a folder of its own has its conclusion, cards and charts there.
CATALOGUES = {"findings/conclusions.py", "findings/cards.py", "figures/charts.py", "report/calibration.py"}
CATALOGUES |= {path.relative_to(SOURCE).as_posix() for path in SOURCE.glob("experiments/*/charts.py")}


def test_every_part_of_the_house_is_in_the_table():
    parts = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if not path.name.startswith("__")}
    assert parts - {"py.typed", "references.bib"} <= set(MAY_IMPORT)


@pytest.mark.parametrize(
    "written",
    [
        "import attentest.bench.plan",
        "from attentest.bench import plan",
        "from attentest import bench",
        "def f():\n    from attentest.bench.plan import Planner",
        "import attentest.bench as b",
    ],
)
def test_no_way_of_writing_an_import_escapes(written, tmp_path):
    path = tmp_path / "file.py"
    path.write_text(written)
    assert imports(path) == {"bench"}


GALLERY = ["attentest.store.store", "attentest.findings.conclusions", "attentest.figures.documents"]
GALLERY += ["attentest.figures.comparisons", "attentest.figures.formats", "attentest.report.compare"]
GALLERY += ["attentest.report.extra", "attentest.report.folder", "attentest.cli_results"]
GALLERY += ["attentest.report.export", "attentest.store.importing", "attentest.cli_store"]
GALLERY += ["attentest.experiments.calibration.table", "attentest.findings.calibrated"]
GALLERY += ["attentest.web.server", "attentest.web.site", "attentest.cli_serve"]
DRAWN = ["attentest.figures.charts", "attentest.report.site"]  # these need the extra `web`, too


# One process imports all of a part, and says the first that loads torch; the last part is one that does.
OPENED = {
    "gallery": [*GALLERY, "attentest", "attentest.cli", "attentest.bench.conclusion"],
    "drawn": DRAWN,
    "model": ["attentest.model.seam"],
}
FIRST_WITH_TORCH = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    if "torch" in sys.modules:
        sys.exit(name)
"""


@pytest.mark.parametrize("part", OPENED)
def test_the_gallery_opens_without_torch(part):
    if part == "drawn":
        pytest.importorskip("altair")
    command = [sys.executable, "-c", FIRST_WITH_TORCH, *OPENED[part]]
    said = subprocess.run(command, check=False, capture_output=True, text=True)
    assert said.stderr.strip() == ("attentest.model.seam" if part == "model" else "")
    assert said.returncode == (part == "model")


def test_no_file_is_longer_than_a_sitting():
    long = {str(path): n for path in SOURCE.rglob("*.py") if (n := len(path.read_text().splitlines())) > 300}
    assert not long, "which idea in each deserves a name?"


GRADIENT_MODES = ("no_grad", "inference_mode", "enable_grad", "set_grad_enabled")


def yields_in_gradient_mode(source):
    """Lines that give control back to a consumer while a gradient mode is set by a `with` or a decorator.

    Torch's decorator leaves its mode at every yield, but only where it sees that the function is a generator;
    another decorator beneath it, such as jaxtyping's in the tests, hides that.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.With):
            setting = [item.context_expr for item in node.items]
        elif isinstance(node, ast.FunctionDef):
            setting = node.decorator_list
        else:
            continue
        if any(mode in ast.unparse(each) for each in setting for mode in GRADIENT_MODES):
            found += [each.lineno for each in _within(node) if isinstance(each, ast.Yield | ast.YieldFrom)]
    return found


def _within(node):
    """What is inside the node, but not inside a function or a class of its own."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _within(child)


@pytest.mark.parametrize(
    ("written", "caught"),
    [
        ("def f():\n    with torch.no_grad():\n        yield 1", [3]),
        ("def f():\n    with a, torch.inference_mode():\n        for i in b:\n            yield from i", [4]),
        ("@torch.no_grad()\ndef f():\n    yield 1", [3]),
        ("def f():\n    with torch.no_grad():\n        i = 1\n    yield i", []),
        ("@torch.no_grad()\ndef f():\n    def g():\n        yield 1\n    return list(g())", []),
    ],
)
def test_a_yield_inside_a_gradient_mode_is_seen(written, caught):
    assert yields_in_gradient_mode(written) == caught


def test_no_generator_yields_inside_a_gradient_mode():
    """Whoever iterates would have the mode, too, and train nothing without any error."""
    found = {str(path): yields_in_gradient_mode(path.read_text()) for path in SOURCE.rglob("*.py")}
    assert not {path: lines for path, lines in found.items() if lines}


def test_only_the_edges_import_late():
    late = []
    for path in SOURCE.rglob("*.py"):
        if path.name in (
            "cli.py",
            "cli_audit.py",
            "cli_corpora.py",
            "cli_results.py",
            "cli_serve.py",
            "cli_shared.py",
            "cli_store.py",
            "__init__.py",
            "__main__.py",
        ):
            continue
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                late += [path for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert not late


def test_classes_are_abstract_or_final():
    def below(kind):
        for child in kind.__subclasses__():
            yield child
            yield from below(child)

    ours = [kind for kind in below(AbstractExperiment) if kind.__module__.startswith("attentest")]
    assert ours and all(inspect.isabstract(kind) != getattr(kind, "__final__", False) for kind in ours)
    assert all(kind.__name__.startswith("Abstract") == inspect.isabstract(kind) for kind in ours)


def test_every_experiment_has_a_conclusion_and_every_card_an_experiment():
    assert set(EXPERIMENTS) == set(CONCLUSIONS)
    assert {card.split("/")[0] for card in CARDS} == set(EXPERIMENTS)


@pytest.mark.parametrize("name", names())
def test_every_study_of_the_package_can_be_read(name):
    assert load_study(name).study == name


def cited():
    keys = {kind.cite for kind in EXPERIMENTS.values()} | {card.paper for card in CARDS.values()}
    keys |= {source.cite for source in CORPORA.values()} | {load_study(name).cite for name in names()}
    return sorted(keys - {""})


@pytest.mark.parametrize("key", cited())
def test_every_citation_resolves(key):
    assert key in references()


def test_nothing_is_pickled_and_nothing_left_unfinished():
    forbidden = re.compile(
        r"\bpickle\b|torch\.(load|save)\(|TODO|FIXME|NotImplementedError|except Exception: *pass"
    )
    guilty = [str(path) for path in SOURCE.rglob("*.py") if forbidden.search(path.read_text())]
    assert not [path for path in guilty if "files.py" not in path and "local.py" not in path]


def test_a_raised_version_says_what_it_costs_to_run_again():
    table = (ROOT / "docs" / "versions.md").read_text()
    written = dict(re.findall(r"^\| (.+?) \| (\d+) \| \w.+ \|$", table, flags=re.M))
    stages = {"model": MODEL_VERSION, "reading": READING_VERSION}
    stages |= {f"observation of `{name}`": kind.version for name, kind in EXPERIMENTS.items()}
    assert written == {name: str(version) for name, version in stages.items()}


def test_no_test_imports_another_test():
    """What two test files need is in a file that is no test, and no test is collected twice."""
    tests = Path(__file__).parent
    for path in tests.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                found = [node.module or "", *(alias.name for alias in node.names)]
            else:
                found = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            parts = {part for name in found for part in name.split(".") if part.startswith("test_")}
            assert not [part for part in parts if any(tests.rglob(f"{part}.py"))], path.name
