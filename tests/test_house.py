"""The house tests itself: imports run downhill, the gallery never sees torch, files stay readable."""

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from attentest.bench.plan import MODEL_VERSION, READING_VERSION
from attentest.corpus.sources import CORPORA
from attentest.experiments.cards import CARDS
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.experiments.contract import AbstractExperiment
from attentest.experiments.observers import EXPERIMENTS
from attentest.references import references
from attentest.statistics.interval import weighted_mean
from attentest.studies.recipe import load_study, names
from tests.checked import modules_with_shapes
from tests.house import (
    BY_NAME,
    EVERYWHERE,
    MAY_IMPORT,
    PACKAGE,
    SOURCE,
    imports,
    modules,
    part_of,
    reaches_torch,
    sources,
    used_by,
    uses_of,
)

ROOT = Path(__file__).parents[1]


def misuse(allowed, used):
    """What a part uses that it may not, and what it may use and does not: both are wrong."""
    return {"uses": used - EVERYWHERE - allowed, "does not use": allowed - used}


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_imports_are_exactly_those_of_the_table(part):
    assert misuse(MAY_IMPORT[part], used_by(part)) == {"uses": set(), "does not use": set()}


@pytest.mark.parametrize(
    ("allowed", "used", "wrong"),
    [
        ({"corpus"}, {"corpus", "model"}, {"uses": {"model"}, "does not use": set()}),
        ({"corpus", "model"}, {"corpus"}, {"uses": set(), "does not use": {"model"}}),
        ({"corpus"}, {"corpus", "refusal"}, {"uses": set(), "does not use": set()}),
    ],
)
def test_an_import_too_many_and_an_allowance_too_many_are_seen(allowed, used, wrong):
    assert misuse(allowed, used) == wrong


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
    r"|evidence\.importances\.names$"
    r"|experiments\.\w+\.(conclude|charts|cards)$"
    r"|experiments\.(?!shared)\w+$(?<!observers)(?<!contract)"
)


def test_what_must_be_free_of_torch_is():
    uses = uses_of(modules())
    free = [module for module in uses if TORCH_FREE.match(module)]
    assert len(free) > 150 and not [module for module in free if reaches_torch(module, uses)]
    assert reaches_torch("model.seam", uses) and reaches_torch("experiments.permutation.observe", uses)


def test_every_part_of_the_house_is_in_the_table():
    assert {part_of(module) for module, _ in modules()} == set(MAY_IMPORT)


@pytest.mark.parametrize(
    ("package", "written"),
    [
        ("attentest", "import attentest.bench.plan"),
        ("attentest", "from attentest.bench import plan"),
        ("attentest", "from attentest import bench"),
        ("attentest", "def f():\n    from attentest.bench.plan import Planner"),
        ("attentest", "import attentest.bench as b"),
        ("attentest", "from . import bench"),
        ("attentest.web", "from ..bench import plan"),
        ("attentest.web", "from .. import bench"),
        ("attentest.experiments.audit", "from ...bench.plan import Planner"),
        ("attentest", "import importlib\nimportlib.import_module('attentest.bench.plan')"),
        ("attentest", "from importlib import import_module\nimport_module('attentest.bench')"),
        ("attentest.web", "import importlib\nimportlib.import_module('..bench.plan', 'attentest.web')"),
        ("attentest", "__import__('attentest.bench')"),
    ],
)
def test_no_way_of_writing_an_import_escapes(package, written):
    assert {part_of(name) for name in imports(written, package)} == {"bench"}


def test_a_relative_import_of_a_neighbour_stays_in_its_part():
    assert imports("from . import plan", "attentest.bench") == {"bench.plan"}
    assert imports("from .guided.observe import Guided", "attentest.experiments") == {
        "experiments.guided.observe.Guided"
    }


def test_a_file_in_a_folder_of_a_part_is_walked():
    """A file two folders down belongs to its part, or to a part of its own."""
    parts = {module: part_of(module) for module, _ in modules()}
    assert parts["experiments.guided.observe"] == "experiments"
    assert parts["experiments.calibration.observe"] == "experiments.calibration.observe"


def test_shapes_are_checked_while_tests_run():
    with pytest.raises(TypeCheckError):
        weighted_mean(np.zeros((2, 2)), np.ones((1, 2)))
    assert len(modules_with_shapes()) > 100 and "attentest.statistics.interval" in modules_with_shapes()


def test_findings_are_made_in_one_place():
    """Whatever the estimate is, what follows from the seeds is computed once."""
    makers = {
        path.relative_to(SOURCE).as_posix()
        for path, source in speaking_of("Finding(")
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Finding"
    }
    assert makers == {"statistics/finding.py"}


def test_numbers_are_read_out_of_names_in_one_place():
    """A model's name may hold a number; where else would read it, two of them could disagree."""
    reading = re.compile(r"float\([^()]*\.(?:removeprefix|partition|rpartition|split)\(")
    read = {
        path.relative_to(SOURCE).as_posix() for path, source in sources().items() if reading.search(source)
    }
    # The other one reads the setting of word vectors, which is stored as it is written.
    assert read == {"experiments/shared/numbered.py", "experiments/vectors/conclude.py"}


@pytest.mark.parametrize(
    ("spelling", "home"),
    [
        (r"""partition\(["']@["']\)|split\(["']@["']\)|endswith\(["']@""", "statistics/named.py"),
        (r"""(removeprefix|startswith|inputs\[f?|compile\(r)\(?["']seed """, "store/cell.py"),
    ],
)
def test_stored_names_become_data_in_one_place(spelling, home):
    """What a measure is measured at and what seed an observation is of are read by one function each."""
    reading = re.compile(spelling)
    found = {
        path.relative_to(SOURCE).as_posix() for path, source in sources().items() if reading.search(source)
    }
    assert found == {home}


# Files that import by a computed name: the public API, loaded lazily, a factory that a user names, and the
# figures of every experiment.
COMPUTED = {"__init__.py", "auditing/models.py", "experiments/figures.py"}


def speaking_of(*words):
    """The files of the house that have one of these words anywhere: only they need to be parsed."""
    return [(path, source) for path, source in sources().items() if any(word in source for word in words)]


def computed_imports(source):
    """Whether a module is imported whose name the source does not tell."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    by_name = [call for call in calls if ast.unparse(call.func).split(".")[-1] in BY_NAME]
    return any(not (call.args and isinstance(call.args[0], ast.Constant)) for call in by_name)


def test_no_import_hides_its_name():
    assert computed_imports("import importlib\nimportlib.import_module('attentest.' + part)")
    assert not computed_imports("import importlib\nimportlib.import_module('tokenizers')")
    files = {file.relative_to(SOURCE).as_posix(): source for file, source in speaking_of(*BY_NAME)}
    assert {name for name, source in files.items() if computed_imports(source)} == COMPUTED


GALLERY = ["attentest.corpus.catalogue", "attentest.claims.judging", "attentest.findings.comparison"]
GALLERY += ["attentest.experiments.cards", "attentest.statistics.interval", "attentest.statistics.record"]
GALLERY += ["attentest.store.store", "attentest.experiments.catalogue", "attentest.terminal.documents"]
GALLERY += ["attentest.terminal.comparisons", "attentest.compare.formats", "attentest.compare.table"]
GALLERY += ["attentest.gallery.extra", "attentest.gallery.folder", "attentest.cli.results"]
GALLERY += ["attentest.gallery.export", "attentest.store.importing", "attentest.cli.store"]
GALLERY += ["attentest.experiments.calibration.table", "attentest.claims.calibrated"]
GALLERY += ["attentest.web.drawing", "attentest.web.guard", "attentest.web.site", "attentest.cli.serve"]
DRAWN = ["attentest.experiments.figures", "attentest.gallery.site", "attentest.web.server"]
DRAWN += ["attentest.web.application"]  # these need the extra `web`, too


# One process imports all of these, and says the first that loads torch: the last, which is there to.
FIRST_WITH_TORCH = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    if "torch" in sys.modules:
        sys.exit(name)
"""


def test_corpora_findings_and_the_gallery_open_without_torch():
    drawn = DRAWN if importlib.util.find_spec("altair") else []
    names = [*GALLERY, "attentest", "attentest.cli.main", "attentest.bench.conclusion", *drawn]
    command = [sys.executable, "-c", FIRST_WITH_TORCH, *names, "attentest.model.seam"]
    said = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (said.returncode, said.stderr.strip()) == (1, "attentest.model.seam")


def test_no_file_is_longer_than_a_sitting():
    long = {str(path): n for path, source in sources().items() if (n := len(source.splitlines())) > 300}
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
    found = {str(path): yields_in_gradient_mode(source) for path, source in speaking_of(*GRADIENT_MODES)}
    assert not {path: lines for path, lines in found.items() if lines}


def test_only_the_edges_import_late():
    late = []
    for path, source in sources().items():
        if path.parent.name == "cli" or (path.parent == SOURCE and path.name.startswith("__")):
            continue
        if not re.search(r"^[ \t]+(from|import)\b|[:;] *(from|import)\b", source, re.MULTILINE):
            continue  # no line but whole ones begins an import
        for function in ast.walk(ast.parse(source)):
            if isinstance(function, ast.FunctionDef):
                late += [path for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert not late


# What is neither abstract nor final: interfaces, records without behaviour, and the two classes that only
# say how pydantic reads what comes from outside.
OPEN = {"Protocol", "NamedTuple", "Enum", "StrEnum", "TypedDict", "BaseModel"}


def classes(source):
    """Every class of a file, inner ones too, as (name, names of its bases, whether final)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}
            final = any(ast.unparse(each).split(".")[-1] == "final" for each in node.decorator_list)
            yield node.name, bases, final


def open_classes(source):
    """Classes that anybody may extend by accident: neither `Abstract...` nor final nor of the open kinds."""
    return [
        name
        for name, bases, final in classes(source)
        if not bases & OPEN and name.lstrip("_").startswith("Abstract") == final
    ]


@pytest.mark.parametrize(
    ("written", "caught"),
    [
        ("class Model:\n    pass", ["Model"]),
        ("@final\nclass Model:\n    pass", []),
        ("@typing.final\n@dataclass(frozen=True)\nclass Model:\n    pass", []),
        ("class AbstractModel(ABC):\n    pass", []),
        ("@final\nclass AbstractModel(ABC):\n    pass", ["AbstractModel"]),
        ("class Read(Protocol):\n    pass", []),
        ("class Read(Sequence[int]):\n    pass", ["Read"]),
        ("class Pair(NamedTuple):\n    x: int", []),
        ("def f():\n    class Inner(nn.Module):\n        pass", ["Inner"]),
    ],
)
def test_an_open_class_is_seen(written, caught):
    assert open_classes(written) == caught


def test_classes_are_abstract_or_final():
    found = {str(path): open_classes(source) for path, source in speaking_of("class ")}
    assert not {path: names for path, names in found.items() if names}


def loaded_classes():
    """The classes of the package as Python has them, wherever they are defined in a module."""
    for path in sources():
        if path.name == "__main__.py":
            continue
        name = ".".join([PACKAGE, *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as lacking:  # an extra that is not installed here
            assert not str(lacking.name).startswith(PACKAGE)
            continue
        yield from (
            each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == name
        )


def misnamed(kind):
    """Whether the name promises abstract methods that are not there, or is silent about those that are."""
    open_kind = getattr(kind, "_is_protocol", False)
    return not open_kind and kind.__name__.lstrip("_").startswith("Abstract") != inspect.isabstract(kind)


def test_abstract_in_a_name_means_abstract_methods():
    kinds = set(loaded_classes())
    assert len(kinds) > 300 and {AbstractExperiment, *EXPERIMENTS.values()} <= kinds
    assert not [kind for kind in kinds if misnamed(kind)]


def test_a_name_that_promises_too_much_or_too_little_is_seen():
    class AbstractNothing:
        pass

    class Silent(ABC):
        @abstractmethod
        def answer(self):
            """Nobody says so."""

    assert misnamed(AbstractNothing) and misnamed(Silent) and not misnamed(AbstractExperiment)


FOREIGN = re.compile(r"foreign/\w+\.py")  # the files of models made elsewhere


def foreign_classes():
    """The classes that implement `Model` for other libraries."""
    return {name for path, source in sources().items() if is_foreign(path) for name, *_ in classes(source)}


def is_foreign(path):
    return FOREIGN.fullmatch(path.relative_to(SOURCE).as_posix())


def asked_for_their_class(source, names):
    """Lines that ask whether something is of one of these classes, by isinstance, issubclass or type."""
    found = []
    for node in ast.walk(ast.parse(source)):
        asks = isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass")
        asks |= isinstance(node, ast.Compare) and ast.unparse(node).startswith("type(")
        asks |= isinstance(node, ast.MatchClass)
        if not asks:
            continue
        told = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        told |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        if told & names:
            found.append(node.lineno)
    return found


@pytest.mark.parametrize(
    ("written", "caught"),
    [
        ("isinstance(model, TransformerModel)", [1]),
        ("if isinstance(model, Network | adapter.AdaptedModel):\n    pass", [1]),
        ("x = 1\nissubclass(kind, (int, TransformerModel))", [2]),
        ("type(model) is TransformerModel", [1]),
        ("match model:\n    case TransformerModel():\n        pass", [2]),
        ("TransformerModel(model)\nisinstance(model.encoder, Recurrent)", []),
    ],
)
def test_asking_for_the_class_of_a_foreign_model_is_seen(written, caught):
    assert asked_for_their_class(written, {"TransformerModel", "AdaptedModel"}) == caught


def test_nobody_else_asks_what_class_a_foreign_model_has():
    names = foreign_classes()
    assert {"TransformerModel", "AdaptedModel", "HeadsTogether", "Mapped", "TransformerReading"} <= names
    others = [(path, source) for path, source in speaking_of(*names) if not is_foreign(path)]
    found = {str(path): asked_for_their_class(source, names) for path, source in others}
    assert not {path: lines for path, lines in found.items() if lines}


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
    guilty = [str(path) for path, source in sources().items() if forbidden.search(source)]
    assert not [path for path in guilty if "files.py" not in path and "local.py" not in path]


def test_a_raised_version_says_what_it_costs_to_run_again():
    table = (ROOT / "docs" / "versions.md").read_text()
    written = dict(re.findall(r"^\| (.+?) \| (\d+) \| \w.+ \|$", table, flags=re.M))
    stages = {"model": MODEL_VERSION, "reading": READING_VERSION}
    stages |= {f"observation of `{name}`": kind.version for name, kind in EXPERIMENTS.items()}
    assert written == {name: str(version) for name, version in stages.items()}


def test_no_test_imports_another_test():
    """What two test files need is in a file that is no test, and no test is collected twice."""
    texts = {path: path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("*.py")}
    collected = {path.stem for path in texts if path.stem.startswith("test_")}
    for path, source in texts.items():
        if not any(name in source for name in collected):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom):
                found = [node.module or "", *(alias.name for alias in node.names)]
            else:
                found = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            parts = {part for name in found for part in name.split(".") if part.startswith("test_")}
            assert not parts & collected, path.name
