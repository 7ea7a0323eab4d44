"""Findings of results/*.parquet, and the tables of them that a page may ask for."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from reproduction_blocks import Block, Item, PageError

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
NAMES = {"bilstm": "BiLSTM", "cnn": "CNN", "average": "Average", "mlp": "MLP", "bigru": "BiGRU"}
NAMES |= {
    "transformer": "Transformer",
    "sst": "SST",
    "imdb": "IMDB",
    "20news": "20 Newsgroups",
    "snli": "SNLI",
    "babi-1": "bAbI 1",
    "cnn-wen": "CNN (Wen)",
}
FORMATS = (b"findings 1", b"findings 2")
WIDE = ("described_observations", "described_models")  # long texts that no table shows
AXES = ("corpus", "encoder", "attention", "projection", "vectors")
FILTERS = (*AXES, "experiment", "mode", "parameters", "settings")
SHOWN = ("estimate", "interval", "null", "counts")
NOT_MEASURED = "– (not measured)"
REASON_WORDS = 4


def path_of(file: str) -> Path:
    """The path of a file under results/, which must be there."""
    if not (RESULTS / file).is_file():
        raise PageError(f"There is no file results/{file}.")
    return RESULTS / file


@cache
def results(file: str) -> pd.DataFrame:
    """The findings of a file under results/, one per row, with word vectors as a column of their own."""
    path = path_of(file)
    try:
        with pq.ParquetFile(path) as opened:
            said = (opened.schema_arrow.metadata or {}).get(b"attentest")
            columns = [name for name in opened.schema_arrow.names if name not in WIDE]
            frame = opened.read(columns=columns).to_pandas() if said in FORMATS else None
    except pa.ArrowInvalid as error:
        raise PageError(f"The file results/{file} is not a Parquet file ({error}).") from error
    if frame is None:
        raise PageError(f"The file results/{file} was not written by `attentest store export --findings`.")
    settings = {text: json.loads(text) for text in frame["model"].unique()}
    return frame.assign(
        settings=frame["model"].map(settings),
        vectors=frame["model"].map({text: vectors_name(own) for text, own in settings.items()}),
    )


def vectors_name(settings: dict[str, Any]) -> str:
    """Word vectors by name and width, as in `random(0.1)/300`."""
    width = settings.get("embedding")
    return settings.get("vectors", "random") + ("" if width is None else f"/{width:g}")


def _is_vectors(name: str, asked: str) -> bool:
    """Whether the vectors are those asked for; the width, and the digest of a file, may be left out."""
    kind, _, width = name.rpartition("/") if "/" in name else (name, "", "")
    return asked in {name, kind} or (asked in {"file", f"file/{width}"} and kind.startswith("file:"))


def selected(block: Block) -> pd.DataFrame:
    """The findings of the file that fit the filters of the block, in the order that the filters give."""
    frame = results(block.one("file"))
    for key in FILTERS:
        if key not in block:
            continue
        items = block.many(key)
        fits = pd.DataFrame({place: _fits(frame, key, item) for place, item in enumerate(items)})
        # Several values of an axis are alternatives; several parameters or settings must all hold.
        kept = fits.all(axis=1) if key in ("parameters", "settings") else fits.any(axis=1)
        for place, item in enumerate(items):
            if not fits[place].any():
                raise block.error(f"no finding of the file has the {key} {item.value!r}.")
        frame = frame[kept]
    if "mode" not in block:
        frame = frame[frame["mode"] == "corrected"]
    if frame.empty:
        raise block.error("no finding of the file fits all filters together.")
    return _in_order(block, frame)


def _fits(frame: pd.DataFrame, key: str, item: Item) -> "pd.Series[bool]":
    if key == "vectors":
        return frame["vectors"].map(lambda name: _is_vectors(name, item.value)).astype(bool)
    if key not in ("parameters", "settings"):
        return frame[key] == item.value
    name, _, written = (part.strip() for part in item.value.partition("="))
    own = frame["parameters" if key == "parameters" else "model"]
    held = {text: json.loads(text).get(name) for text in own.unique()}
    return own.map({text: _plain(value) == written for text, value in held.items()}).astype(bool)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _in_order(block: Block, frame: pd.DataFrame) -> pd.DataFrame:
    """Rows by corpus, encoder, attention, projection and vectors, each in the order the block gives."""
    for axis in AXES:
        order = list(dict.fromkeys(frame[axis]))
        asked = block.many(axis, ())
        rank = {
            name: next((n for n, item in enumerate(asked) if _named(axis, name, item)), len(asked))
            for name in order
        }
        frame = frame.assign(**{f"_{axis}": frame[axis].map({n: (rank[n], order.index(n)) for n in order})})
    keys = [f"_{axis}" for axis in AXES]
    return frame.sort_values(keys, kind="stable").drop(columns=keys)


def _named(axis: str, name: str, item: Item) -> bool:
    return _is_vectors(name, item.value) if axis == "vectors" else name == item.value


def shown(block: Block, axis: str, name: str) -> str:
    """A value of an axis as the page shows it."""
    for item in block.many(axis, ()):
        if _named(axis, name, item):
            return NAMES.get(item.value, item.value) if item.shown == item.value else item.shown
    if axis == "vectors" and name.startswith("file:"):
        return f"file {name[5:13]}"
    return NAMES.get(name, name)


@dataclass(frozen=True)
class Row:
    """One model on one corpus."""

    corpus: str  # as the page shows it
    model: str
    findings: pd.DataFrame


def rows_of(block: Block, frame: pd.DataFrame, across: str = "measures") -> list[Row]:
    """The findings by corpus and model; what runs across the columns does not tell rows apart."""
    axes = [axis for axis in AXES if axis != across]
    with_projection = set(frame["projection"]) != {"softmax"}
    with_vectors = across != "vectors" and frame.groupby(list(AXES[:4]))["vectors"].nunique().max() > 1
    rows = []
    for key, own in frame.groupby(axes, sort=False):
        at = {axis: str(name) for axis, name in zip(axes, key, strict=True)}
        model = f"{shown(block, 'encoder', at['encoder'])} + {shown(block, 'attention', at['attention'])}"
        model += f" + {shown(block, 'projection', at['projection'])}" if with_projection else ""
        model += f", {shown(block, 'vectors', at['vectors'])}" if with_vectors else ""
        rows.append(Row(shown(block, "corpus", at["corpus"]) if "corpus" in at else "", model, own))
    return rows


def finding(block: Block, own: pd.DataFrame, group: str) -> "pd.Series[Any] | None":
    """The one finding of a group, if there is one; two are an error, because a cell shows one."""
    found = own[own["group"] == group]
    if len(found) > 1:
        names = (
            "experiment",
            "measure",
            "mode",
            "parameters",
            "corpus",
            "vectors",
            "model",
            "described_corpus",
        )
        differing = [name for name in names if found[name].nunique() > 1]
        told = ", ".join(differing).replace("model", "settings") or "nothing but the cell"
        raise block.error(
            f"{len(found)} findings fit one place of the table; they differ in {told}. Add a filter."
        )
    return None if found.empty else found.iloc[0]


def number(row: "pd.Series[Any] | None", parts: Sequence[str] = SHOWN, digits: int = 3) -> str:
    """`0.198 [0.142, 0.254]; null 0.026`, or a dash and the reason."""
    if row is None:
        return NOT_MEASURED
    if row["n"] == 0 or math.isnan(row["estimate"]):
        words = (row["why"] or "no texts").split(";")[0].split()
        return f"– ({' '.join(words[:REASON_WORDS])}{' …' if len(words) > REASON_WORDS else ''})"
    text = f"{row['estimate']:.{digits}f}"
    if "interval" in parts and math.isfinite(row["low"]):
        text += f" [{row['low']:.{digits}f}, {row['high']:.{digits}f}]"
    return text + (
        f"; null {row['null']:.{digits}f}" if "null" in parts and math.isfinite(row["null"]) else ""
    )


def markdown(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    written = [list(heads), ["---"] * len(heads), *lines]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in written
    )


def columns_of(block: Block, frame: pd.DataFrame, across: str) -> Iterator[tuple[Item, pd.DataFrame]]:
    """Each column of the table with the findings that it may show."""
    for item in block.many("columns"):
        if across == "measures":
            own = _measured(frame, item.value)
        else:
            measured = _measured(frame, block.one("measure"))
            own = measured[[_named(across, name, item) for name in measured[across]]]
        if own.empty:
            raise block.error(f"the column {item.value!r} matches no finding.")
        yield item, own


def _measured(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The findings of `measure` or `experiment/measure`."""
    experiment, _, measure = name.rpartition("/")
    return frame[(frame["measure"] == measure) & ((frame["experiment"] == experiment) | (experiment == ""))]


def groups_of(block: Block, frame: pd.DataFrame) -> list[Item]:
    """The groups that the block asks for; a star stands for any letters, and no key for all groups."""
    there = list(dict.fromkeys(frame["group"]))
    items = []
    for item in block.many("groups", ("overall",) if block.kind != "groups" else ("*",)):
        pattern = item.value.replace("[", "[[]")
        fitting = [name for name in there if name == item.value or fnmatchcase(name, pattern)]
        if not fitting:
            raise block.error(f"no finding of these columns is of the group {item.value!r}.")
        items += [Item(name, item.shown if item.shown != item.value else name) for name in fitting]
    return items


def table(block: Block) -> str:
    """The blocks `findings` (models, with controls below them) and `groups` (groups of one experiment)."""
    block.allow("file", "columns", "across", "measure", "groups", "show", "digits", *FILTERS)
    across = block.among("across", ("measures", "corpus", "vectors"))
    parts = [item.value for item in block.many("show", SHOWN)]
    if unknown := [part for part in parts if part not in SHOWN]:
        raise block.error(f"`show` lists some of {', '.join(SHOWN)}, and {unknown[0]!r} is none of them.")
    frame = selected(block)
    columns = list(columns_of(block, frame, across))
    cells = frame[frame.index.isin([place for _, own in columns for place in own.index])]
    rows, groups = rows_of(block, cells, across), groups_of(block, cells)
    several = {"corpus": len({row.corpus for row in rows}) > 1, "model": len({row.model for row in rows}) > 1}
    several["group"] = len(groups) > 1
    lines: list[list[str]] = []
    for row in rows:
        is_first = True
        for group in groups:
            found = [
                finding(block, own.loc[own.index.intersection(row.findings.index)], group.value)
                for _, own in columns
            ]
            if all(one is None for one in found):
                continue
            line = [number(one, parts, block.count("digits", 3)) for one in found]
            line += _counts([one for one in found if one is not None]) if "counts" in parts else []
            lines.append([*_labels(block.kind, row, group, is_first, several), *line])
            is_first = False
    heads = ["corpus"] * several["corpus"]
    heads += ["model"] if block.kind == "findings" else [*["model"] * several["model"], "group"]
    return markdown(
        [*heads, *(item.shown for item, _ in columns), *["n", "seeds"] * ("counts" in parts)], lines
    )


def _labels(kind: str, row: Row, group: Item, is_first: bool, several: dict[str, bool]) -> list[str]:
    labels = [row.corpus] if several["corpus"] else []
    if kind == "findings":
        model = f"**{row.model}**" if several["group"] else row.model
        return [*labels, model if is_first else f"*{group.shown}*"]
    return [*labels, *[row.model] * several["model"], group.shown]


def _counts(found: Sequence["pd.Series[Any]"]) -> list[str]:
    """Texts over all seeds, and seeds; a range where the columns differ."""
    return [_range([int(one["n"]) for one in found]), _range([int(one["seeds"]) for one in found])]


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
