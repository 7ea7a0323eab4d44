"""Tables of a page that the package makes of a results file: claims, published numbers, provenance."""

import atexit
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import pandas as pd
from reproduction_blocks import Block, Item
from reproduction_findings import NAMES, ROOT, markdown, path_of, results, selected
from vectors import WIDTH, chosen

from attentest.compare.points import grid_points
from attentest.compare.stored import Stored
from attentest.compare.table import VERDICTS, Comparison, compare_stored
from attentest.compare.verdicts import Judged, judged
from attentest.experiments.vectors.conclude import choose_scales
from attentest.notebook import word_vectors
from attentest.store.importing import import_findings
from attentest.store.store import Store
from attentest.studies.recipe import Study, load_study

CLAIM_VERDICTS = ("supported", "refuted", "undecided")
FEW_POINTS = 4  # grid points are named where a verdict has at most as many
KEY_LENGTH = 12


@cache
def stored(file: str) -> Stored:
    """The file as a store, which is removed when the program ends."""
    folder = tempfile.mkdtemp(prefix="attentest-reproductions-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    import_findings(path_of(file), folder)
    return Stored(Store(folder).existing())


@cache
def _study(name: str) -> Study:
    """A study of the package, or the path of a TOML file from the root of the repository."""
    return load_study(str(ROOT / name) if name.endswith(".toml") else name)


@cache
def _judged(study: str, file: str) -> list[Judged]:
    return list(judged(_study(study), grid_points(stored(file))))


@cache
def _compared(study: str, file: str) -> Comparison:
    return compare_stored(study, stored(file), {})


# --- claims


def claims(block: Block) -> str:
    """Each claim of a study with its verdicts, by corpus or all together, as `attentest report` judges."""
    block.allow("file", "study", "corpus", "by", "points")
    by, few = block.among("by", ("corpus", "all")), block.count("points", FEW_POINTS)
    study = block.one("study")
    found = _of_corpora(block, _judged(study, block.one("file")), lambda one: one.point.corpus)
    names = {item.value: item.shown for item in block.many("corpus", ())}
    corpora = list(names) or sorted({one.point.corpus for one in found})
    heads = [names.get(name, name) for name in corpora] if by == "corpus" else ["all"]
    lines = []
    for claim in _study(study).claim:
        own = [one for one in found if one.verdict.claim.says == claim.says]
        parts = [[one for one in own if one.point.corpus == name] for name in corpora]
        counts = [_tally(part) for part in (parts if by == "corpus" else [own])]
        lines.append([claim.says, *counts, _where(own, few)])
    legend = "Each count is supported / refuted / undecided grid points.\n\n"
    return legend + markdown(["claim", *heads, "where"], lines)


def _of_corpora(block: Block, rows: Sequence[Any], corpus: Any) -> list[Any]:
    """The rows of the corpora that the block asks for, each of which must have one."""
    asked = [item.value for item in block.many("corpus", ())]
    there = {corpus(row) for row in rows}
    for name in asked:
        if name not in there:
            raise block.error(f"nothing in the file is about the corpus {name!r}.")
    kept = [row for row in rows if not asked or corpus(row) in asked]
    if not kept:
        raise block.error(f"nothing in the file is what the study {block.one('study')} asks about.")
    return kept


def _tally(found: Sequence[Judged]) -> str:
    counts = Counter[str](one.verdict.verdict for one in found)
    return " / ".join(str(counts[verdict]) for verdict in CLAIM_VERDICTS) if found else "–"


def _where(found: Sequence[Judged], few: int) -> str:
    """Where the claim is supported and where refuted; grid points are named where they are few."""
    said = []
    for verdict in CLAIM_VERDICTS[:2]:
        own = [f"{one.point.corpus} {one.point.model}" for one in found if one.verdict.verdict == verdict]
        if own and len(own) == len(found):
            said.append(f"{verdict} everywhere")
        elif 0 < len(own) <= few:
            said.append(f"{verdict}: {', '.join(own)}")
        elif own:
            said.append(f"{verdict} at {len(own)} of {len(found)} points")
    return "; ".join(said) or ("undecided everywhere" if found else "not asked")


# --- published numbers


def published(block: Block) -> str:
    """The rows of `attentest compare`: a sentence with the counts of the verdicts, then the numbers."""
    block.allow("file", "study", "corpus", "measure", "verdict", "show", "digits")
    document = _compared(block.one("study"), block.one("file"))
    rows = _of_corpora(block, document["rows"], lambda row: row["corpus"])
    rows = _filtered(block, rows, "measure", "measure")
    asked = [item.value for item in block.many("corpus", ())]
    lines = [_summary(rows, document, asked)]
    if block.among("show", ("rows", "counts")) == "counts":
        return lines[0]
    verdicts = _filtered(block, rows, "verdict", "agrees")
    digits = block.count("digits", 3)
    vary = len({row["vectors"] for row in rows}) > 1
    heads = ["corpus", "model", "measure", "published", "ours", "seeds", "verdict", "P(agrees if equal)"]
    return f"{lines[0]}\n\n" + markdown(heads, [_published_row(row, digits, vary) for row in verdicts])


def _filtered(block: Block, rows: list[Any], key: str, field: str) -> list[Any]:
    items: list[Item] = block.many(key, ())
    for item in items:
        if all(row[field] != item.value for row in rows):
            raise block.error(f"no published number beside ours has the {key} {item.value!r}.")
    return [row for row in rows if not items or row[field] in {item.value for item in items}]


def _summary(rows: Sequence[Any], document: Comparison, asked: Sequence[str]) -> str:
    counts = Counter(row["agrees"] for row in rows)
    told = ", ".join(f"{verdict} {counts[verdict]}" for verdict in VERDICTS if counts[verdict])
    sizes = Counter(row["agrees"] for row in document["sizes"] if not asked or row["corpus"] in asked)
    apart = ", ".join(f"{verdict} {sizes[verdict]}" for verdict in VERDICTS if sizes[verdict])
    sentence = f"{len(rows)} comparisons with published numbers: {told}."
    return sentence + (f" Sizes and counts of corpora, which are not listed: {apart}." if apart else "")


def _published_row(row: Any, digits: int, vary: bool) -> list[str]:
    model = " + ".join(filter(None, (row["model"], row["attention"])))
    made = [part for part in row["differs"].split(", ") if part and not part.startswith("trained_on")]
    model += f" ({', '.join([*made, *[row['vectors'][:20]] * vary])})" if made or vary else ""
    group = "" if row["class"] in ("", "Overall") else f", {row['class']}"
    spread = "" if row["published_std"] is None else f" ± {row['published_std']:g}"
    interval = "" if row["low"] is None else f" [{row['low']:.{digits}f}, {row['high']:.{digits}f}]"
    chance = "–" if row["p_agrees_if_equal"] is None else f"{row['p_agrees_if_equal']:.2f}"
    verdict = row["agrees"] + (f" ({row['why']})" if row["why"] else "")
    return [
        NAMES.get(row["corpus"], row["corpus"]),
        model,
        row["measure"] + group,
        f"{row['published']:g}{spread}",
        f"{row['ours']:.{digits}f}{interval}",
        str(row["seeds"] or "–"),
        verdict,
        chance,
    ]


# --- provenance


def provenance(block: Block) -> str:
    """Where the findings of a file come from, and the beginnings of their keys."""
    block.allow("file", "corpus")
    file = block.one("file")
    frame = results(file)
    if "corpus" in block:
        frame = frame[frame["corpus"].isin(_known_corpora(block, frame))]
    cells = frame.drop_duplicates("cell")
    vectors = sorted({word_vectors(own.get("vectors"), own.get("embedding")) for own in cells["settings"]})
    epochs = sorted({str(own.get("epochs", "default")) for own in cells["settings"]})
    lines = [
        ["file", f"[`results/{file}`](../../results/README.md)"],
        ["corpora", "; ".join(_corpora(cells))],
        ["seeds", _listed(cells["seed"])],
        ["word vectors", "; ".join(vectors)],
        ["epochs", ", ".join(epochs)],
        ["device", _listed(cells["device"])],
        ["torch", _listed(cells["torch"])],
        ["trained models", _models(cells)],
        ["finding cells", f"{len(cells):,}"],
    ]
    keys = "\n".join(
        f"{experiment}: {' '.join(f'`{key[:KEY_LENGTH]}`' for key in own)}<br>"
        for experiment, own in cells.groupby("experiment")["cell"]
    )
    details = (
        f"<details><summary>The first {KEY_LENGTH} characters of the keys</summary>\n\n{keys}\n\n</details>"
    )
    return markdown(["", ""], lines) + "\n\n" + details


def _models(cells: pd.DataFrame) -> str:
    """How many models the findings are about; their controls and adversaries are not counted."""
    keys = {key for keys in cells["trained_model"] for key in keys}
    told = f"{len(keys - {''}):,}"
    return f"{told} with a record; the records of others are lost" if "" in keys else told


def _known_corpora(block: Block, frame: pd.DataFrame) -> list[str]:
    for item in block.many("corpus"):
        if item.value not in set(frame["corpus"]):
            raise block.error(f"no finding of the file has the corpus {item.value!r}.")
    return [item.value for item in block.many("corpus")]


def _corpora(cells: pd.DataFrame) -> list[str]:
    """Each corpus with its sizes; one name may stand for several sets of texts."""
    told = []
    for name, described in cells[["corpus", "described_corpus"]].drop_duplicates().itertuples(index=False):
        shown = NAMES.get(name, name)
        if described:
            counts = json.loads(json.loads(described)["content"]["corpus.json"])["counts"]
            sizes = {split: sum(counts.get(split, {}).values()) for split in ("train", "dev", "test")}
            shown += f" ({sizes['train']:,} training, {sizes['dev']:,} dev, {sizes['test']:,} test texts)"
        told.append(shown)
    return told


def _listed(values: "pd.Series[Any]") -> str:
    return ", ".join(map(str, sorted({one for each in values for one in each}))).strip(", ") or "not known"


# --- the scale of word vectors


def scales(block: Block) -> str:
    """The rule of the study `vectors`: dev scores by scale of random vectors, for each attention."""
    block.allow("file")
    frame = selected(Block(block.name, {**block.keys, "experiment": [Item("vectors", "vectors")]}))
    frame = frame[frame["measure"].eq("dev-score") & frame["vectors"].str.match(rf"random\(.*\)/{WIDTH}$")]
    rows = [
        {axis: one[axis] for axis in ("attention", "corpus", "encoder")}
        | {"seed": seed, "scale": float(one["settings"]["vectors"][7:-1]), "score": score}
        for one in frame.to_dict("records")
        for seed, score in zip(one["seed"], one["seed_estimate"], strict=True)
    ]
    return "\n".join(chosen(choose_scales(pd.DataFrame(rows))))
