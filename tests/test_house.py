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
from attentest.experiments.cards import CARDS
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.experiments.contract import AbstractExperiment
from attentest.experiments.observers import EXPERIMENTS
from attentest.references import references
from attentest.studies.recipe import load_study, names

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "attentest"

# What each part of the house may use; everything may use `refusal` and `notebook`. A dotted name is a part of
# its own: what only lists experiments, or calibration, which audits models and is itself an experiment.
MAY_IMPORT = {
    "refusal": set(),
    "notebook": set(),
    "shapes": set(),
    "references": set(),
    "statistics": {"references"},
    "findings": {"statistics"},
    "corpus": set(),
    "store": set(),
    "bench.engine": set(),
    "studies": set(),
    "claims": {"statistics"},
    "model": {"corpus", "shapes"},
    "foreign": {"corpus", "model", "shapes"},
    "constructed": {"corpus", "foreign", "model"},
    "model.training": {"constructed", "corpus", "model", "shapes", "statistics"},
    "fleet": {"corpus", "model", "model.training", "statistics"},
    "evidence": {"corpus", "foreign", "model", "model.training", "shapes"},
    "charts": {"statistics"},
    "experiments": {
        *("charts", "corpus", "evidence", "foreign", "model", "model.training", "shapes", "statistics"),
    },
    "auditing": {
        *("claims", "corpus", "evidence", "experiments", "experiments.cards", "experiments.catalogue"),
        *("foreign", "model", "model.training", "statistics"),
    },
    "experiments.calibration": {
        *("charts", "claims", "constructed", "corpus", "experiments", "foreign", "model"),
        "statistics",
    },
    "experiments.calibration.observe": {
        *("auditing", "corpus", "experiments", "experiments.calibration", "model"),
    },
    "experiments.cards": {"claims", "experiments.catalogue", "statistics"},
    "experiments.catalogue": {"experiments", "experiments.calibration"},
    "experiments.observers": {"experiments", "experiments.calibration.observe"},
    "experiments.figures": {"charts", "experiments.catalogue"},
    "bench": {
        *("bench.engine", "claims", "corpus", "experiments", "experiments.catalogue"),
        *("experiments.observers", "fleet", "model", "model.training", "statistics", "store", "studies"),
    },
    "compare": {"claims", "experiments", "experiments.catalogue", "statistics", "store", "studies"},
    "gallery": {
        *("charts", "claims", "compare", "experiments", "experiments.calibration"),
        *("experiments.cards", "experiments.catalogue", "experiments.figures", "references", "statistics"),
        *("store", "studies"),
    },
    "terminal": {"bench.engine", "compare", "gallery", "statistics", "store"},
    "auditing.page": {"gallery"},
    "auditing.api": {"auditing", "auditing.page", "claims", "corpus", "model"},
    "live": {"bench", "corpus", "evidence", "experiments", "model", "store"},
    "web": {"store"},
    "cli": {
        *("auditing", "auditing.api", "auditing.page", "bench", "compare", "corpus", "gallery", "live"),
        *("store", "terminal", "web"),
    },
    "__main__": {"cli"},
    "__init__": {"auditing.api", "bench", "corpus", "model.training"},
}


def part_of(module):
    """The part a module belongs to: the longest name in the table that it is or lies below."""
    names = module.split(".")
    whole = [".".join(names[:depth]) for depth in range(len(names), 0, -1)]
    return next((name for name in whole if name in MAY_IMPORT), names[0])


def imports(path):
    """The modules of the house this file uses, however and wherever it imports them."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return {name.removeprefix("attentest.") for name in found if name.startswith("attentest.")}


def modules():
    """Every module of the house by its name below `attentest`."""
    for path in SOURCE.rglob("*.py"):
        inside = path.relative_to(SOURCE).with_suffix("")
        yield ".".join(inside.parts).removesuffix(".__init__"), path


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_imports_only_run_downhill_and_no_allowance_is_unused(part):
    files = [path for module, path in modules() if part_of(module) == part]
    used = {part_of(name) for file in files for name in imports(file)} - {part, "refusal", "notebook"}
    assert files and used == MAY_IMPORT[part] - {"refusal", "notebook"}


def test_no_part_uses_itself_by_way_of_others():
    def below(part, seen):
        for used in MAY_IMPORT[part] - seen:
            seen.add(used)
            below(used, seen)
        return seen

    assert not [part for part in MAY_IMPORT if part in below(part, set())]


# By the names of files: these never import torch, nor anything of ours that does.
TORCH_FREE = re.compile(
    r"(corpus|statistics|claims|store|compare|gallery|charts|terminal|studies|findings|web)(\.|$)"
    r"|experiments\.(catalogue|cards|figures|description)$"
    r"|experiments\.\w+\.(conclude|charts|cards)$"
    r"|experiments\.(?!shared)\w+$(?<!observers)(?<!contract)"
)


def uses_of(modules):
    """Of each module, by its path, what it imports; a name that is no module is the module it is in."""
    known = dict(modules)
    found = {}
    for module, path in known.items():
        names = imports(path) | (outside(path) & {"torch"})
        whole = (name if name in known or name == "torch" else name.rpartition(".")[0] for name in names)
        found[module] = {name for name in whole if name}
    return found


def outside(path):
    """The packages of others that a file imports."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text()))]
    direct = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    return {
        name.split(".")[0]
        for name in direct | {n.module for n in nodes if isinstance(n, ast.ImportFrom)}
        if name
    }


def reaches_torch(module, uses, seen=frozenset()):
    """Whether importing it imports torch, packages on the way included."""
    parents = {module.rsplit(".", depth)[0] for depth in range(1, module.count(".") + 1)}
    then = (uses.get(module, set()) | parents) - seen
    return "torch" in then or any(reaches_torch(name, uses, seen | then | {module}) for name in then)


def test_what_must_be_free_of_torch_is():
    uses = uses_of(modules())
    free = [module for module in uses if TORCH_FREE.match(module)]
    assert len(free) > 150 and not [module for module in free if reaches_torch(module, uses)]
    assert reaches_torch("model.seam", uses) and reaches_torch("experiments.permutation.observe", uses)


def test_every_part_of_the_house_is_in_the_table():
    assert {part_of(module) for module, _ in modules()} == set(MAY_IMPORT)


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
    assert {part_of(name) for name in imports(path)} == {"bench"}


GALLERY = ["attentest.store.store", "attentest.experiments.catalogue", "attentest.terminal.documents"]
GALLERY += ["attentest.terminal.comparisons", "attentest.compare.formats", "attentest.compare.table"]
GALLERY += ["attentest.gallery.extra", "attentest.gallery.folder", "attentest.cli.results"]
GALLERY += ["attentest.gallery.export", "attentest.store.importing", "attentest.cli.store"]
GALLERY += ["attentest.experiments.calibration.table", "attentest.claims.calibrated"]
GALLERY += ["attentest.web.drawing", "attentest.web.guard", "attentest.web.site", "attentest.cli.serve"]
DRAWN = ["attentest.experiments.figures", "attentest.gallery.site", "attentest.web.server"]
DRAWN += ["attentest.web.application"]  # these need the extra `web`, too


@pytest.mark.parametrize(
    ("module", "loads_torch"),
    [(m, False) for m in (*GALLERY, *DRAWN, "attentest", "attentest.cli.main", "attentest.bench.conclusion")]
    + [("attentest.model.seam", True)],  # the check can see torch when torch is there
)
def test_the_gallery_opens_without_torch(module, loads_torch):
    if module in DRAWN:
        pytest.importorskip("altair")
    code = f"import {module}, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == loads_torch


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
        if path.parent.name == "cli" or (path.parent == SOURCE and path.name.startswith("__")):
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
