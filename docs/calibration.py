"""Makes the tables of docs/calibration.md, and those that audits read, from rows of calibration audits.

    python docs/calibration.py gather STORE_OR_PARQUET...
    python docs/calibration.py tables

`gather` merges the rows of stores, or of tables with one row per finding and the columns `encoder` and
`corpus`, into results/calibration.parquet. `tables` makes everything else of that file alone: the two tables
of the package, the tables under results/, the figures under docs/ and the tables within docs/calibration.md.
"""

import ast
import itertools
import re
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from attentest.charts.style import to_svg
from attentest.claims.criteria import CRITERIA
from attentest.experiments.calibration import AUDITS, FALSE_SUPPORTS, QUESTIONS, SETTING, TRUE_SUPPORTS
from attentest.experiments.calibration.charts import areas_chart, chosen, curves_chart, roc_chart
from attentest.experiments.calibration.known_tests import KNOWN
from attentest.experiments.calibration.rates import KINDS, tests_of_criteria
from attentest.experiments.calibration.rows import (
    BAR,
    COLUMNS,
    OTHER_KNOBS,
    check_truth,
    completed,
    described,
    rows_of,
    unique,
)
from attentest.experiments.calibration.table import CRITERIA_COLUMNS, TEST_COLUMNS, Calibrated
from attentest.model.constructions import CONSTRUCTIONS
from attentest.store.store import Store

ROOT = Path(__file__).parents[1]
GATHERED = ROOT / "results" / "calibration.parquet"
PAGE = ROOT / "docs" / "calibration.md"
PACKAGED = ROOT / "src" / "attentest" / "claims"
NUMBERS = ("strength", "temperature", "noise", "estimate", "error", "freedom", "null", "points", "depends")
COUNTS = ("classes", "length", "texts", "seed", "n")
Table = tuple[list[str], list[list[str]]]


# --- gather


def from_gathered(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows from a table in which `encoder` (or `model`, all settings) and `corpus` name what was audited."""
    models = frame["model"].map(_settings) if "model" in frame else frame["encoder"].map(_named)
    parts = []
    for (settings, corpus), own in frame.groupby([models, "corpus"], sort=False):
        shown = own[[name for name in own if name in (*COLUMNS, "id") and name != "corpus"]]
        parts.append(shown.assign(**described(dict(settings), corpus)))
    return completed(parts)


def _settings(written: str) -> tuple[tuple[str, object], ...]:
    known = dict(ast.literal_eval(written))
    return tuple((name, known[name]) for name in ("encoder", "projection", "loss") if name in known)


def _named(encoder: str) -> tuple[tuple[str, object], ...]:
    return (("encoder", encoder),)


def needed(rows: pd.DataFrame) -> pd.DataFrame:
    """Of the studies with many audits the tests of criteria; of the others all known tests."""
    many = rows["study"].isin((BAR, OTHER_KNOBS))
    return rows[rows["test"].isin(tests_of_criteria()) | (~many & rows["test"].isin(KNOWN))]


def compact(rows: pd.DataFrame) -> pa.Table:
    """Seven digits are more than anything here prints; names are written once."""
    small = rows.astype({name: "float32" for name in NUMBERS} | {name: "int32" for name in COUNTS})
    table = pa.Table.from_pandas(small, preserve_index=False).replace_schema_metadata(None)
    names = [field.name for field in table.schema if pa.types.is_large_string(field.type)]
    return table.cast(
        pa.schema([pa.field(f.name, pa.string() if f.name in names else f.type) for f in table.schema])
    )


def gather(*places: str) -> None:
    """Merge the rows of these places into the file."""
    parts = [read()] if GATHERED.exists() else []
    for place in places:
        found = from_gathered(pd.read_parquet(place)) if place.endswith(".parquet") else None
        parts.append(needed(rows_of(Store(place).existing()) if found is None else found))
    rows = unique(pd.concat(parts, ignore_index=True))
    check_truth(rows)
    pq.write_table(compact(rows), GATHERED, compression="zstd", compression_level=19)
    print(f"{len(rows)} rows, {GATHERED.stat().st_size / 1e6:.1f} MB")


def read() -> pd.DataFrame:
    """The rows as they were gathered."""
    return pd.read_parquet(GATHERED).astype(dict.fromkeys(QUESTIONS, "boolean"))


# --- tables


def csvs(found: Calibrated) -> dict[Path, str]:
    """The content of each CSV by its path."""
    more = ["group", "title", "rank_pointer", "rank_mechanism"]
    rates = ["criterion", "question", "construction", "kind", "role", "answer", "audits"]
    tables = {
        PACKAGED / "calibrated_tests.csv": found.tests[list(TEST_COLUMNS)],
        PACKAGED / "calibrated_criteria.csv": found.criteria[list(CRITERIA_COLUMNS)],
        ROOT / "results" / "calibration_tests.csv": found.tests[[*TEST_COLUMNS, *more]],
        ROOT / "results" / "calibration_rates.csv": found.rates[[*rates, "supported", "rejected"]],
        ROOT / "results" / "calibration_curves.csv": found.curves,
    }
    return {path: written(table) for path, table in tables.items()}


def written(table: pd.DataFrame) -> str:
    """As CSV; true and false in lower case."""
    spelled = {name: table[name].map({True: "true", False: "false"}) for name in table.select_dtypes("bool")}
    return table.assign(**spelled).to_csv(index=False, lineterminator="\n")


def sections(found: Calibrated) -> dict[str, Table]:
    """The tables of the page by the name of their markers."""
    return {
        "criteria": _criteria(found),
        "tests": _tests(found),
        "rates": _rates(found),
        "constructions": _constructions(),
        "texts": _along_texts(found),
    }


def _criteria(found: Calibrated) -> Table:
    rows = []
    for criterion in CRITERIA:
        resting = [test.name for test in criterion.tests if test.name in found.margin_of]
        margins = ", ".join(f"`{name}` {found.margin_of[name]:g}" for name in resting) or "none has a gap"
        cells = [_bar(found, criterion.name, kind) for kind in KINDS] if resting else ["shown"] * len(KINDS)
        rows.append([criterion.name, criterion.question, margins, *cells])
    return ["criterion", "question", "tests with their margins", *KINDS], rows


def _bar(found: Calibrated, criterion: str, kind: str) -> str:
    own = found.criteria[(found.criteria["criterion"] == criterion) & (found.criteria["kind"] == kind)].iloc[
        0
    ]
    false = f"{own.worst_false_support:.1%} ({own.worst_false_support_of})" if own.no else "–"
    power = f"{own.worst_power:.1%} ({own.worst_power_of})" if own.yes else "–"
    return f"{'**judged**' if own.judged else 'shown'}: {false}; {power}"


def _tests(found: Calibrated) -> Table:
    """The tests of criteria, and of each group the best test on either question."""
    shown = chosen(found.tests).sort_values("auc_pointer", ascending=False, kind="stable")
    rows = [
        [line.title, f"`{line.test}`", _area(line, "pointer"), _area(line, "mechanism")]
        for line in shown.itertuples()
    ]
    return ["test", "finding", "AUC pointer [95 %], rank", "AUC mechanism [95 %], rank"], rows


def _area(line: object, question: str) -> str:
    auc, low, high = (getattr(line, f"auc_{question}{end}") for end in ("", "_low", "_high"))
    if pd.isna(auc):
        return "–"
    rank = getattr(line, f"rank_{question}") or "by definition"
    return f"{auc:.2f} [{low:.2f}, {high:.2f}], {rank}"


def _rates(found: Calibrated) -> Table:
    """The constructions of which some criterion is wrong more often than the bar allows."""
    worst = {True: found.rates["supported"] < TRUE_SUPPORTS / AUDITS}
    worst[False] = found.rates["supported"] > FALSE_SUPPORTS / AUDITS
    missed = found.rates[worst[True].where(found.rates["answer"].astype(bool), worst[False])]
    rows = []
    for (construction, kind, role), of_it in missed.groupby(["construction", "kind", "role"]):
        said = [
            f"{own.criterion} ({'yes' if own.answer else 'no'}) {own.supported:.1%} / {own.rejected:.1%}"
            for own in of_it.itertuples()
        ]
        rows.append([construction, kind, role, "; ".join(said)])
    return ["construction", "kind", "role", "criterion (right answer) supported / rejected"], rows


def _constructions() -> Table:
    """A line per quadrant: each construction with what it is."""
    rows = []
    for pointer, mechanism in itertools.product((True, False), repeat=2):
        own = {
            n: made
            for n, made in CONSTRUCTIONS.items()
            if (made.pointer, made.mechanism) == (pointer, mechanism)
        }
        says = "; ".join(
            f"**{name}**{'*' * (name in SETTING)}: {made.says.replace(';', ',')}"
            for name, made in own.items()
        )
        rows.append(["yes" if pointer else "no", "yes" if mechanism else "no", says])
    return ["pointer", "mechanism", "constructions (* sets the margins)"], rows


def _along_texts(found: Calibrated) -> Table:
    """The least power and the most false supports by criterion and number of texts."""
    own = found.curves[found.curves["knob"] == "texts"]
    sizes = sorted(own["value"].unique())
    rows = []
    for criterion in [c.name for c in CRITERIA if c.name in set(own["criterion"])]:
        cells = []
        for size in sizes:
            at = own[(own["criterion"] == criterion) & (own["value"] == size)]
            power, false = at.loc[at["answer"], "supported"].min(), at.loc[~at["answer"], "supported"].max()
            cells.append(f"{power:.0%} / {false:.0%}")
        rows.append([criterion, *cells])
    return ["criterion", *(f"{size:g} texts" for size in sizes)], rows


def filled(page: str, tables: dict[str, Table]) -> str:
    """The page with each table between its markers."""
    for name, (heads, rows) in tables.items():
        lines = [heads, ["---"] * len(heads), *rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        pattern = rf"(<!-- table {name} -->\n).*?(<!-- end {name} -->)"
        page, times = re.subn(pattern, lambda m, t=table: f"{m[1]}{t}\n{m[2]}", page, flags=re.S)
        assert times == 1, f"docs/calibration.md has no place for the table {name}"
    return page


def figures(found: Calibrated) -> dict[Path, str]:
    """The drawings of the page by their paths."""
    charts = {"areas": areas_chart(found.tests), "curves": curves_chart(found.curves)}
    charts["roc"] = roc_chart(found.rows, found.tests, "pointer")
    return {ROOT / "docs" / f"calibration-{name}.svg": to_svg(chart) for name, chart in charts.items()}


def made() -> dict[Path, str]:
    """Every text file that the rows make, but the figures."""
    found = Calibrated(read())
    return csvs(found) | {PAGE: filled(PAGE.read_text(encoding="utf-8"), sections(found))}


def tables() -> None:
    """Write everything that the rows make."""
    found = Calibrated(read())
    page = {PAGE: filled(PAGE.read_text(encoding="utf-8"), sections(found))}
    for path, content in (csvs(found) | page | figures(found)).items():
        path.write_text(content, encoding="utf-8")
        print(path.relative_to(ROOT), f"{len(content):,} characters")


if __name__ == "__main__":
    {"gather": gather, "tables": tables}[sys.argv[1]](*sys.argv[2:])
