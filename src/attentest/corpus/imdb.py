"""IMDB: the film reviews of Maas et al. (2011), one file each, in train and test, neg and pos."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from attentest.corpus.archive import Archive
from attentest.corpus.document import Document
from attentest.corpus.example import Split

MEMBERS = re.compile(r"(?:^|/)(?P<id>(?P<split>train|test)/(?P<label>neg|pos)/\d+_\d+)\.txt$")
LABELS = {"neg": "negative", "pos": "positive"}
BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def read(archive: Archive) -> Iterator[Document]:
    """Every labelled review. The markup for a line break is read as the line break it stands for."""
    missing = {f"{split}/{label}/ID_RATING.txt" for split in ("train", "test") for label in LABELS}
    for found, content in archive.members(MEMBERS):
        missing.discard(f"{found['split']}/{found['label']}/ID_RATING.txt")
        yield Document(
            id=found["id"],
            text=BREAK.sub("\n", archive.decoded(found.string, content)),
            label=LABELS[found["label"]],
            split=cast(Split, found["split"]),
        )
    if missing:
        raise archive.lacking(missing)
