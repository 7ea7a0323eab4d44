"""IMDB: the film reviews of Maas et al. (2011), one file each, in train and test, neg and pos."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import cast

from attentest.corpus.document import Document
from attentest.corpus.example import Split
from attentest.corpus.fetch.archive import Archive
from attentest.refusal import Refusal

MEMBERS = re.compile(
    r"(?:^|/)(?P<id>(?P<split>train|test)/(?P<label>neg|pos)/(?:\d+_(?P<rating>\d+)|[^/]+))\.txt$"
)
LABELS = {"neg": "negative", "pos": "positive"}
RATED = {"neg": ("1", "2", "3", "4"), "pos": ("7", "8", "9", "10")}  # there are no lukewarm reviews
RATINGS = tuple(f"rated {rating}" for ratings in RATED.values() for rating in ratings)
BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def _document(archive: Archive, found: re.Match[str], content: bytes, *, rated: bool) -> Document:
    text = archive.decoded(found.string, content)
    side, rating = found["label"], found["rating"] or "none by its name"
    wrong = None
    if rating not in RATED[side]:
        wrong = f"a rating of {rating[:16]} in {side}", f"one of {', '.join(RATED[side])}"
    elif not text.strip():
        # The publisher has none, and a part of nothing but these would be a part that is not there.
        wrong = "nothing in it", "the words of a review"
    if wrong:
        raise Refusal(
            f"{archive.path}, {found.string}",
            got=wrong[0],
            needs=wrong[1],
            way_out="The file is damaged or not the publisher's: get it again.",
        )
    return Document(
        id=found["id"],
        text=BREAK.sub("\n", text),
        label=f"rated {rating}" if rated else LABELS[side],
        split=cast(Split, found["split"]),
    )


def read(archive: Archive, *, rated: bool = False) -> Iterator[Document]:
    """Every labelled review, labelled by its side or, `rated`, by the number in its file's name.

    The markup for a line break is read as the line break it stands for.
    """
    missing = {f"{split}/{label}/ID_RATING.txt" for split in ("train", "test") for label in LABELS}
    for found, content in archive.members(MEMBERS):
        missing.discard(f"{found['split']}/{found['label']}/ID_RATING.txt")
        yield _document(archive, found, content, rated=rated)
    if missing:
        raise archive.lacking(missing)


def read_some(archive: Archive, ids: Collection[str]) -> Iterator[Document]:
    """The reviews of these ids, such as `test/neg/231_1`, that are there; of a tar no more is read."""
    left = set(ids)
    if not left:
        return
    either = "|".join(map(re.escape, sorted(left)))
    for member, content in archive.members(re.compile(rf"(?:^|/)(?:{either})\.txt$")):
        found = MEMBERS.search(member.string)
        if found and found["id"] in left:
            yield _document(archive, found, content, rated=False)
            left.remove(found["id"])
            if not left:
                return
