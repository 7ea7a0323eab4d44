"""Reading a study: one TOML file, checked whole before anything runs."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from attentest.refusal import Refusal

Names = Annotated[list[str], Field(min_length=1)]
Mode = Literal["corrected", "as-published"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Width = Annotated[int, Field(ge=1, le=10**6, strict=True)] | Literal["default"]


@final
class Grid(_Strict):
    """The models of a study: every combination.

    `vectors` and `embedding` are model settings that a study may vary; without them every model has the
    shared ones. `data:PATH` is a vector file under the data directory, left out where it is absent.
    """

    corpus: Names
    encoder: Names = ["bilstm"]
    attention: Names = ["additive"]
    projection: Names = ["softmax"]
    vectors: Names | None = None
    embedding: Annotated[list[Width], Field(min_length=1)] | None = None


@final
class Step(_Strict):
    """One experiment of a study, on all of its grid or, `where` so said, on some points of it."""

    name: str
    mode: Mode = "corrected"
    parameters: dict[str, Any] = {}
    where: dict[Literal["corpus", "encoder", "attention", "projection"], Names] = {}

    def is_about(self, point: Mapping[str, str]) -> bool:
        """Whether it is to be run at this grid point."""
        return all(point[axis] in names for axis, names in self.where.items())


@final
class WrittenClaim(_Strict):
    """A claim as the TOML has it; `findings.claims` gives it meaning."""

    says: str
    statistic: str
    supported_if: str
    refuted_if: str
    where: dict[str, Names] = {}
    against: dict[str, str] = {}
    provided: dict[str, str] = {}
    mode: Mode = "corrected"


@final
class Published(_Strict):
    """Where the published numbers are, beside the TOML: a plain name, since studies are shared."""

    file: Annotated[str, Field(pattern=r"^[^/\\]+$")]


@final
class Study(_Strict):
    """A whole recipe."""

    study: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    title: str
    cite: str = ""
    seeds: Annotated[int, Field(ge=1, le=1000, strict=True)] = 1
    grid: Grid
    model: dict[str, Any] = {}  # settings every model of the grid shares
    experiment: Annotated[list[Step], Field(min_length=1)]
    claim: list[WrittenClaim] = []
    published: Published | None = None


def names() -> list[str]:
    """The studies that come with the package."""
    return sorted(name.removesuffix(".toml") for name, _ in _embedded())


def _embedded() -> Iterator[tuple[str, str]]:
    for file in resources.files("attentest.studies").iterdir():
        if file.name.endswith(".toml"):
            yield file.name, file.read_text(encoding="utf-8")


def load_study(name_or_path: str) -> Study:
    """A study by its name in the package, or by the path of its TOML file."""
    return parse(written(name_or_path), name_or_path)


def written(name_or_path: str) -> str:
    """The TOML of a study."""
    own = dict(_embedded())
    if f"{name_or_path}.toml" in own:
        return own[f"{name_or_path}.toml"]
    try:
        path = Path(name_or_path)
        text = path.read_text(encoding="utf-8") if path.suffix == ".toml" else None
    except FileNotFoundError:
        text = None
    except (OSError, ValueError) as error:  # a bad byte and a NUL in a path are ValueErrors
        raise _broken(name_or_path, str(error)) from error
    if text is None:
        raise Refusal(
            f"study {name_or_path!r}",
            got="neither the name of a study nor a TOML file",
            needs=f"one of {', '.join(names())}, or the path of a .toml file",
            way_out="See docs/guides/studies.md for how to write one.",
        )
    return text


def beside(name_or_path: str, file: str) -> Traversable:
    """A file beside the study's TOML, be it the package's or the user's."""
    if name_or_path in names():
        return resources.files("attentest.studies") / file
    return Path(name_or_path).parent / file


def _broken(name: str, why: str) -> Refusal:
    return Refusal(
        f"study {name}",
        got=why,
        needs="a study in TOML: study, title, [grid], [[experiment]]",
        way_out="Mend that line; docs/guides/studies.md shows every field.",
    )


def parse(text: str, name: str) -> Study:
    """The study that a TOML text describes; what is wrong with it is refused under this name."""
    try:
        study = Study.model_validate(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _broken(name, f"broken TOML ({error})") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _broken(name, f"a wrong field {place}: {first['msg'].lower()}") from error
    for axis in ("vectors", "embedding"):
        if axis in study.model and getattr(study.grid, axis) is not None:
            raise _broken(name, f"{axis} in [model] and in [grid]: it is either shared or varied")
    for setting in study.model:
        if setting in ELSEWHERE:
            raise _broken(name, f"{setting} in [model], where it would be ignored: {ELSEWHERE[setting]}")
    return study


# What every point of the grid has of its own cannot be shared by all of them.
ELSEWHERE = {
    "encoder": "it belongs in [grid]",
    "attention": "it belongs in [grid]",
    "projection": "it belongs in [grid]",
    "seed": "`seeds` says how many there are, from 0 on",
    "guide": "the experiments name it",
    "start_from": "the experiments name it",
    "reset": "the experiments name it",
    "omit": "the experiments name it",
}
