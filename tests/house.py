"""Which part of the house may use which, and what its files import, for tests and for the picture."""

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "attentest"

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
    "evidence.importances.names": set(),
    "model": {"corpus", "shapes"},
    "foreign": {"corpus", "model", "shapes"},
    "constructed": {"corpus", "foreign", "model"},
    "model.training": {"constructed", "corpus", "model", "shapes", "statistics"},
    "fleet": {"corpus", "model", "model.training", "statistics"},
    "evidence": {"corpus", "model", "model.training", "shapes"},
    "charts": {"statistics"},
    "experiments": {
        *("charts", "corpus", "evidence", "evidence.importances.names", "model", "model.training", "shapes"),
        "statistics",
    },
    "auditing": {
        *("claims", "corpus", "evidence", "evidence.importances.names", "experiments", "experiments.cards"),
        *("experiments.catalogue", "foreign", "model", "model.training", "statistics", "store"),
    },
    "experiments.calibration": {
        *("charts", "claims", "constructed", "corpus", "experiments", "model", "statistics"),
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
        *("charts", "claims", "compare", "evidence.importances.names", "experiments"),
        *("experiments.calibration", "experiments.cards", "experiments.catalogue", "experiments.figures"),
        *("references", "statistics", "store", "studies"),
    },
    "terminal": {"bench.engine", "compare", "gallery", "statistics", "store"},
    "auditing.page": {"gallery", "statistics"},
    "auditing.api": {"auditing", "auditing.page", "claims", "model", "statistics", "store"},
    "inspection": {"corpus", "evidence", "evidence.importances.names", "gallery", "model", "statistics"},
    "inspection.api": {
        *("auditing", "corpus", "evidence", "evidence.importances.names", "foreign", "inspection", "model"),
    },
    "live": {
        *("auditing", "bench", "corpus", "evidence", "evidence.importances.names", "experiments", "foreign"),
        *("gallery", "inspection", "model", "store"),
    },
    "web": {"evidence.importances.names", "store"},
    "cli": {
        *("auditing", "auditing.api", "auditing.page", "bench", "compare", "corpus"),
        *("evidence.importances.names", "gallery", "inspection", "inspection.api", "live", "store"),
        *("terminal", "web"),
    },
    "__main__": {"cli"},
    "__init__": {"auditing.api", "bench", "corpus", "inspection.api", "model.training"},
}


def part_of(module):
    """The part a module belongs to: the longest name in the table that it is or lies below."""
    names = module.split(".")
    whole = [".".join(names[:depth]) for depth in range(len(names), 0, -1)]
    return next((name for name in whole if name in MAY_IMPORT), names[0])


PACKAGE = "attentest"
EVERYWHERE = {"refusal", "notebook"}
BY_NAME = ("import_module", "__import__")  # functions that import a module whose name is a string


@cache
def modules_imported(source, package):
    """The full names of all modules, or names in them, that a file in `package` imports, in any way."""
    return frozenset(_imported(ast.parse(source), package))


def _imported(tree, package):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            parent = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{parent}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in BY_NAME:
            yield from _named(node, package)


def _named(call, package):
    """The module that `import_module("...")` imports; `test_no_import_hides_its_name` sees computed names."""
    if not (call.args and isinstance(call.args[0], ast.Constant)):
        return
    name = call.args[0].value
    dots = len(name) - len(name.lstrip("."))
    if dots:
        name = ".".join([*package.split(".")[: len(package.split(".")) + 1 - dots], name[dots:]])
    yield name


def package_of(path):
    """The package that relative imports of a file begin in."""
    return ".".join([PACKAGE, *path.relative_to(SOURCE).parts[:-1]])


def imports(source, package=PACKAGE):
    """The modules of the house, by their names below `attentest`, that a file uses in any way."""
    names = modules_imported(source, package)
    return {name.removeprefix(f"{PACKAGE}.") for name in names if name.startswith(f"{PACKAGE}.")}


def outside(source, package=PACKAGE):
    """The packages of others that a file imports."""
    return {name.split(".")[0] for name in modules_imported(source, package)} - {PACKAGE}


@cache
def sources():
    """The text of every file of the house, by its path, read once a process."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}


def modules():
    """Every module of the house by its name below `attentest`."""
    for path in sources():
        inside = path.relative_to(SOURCE).with_suffix("")
        yield ".".join(inside.parts).removesuffix(".__init__"), path


def used_by(part):
    """The parts that a part uses."""
    files = [path for module, path in modules() if part_of(module) == part]
    assert files
    found = {part_of(name) for path in files for name in imports(sources()[path], package_of(path))}
    return found - {part}


def uses_of(modules):
    """Of each module, by its path, what it imports; a name that is no module is the module it is in."""
    known = dict(modules)
    found = {}
    for module, path in known.items():
        source = sources()[path]
        names = imports(source, package_of(path)) | (outside(source, package_of(path)) & {"torch"})
        whole = (name if name in known or name == "torch" else name.rpartition(".")[0] for name in names)
        found[module] = {name for name in whole if name}
    return found


def reaches_torch(module, uses):
    """Whether importing it imports torch, packages on the way included."""
    reached, ahead = set(), {module}
    while ahead:
        reached |= ahead
        parents = {name.rsplit(".", depth)[0] for name in ahead for depth in range(1, name.count(".") + 1)}
        ahead = parents.union(*(uses.get(name, set()) for name in ahead)) - reached
    return "torch" in reached


def torch_parts():
    """The parts of which some module imports torch, itself or by way of others."""
    uses = uses_of(modules())
    return {part_of(module) for module in uses if reaches_torch(module, uses)}
