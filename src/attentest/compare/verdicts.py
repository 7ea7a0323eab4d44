"""What a store says of the claims of the studies that ask for what it holds."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from attentest.claims import judging
from attentest.claims.claims import AXES, Claim, ClaimAtPoint
from attentest.claims.judging import Evidence
from attentest.compare.points import GridPoint
from attentest.compare.stored import StoredFinding
from attentest.statistics.moderated import by_priors
from attentest.studies.recipe import Grid, Study
from attentest.studies.seed_deviations import load_seed_deviations


@final
@dataclass(frozen=True, eq=False)
class Judged:
    """A claim of a study, put to one finding cell."""

    study: Study
    point: GridPoint
    finding: StoredFinding
    verdict: ClaimAtPoint


def asks_for(study: Study, finding: StoredFinding) -> bool:
    """Whether the study's recipe names this finding; what it does not mention may be anything."""
    config, grid = finding.cell.config, study.grid
    in_grid = all(config[axis] in getattr(grid, axis) for axis in AXES)
    made = _holds(study.model, finding.settings) and _is_varied_so(study.grid, finding.settings)
    return in_grid and made and _is_a_step(study, finding)


def _is_varied_so(grid: Grid, settings: Mapping[str, object]) -> bool:
    """Whether the grid has such word vectors, by name and by width; what it does not vary may be anything."""
    name, width = str(settings.get("vectors", "random")), settings.get("embedding")
    wide = grid.embedding is None or "default" in grid.embedding or width in grid.embedding
    return wide and (grid.vectors is None or any(_names(each, name) for each in grid.vectors))


def _names(written: str, stored: str) -> bool:
    """Whether a recipe means these vectors: a default is stored by its scale, a file by its digest."""
    if written.startswith("random("):
        return written == stored
    if written == "random" or written.startswith("word2vec"):
        return stored.startswith(written)
    return stored.startswith("file:")


def command(studies: Mapping[str, Study], finding: StoredFinding) -> str:
    """The study that makes the finding, as one would call it: the one that says most about it, if any."""
    asking = [(_said(study, finding), name) for name, study in studies.items() if asks_for(study, finding)]
    if not asking:
        return ""
    name = max(asking, key=lambda pair: pair[0])[1]
    seeds = len(finding.cell.inputs)
    more = f" --seeds {seeds}" if seeds != studies[name].seeds else ""
    more += " --device cuda" if "trained_on" in finding.settings else ""
    corpus = finding.cell.config["corpus"]
    return f"attentest study {shlex.quote(Path(name).name)} --corpus {shlex.quote(corpus)}{more}"


def _said(study: Study, finding: StoredFinding) -> int:
    """How many settings and parameters the recipe states."""
    steps = [step for step in study.experiment if step.name == finding.cell.config["experiment"]]
    return len(study.model) + max(len(step.parameters) for step in steps)


def _is_a_step(study: Study, finding: StoredFinding) -> bool:
    config = finding.cell.config
    return any(
        (step.name, step.mode) == (config["experiment"], config["mode"])
        and step.is_about(judging.point(config))
        and _holds(step.parameters, config["parameters"])
        for step in study.experiment
    )


def _holds(said: Mapping[str, object], settings: Mapping[str, object]) -> bool:
    return all(settings.get(name) == value for name, value in said.items())


def judged(study: Study, points: Sequence[GridPoint]) -> Iterator[Judged]:
    """Every claim of the study at every grid point it is about, in the order of the claims."""
    claims = [Claim(**written.model_dump()) for written in study.claim]
    asked = {f.cell.key: (p, f) for p in points for f in p.findings if asks_for(study, f)}
    evidence = {
        key: Evidence({**f.cell.config, "model": f.settings}, f.corpus_key, f.table)
        for key, (_, f) in asked.items()
    }
    for key, verdict in judging.judged(claims, evidence, by_priors(load_seed_deviations())):
        yield Judged(study, *asked[key], verdict)
