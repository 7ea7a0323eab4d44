"""Single reviews of IMDB, for figures: the test split of its corpus is only a sample."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from attentest.corpus import origin
from attentest.corpus.example import Example
from attentest.corpus.origin import Files
from attentest.corpus.preparation import prepared
from attentest.corpus.readers import imdb
from attentest.corpus.sources import CORPORA
from attentest.refusal import Refusal


def reviews(ids: Collection[str], data_dir: Path | str | None = None) -> dict[str, Example]:
    """Those of these reviews, such as `test/neg/231_1`, that IMDB's files hold and its preparation keeps.

    They are as the corpus `imdb` would have them. What is found follows from the files alone, and without
    the files it is refused.
    """
    source, data = CORPORA["imdb"], origin.data_dir(data_dir)
    archive = source.origin.find(data) if isinstance(source.origin, Files) else None
    if archive is None:
        raise Refusal(
            "reviews " + ", ".join(map(repr, sorted(ids))),
            got=f"no files of IMDB in {data / 'imdb'}",
            needs="the publisher's files there, packed as they came or unpacked",
            way_out=f"{source.how_to_get} Or set ATTENTEST_DATA to the folder with imdb/ in it.",
        )
    found = (prepared(document, source.preparation) for document in imdb.read_some(archive, ids))
    return dict(sorted((example.id, example) for example, why_left_out in found if not why_left_out))
