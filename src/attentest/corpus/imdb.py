"""IMDB: the film reviews of Maas et al. (2011), one file each, in train and test, neg and pos."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from attentest.corpus.archive import Archive
from attentest.corpus.document import Document
from attentest.corpus.example import Split

MEMBERS = re.compile(r"(?:^|/)(?P<id>(?P<split>train|test)/(?P<label>neg|pos)/\d+_(?P<rating>\d+))\.txt$")
LABELS = {"neg": "negative", "pos": "positive"}
RATINGS = tuple(f"rated {rating}" for rating in (1, 2, 3, 4, 7, 8, 9, 10))  # there are no lukewarm reviews
BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def read(archive: Archive, *, rated: bool = False) -> Iterator[Document]:
    """Every labelled review, labelled by its side or, `rated`, by the number in its file's name.

    The markup for a line break is read as the line break it stands for.
    """
    missing = {f"{split}/{label}/ID_RATING.txt" for split in ("train", "test") for label in LABELS}
    for found, content in archive.members(MEMBERS):
        missing.discard(f"{found['split']}/{found['label']}/ID_RATING.txt")
        yield Document(
            id=found["id"],
            text=BREAK.sub("\n", archive.decoded(found.string, content)),
            label=f"rated {found['rating']}" if rated else LABELS[found["label"]],
            split=cast(Split, found["split"]),
        )
    if missing:
        raise archive.lacking(missing)
