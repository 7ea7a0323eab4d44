"""Word vectors from a text file (fastText, GloVe, word2vec text; gzip too), streamed into a vocabulary."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from attentest.corpus.origin import data_dir
from attentest.corpus.vocabulary import RESERVED, Vocabulary
from attentest.refusal import Refusal

WIDEST = 10_000  # numbers a vector, as of those that are trained here


def _lines(path: Path) -> Iterator[bytes]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            yield from file
    except (OSError, EOFError, zlib.error) as error:
        raise _refused(path, f"a file that cannot be read ({error})") from error


def _refused(path: Path, got: str) -> Refusal:
    return Refusal(
        f"word vectors {path}",
        got=got,
        needs="text lines of one word and its numbers, all of one width, a vector a word",
        way_out="Give a .txt, .vec or .gz file in the format of GloVe or fastText.",
    )


def load_vectors(path: Path, vocabulary: Vocabulary) -> tuple[np.ndarray, int]:
    """The matrix for this vocabulary and how many of its words were found; only their lines are parsed.

    Words the file lacks are zero, as in the published code (A5); they are trained like the others. A word may
    stand there twice with the same vector, but not with two: which of them was meant is not known.
    """
    index = {word.encode(): number for word, number in vocabulary.index.items()}
    lines: dict[int, int] = {}  # by row, the line that it was read from
    matrix: np.ndarray | None = None
    for number, line in enumerate(_lines(path), start=1):
        word, _, rest = line.rstrip().partition(b" ")
        if number == 1 and len(rest.split()) == 1:
            continue  # the "count width" line of fastText and word2vec
        if matrix is None:
            matrix = np.zeros((len(vocabulary), _checked(path, len(rest.split()))), dtype=np.float32)
        row = index.get(word)
        if row is None or _is_longer_word(rest.split(), matrix.shape[1]):
            continue
        vector = _numbers(path, number, rest.split(), matrix.shape[1])
        if lines.setdefault(row, number) != number and not np.array_equal(vector, matrix[row]):
            raise _refused(
                path, f"two vectors for {vocabulary.words[row]!r}, in lines {lines[row]} and {number}"
            )
        matrix[row] = vector
    if matrix is None or not lines:
        raise _refused(path, f"no vector for any of the {len(vocabulary) - len(RESERVED)} words")
    return matrix, len(lines)


def _checked(path: Path, width: int) -> int:
    if width > WIDEST:
        raise _refused(path, f"vectors of {width:,} numbers, where at most {WIDEST:,} can be trained")
    return width


def _is_longer_word(parts: list[bytes], width: int) -> bool:
    """Whether the word went on after its first blank, as in `at name@domain.com` of GloVe's largest."""
    try:
        float(parts[0])
    except (ValueError, IndexError):
        return len(parts) > width
    return False


def _numbers(path: Path, line: int, parts: list[bytes], width: int) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):
            values = np.array(parts, dtype=np.float32)
    except ValueError as error:
        raise _refused(path, f"something that is not a number in line {line}") from error
    if len(values) != width:
        raise _refused(path, f"{len(values)} numbers in line {line}, {width} before")
    if not np.isfinite(values).all():
        raise _refused(path, f"a number that is not finite in line {line}")
    return values


IN_DATA = "data:"


def vector_file(written: str, folder: str | Path | None = None) -> Path:
    """The file that `vectors` names: a path, or `data:PATH` for one under the data directory."""
    if not written.startswith(IN_DATA):
        return Path(written)
    return data_dir(folder) / written.removeprefix(IN_DATA)


def is_absent(written: str, folder: str | Path | None = None) -> bool:
    """Whether `vectors` names a file under the data directory that is not there."""
    return written.startswith(IN_DATA) and not vector_file(written, folder).is_file()


def fingerprint(path: Path) -> str:
    """The sha256 of the file, which is how a configuration names it."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _refused(path, f"no file that can be read ({error.strerror})") from error


def width(path: Path) -> int:
    """How many numbers each vector has, from the first lines alone."""
    for number, line in enumerate(_lines(path), start=1):
        numbers = len(line.split()) - 1
        if numbers > 1 or (number > 1 and numbers == 1):
            return _checked(path, numbers)
        if number > 1:
            raise _refused(path, f"no numbers in line {number}")
    raise _refused(path, "no vectors in it")
