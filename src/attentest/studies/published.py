"""The numbers a paper printed: a CSV beside the study, in the paper's own words, checked whole."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import final

from attentest.refusal import Refusal
from attentest.studies.recipe import beside, load_study

WORDS = ("paper", "table", "dataset", "model", "attention", "projection", "class", "measure")
COLUMNS = (*WORDS, "value", "std", "source")
PRINTED_DECIMALS = 2  # what the papers print; a CSV writes 0.30 as 0.3, so fewer digits say nothing


@final
@dataclass(frozen=True, kw_only=True)
class PublishedNumber:
    """One number of one table. `words` are the paper's, by column; `std` is NaN where none was printed."""

    words: dict[str, str]
    value: float
    std: float
    rounding: float  # half a unit of the last printed digit: what the number may be off by
    source: str

    def __getitem__(self, column: str) -> str:
        return self.words[column]


def load_published(name_or_path: str) -> list[PublishedNumber]:
    """The published numbers of a study, in the order of its CSV."""
    study = load_study(name_or_path)
    if study.published is None:
        raise Refusal(
            f"study {name_or_path}",
            got="no [published] table",
            needs="published numbers to compare with",
            way_out='Put a CSV beside the TOML and name it: [published] file = "NAME.csv".',
        )
    where = f"published numbers {study.published.file}"
    try:
        content = beside(name_or_path, study.published.file).read_bytes()
    except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
        raise _broken(where, f"no file that can be read ({error})") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _broken(where, "a byte that is not UTF-8") from error
    return _parsed(text, where)


def _parsed(text: str, where: str) -> list[PublishedNumber]:
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    numbers: list[PublishedNumber] = []
    try:
        header = next(lines, [])
        if sorted(header) != sorted(COLUMNS):
            raise _broken(where, f"the columns {', '.join(header) or '(none)'}")
        for row in lines:
            place = f"{where}, line {lines.line_num}"
            if len(row) != len(COLUMNS):
                raise _broken(place, f"{len(row)} fields")
            numbers.append(_number(dict(zip(header, row, strict=True)), place))
    except csv.Error as error:
        raise _broken(f"{where}, line {lines.line_num}", f"a line that is no CSV ({error})") from error
    if not numbers:
        raise _broken(where, "a header without rows")
    return numbers


def _number(row: dict[str, str], place: str) -> PublishedNumber:
    value, decimals = _read(row["value"], "value", place)
    std = _read(row["std"], "std", place)[0] if row["std"] else math.nan
    if std < 0:
        raise _broken(place, f"a std of {row['std']}")
    return PublishedNumber(
        words={column: row[column].strip() for column in WORDS},
        value=value,
        std=std,
        rounding=0.5 * 10.0 ** -max(decimals, PRINTED_DECIMALS),
        source=row["source"],
    )


def _read(text: str, column: str, place: str) -> tuple[float, int]:
    """A finite number and how many decimals it was written with."""
    try:
        number = Decimal(text.strip())
    except InvalidOperation as error:
        raise _broken(place, f"the {column} {text!r}") from error
    exponent = number.as_tuple().exponent
    if not (isinstance(exponent, int) and math.isfinite(float(number))):
        raise _broken(place, f"the {column} {text!r}")
    return float(number), max(-exponent, 0)


def _broken(place: str, got: str) -> Refusal:
    return Refusal(
        place,
        got=got,
        needs=f"a CSV in UTF-8 with the columns {', '.join(COLUMNS)}, a number as value, and a number or"
        " nothing as std",
        way_out="Mend that line of the file beside the study's TOML.",
    )
