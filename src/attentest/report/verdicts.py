"""What a store says of the claims of the studies that ask for what it holds."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attentest.findings.claims import AXES, Claim, Verdict, verdict
from attentest.report.points import GridPoint
from attentest.report.stored import StoredFinding
from attentest.studies.recipe import Study


@dataclass(frozen=True, eq=False)
class Judged:
    """A claim of a study, put to one finding cell."""

    study: Study
    point: GridPoint
    finding: StoredFinding
    verdict: Verdict


def asks_for(study: Study, finding: StoredFinding) -> bool:
    """Whether the study's recipe names this finding; what it does not mention may be anything."""
    config, grid = finding.cell.config, study.grid
    in_grid = all(config[axis] in getattr(grid, axis) for axis in AXES)
    return in_grid and _holds(study.model, finding.settings) and _is_a_step(study, finding)


def command(studies: Mapping[str, Study], finding: StoredFinding) -> str:
    """The study that makes the finding, as one would call it: the one that says most about it, if any."""
    asking = [(_said(study, finding), name) for name, study in studies.items() if asks_for(study, finding)]
    if not asking:
        return ""
    name = max(asking, key=lambda pair: pair[0])[1]
    seeds = len(finding.cell.inputs)
    more = f" --seeds {seeds}" if seeds != studies[name].seeds else ""
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
        and _holds(step.parameters, config["parameters"])
        for step in study.experiment
    )


def _holds(said: Mapping[str, object], settings: Mapping[str, object]) -> bool:
    return all(settings.get(name) == value for name, value in said.items())


def judged(study: Study, points: Sequence[GridPoint]) -> Iterator[Judged]:
    """Every claim of the study at every grid point it is about, in the order of the claims."""
    asked = [(point, f) for point in points for f in point.findings if asks_for(study, f)]
    for written in study.claim:
        claim = Claim(**written.model_dump())
        for point, finding in asked:
            if finding.cell.config["experiment"] == claim.parts[0] and claim.is_about(point.axes):
                rival = _rival(claim, finding, [other for _, other in asked]) if claim.against else None
                others = None if rival is None else rival.table
                yield Judged(study, point, finding, verdict(claim, finding.table, others))


def _rival(claim: Claim, finding: StoredFinding, asked: Sequence[StoredFinding]) -> StoredFinding | None:
    """The finding to compare with: the same experiment on the other model, made as alike as there is."""
    own = finding.cell.config
    sought = claim.other({axis: own[axis] for axis in AXES})
    sought |= {name: own[name] for name in ("experiment", "mode")}
    there = [f for f in asked if _holds(sought, f.cell.config) and f.corpus_key == finding.corpus_key]
    return min(there, key=lambda other: (_distance(finding, other), other.cell.key), default=None)


def _distance(one: StoredFinding, other: StoredFinding) -> int:
    """In how many settings and parameters two differ."""
    pairs = (one.settings, other.settings), (one.cell.config["parameters"], other.cell.config["parameters"])
    return sum(mine.get(name) != yours.get(name) for mine, yours in pairs for name in {*mine, *yours})
