"""One review of IMDB by its id, for a figure: the test split of the corpus is only a sample."""

from __future__ import annotations

from pathlib import Path

from attentest.corpus import origin
from attentest.corpus.example import Example
from attentest.corpus.origin import Files
from attentest.corpus.preparation import prepare_one
from attentest.corpus.readers import imdb
from attentest.corpus.sources import CORPORA
from attentest.refusal import Refusal


def one_review(name: str, data_dir: Path | str | None = None) -> Example:
    """The review of that id, such as `test/neg/231_1`, as the corpus `imdb` would have it."""
    source, data = CORPORA["imdb"], origin.data_dir(data_dir)
    archive = source.origin.find(data) if isinstance(source.origin, Files) else None
    if archive is None:
        raise Refusal(
            f"review {name!r}",
            got=f"no files of IMDB in {data / 'imdb'}",
            needs="the publisher's files there, packed as they came or unpacked",
            way_out=f"{source.how_to_get} Or set ATTENTEST_DATA to the folder with imdb/ in it.",
        )
    return prepare_one(imdb.read_one(archive, name), source.preparation)
