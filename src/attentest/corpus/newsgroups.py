"""20 Newsgroups, the two groups of Jain & Wallace: what people themselves wrote on baseball or hockey."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from attentest.corpus.archive import Archive
from attentest.corpus.document import Document
from attentest.corpus.example import Split

MEMBERS = re.compile(
    r"(?:^|/)(?P<id>20news-bydate-(?P<split>train|test)/rec\.sport\.(?P<label>baseball|hockey)/\d+)$"
)
QUOTE = re.compile(r"^\s*[>|]|^In article\b|\b(?:writes|wrote)(?::|\.\.\.)\s*$")
DASHES = re.compile(r"^\s*[-_=]{2,}\s*$")
LONGEST_SIGNATURE = 12  # lines; a line of dashes further up belongs to a table of scores


def own_words(post: str) -> str:
    """A post without its header, the lines it quotes, and its signature.

    The header ends at the first blank line. A signature is what follows the last line of dashes, unless
    that is so long that it must be the text. These words would give the group away (addresses, names,
    subjects), so a model that reads them learns who posts where instead of what is said.
    """
    lines = post.replace("\r\n", "\n").split("\n")
    blank = next((n for n, line in enumerate(lines) if not line.strip()), len(lines))
    lines = [line for line in lines[blank + 1 :] if not QUOTE.search(line)]
    while lines and not lines[-1].strip():
        lines.pop()
    ruled = [n for n, line in enumerate(lines) if DASHES.match(line)]
    if ruled and len(lines) - ruled[-1] <= LONGEST_SIGNATURE + 1:
        lines = lines[: ruled[-1]]
    return "\n".join(lines).strip()


def read(archive: Archive) -> Iterator[Document]:
    """Every post; some have no words of their own and are left to preparation to count."""
    groups = [(split, label) for split in ("train", "test") for label in ("baseball", "hockey")]
    missing = {f"20news-bydate-{split}/rec.sport.{label}/ID" for split, label in groups}
    for found, content in archive.members(MEMBERS):
        missing.discard(f"20news-bydate-{found['split']}/rec.sport.{found['label']}/ID")
        yield Document(
            id=found["id"],
            text=own_words(archive.decoded(found.string, content, encoding="latin-1")),
            label=found["label"],
            split=cast(Split, found["split"]),
        )
    if missing:
        raise archive.lacking(missing)
