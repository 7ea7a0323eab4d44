"""20 Newsgroups, the two groups of Jain & Wallace: what people themselves wrote on baseball or hockey."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from attentest.corpus.document import Document
from attentest.corpus.example import Split
from attentest.corpus.fetch.archive import Archive
from attentest.refusal import Refusal

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


def _wrong(where: str, got: str, needs: str) -> Refusal:
    way_out = "The file is damaged or not the publisher's: get it again."
    return Refusal(where, got=got, needs=needs, way_out=way_out)


def _document(archive: Archive, found: re.Match[str], content: bytes) -> Document:
    where = f"{archive.path}, {found.string}"
    if not content.strip():
        raise _wrong(where, "nothing in it", "a post with its header")
    # Any byte is a letter of latin-1, so this is the one sign of another encoding.
    if b"\0" in content:
        raise _wrong(where, "a NUL byte, as in UTF-16", "text in latin-1")
    text = own_words(archive.decoded(found.string, content, encoding="latin-1"))
    return Document(id=found["id"], text=text, label=found["label"], split=cast(Split, found["split"]))


def read(archive: Archive) -> Iterator[Document]:
    """Every post; some have no words of their own and are left to preparation to count.

    A group of nothing but those is refused: preparation puts both parts together and would not miss it.
    """
    groups = [(split, label) for split in ("train", "test") for label in ("baseball", "hockey")]
    missing = {f"20news-bydate-{split}/rec.sport.{label}" for split, label in groups}
    silent = set(missing)
    for found, content in archive.members(MEMBERS):
        document = _document(archive, found, content)
        group = document.id.rpartition("/")[0]
        missing.discard(group)
        if document.text:
            silent.discard(group)
        yield document
    if missing:
        raise archive.lacking({f"{group}/ID" for group in missing})
    if silent:
        where = f"{archive.path}, {', '.join(sorted(silent))}"
        raise _wrong(where, "posts without words of their own only", "at least one with words")
