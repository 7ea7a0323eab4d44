"""The blocks of a reproduction page: where they are and what each of them asks for.

    <!-- table NAME: kind = findings; file = vectors.parquet; corpus = sst as "SST", imdb -->
    what `make reproductions` writes
    <!-- end NAME -->

A directive is a list of `key = value` pairs between semicolons, and may span several lines. A value is a list
of items between commas. An item is a word or a quoted text, and `as "..."` says how a page shows it. Quotes
protect commas and semicolons.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

BLOCK = re.compile(
    r"<!-- table (?P<name>[a-z0-9-]+):(?P<directive>.*?)-->\n(?P<body>.*?)<!-- end (?P=name) -->", re.S
)
MARKER = re.compile(r"<!--\s*(?:table|end)\b")
KEY = re.compile(r"[a-z]+")
ITEM = re.compile(r'(?P<value>"[^"]+"|[^",;]+?)(?:\s+as\s+"(?P<shown>[^"]+)")?')
OUTSIDE_QUOTES = r'(?=(?:[^"]*"[^"]*")*[^"]*$)'


class PageError(ValueError):
    """What is wrong with a page, as a sentence for its author."""


@dataclass(frozen=True)
class Item:
    """One item of a value, and how the page shows it."""

    value: str
    shown: str


@dataclass(frozen=True)
class Block:
    """What one block of a page asks for."""

    name: str
    keys: dict[str, list[Item]]

    @property
    def kind(self) -> str:
        """The kind of the block."""
        return self.one("kind")

    def __contains__(self, key: str) -> bool:
        return key in self.keys

    def many(self, key: str, default: tuple[str, ...] | None = None) -> list[Item]:
        """The items of a key; without a default the key is needed."""
        if key in self.keys:
            return self.keys[key]
        if default is None:
            raise self.error(f"the key `{key}` is missing.")
        return [Item(value, value) for value in default]

    def one(self, key: str, default: str | None = None) -> str:
        """The single item of a key."""
        items = self.many(key, None if default is None else (default,))
        if len(items) != 1:
            raise self.error(f"the key `{key}` needs one value, and {len(items)} are given.")
        return items[0].value

    def count(self, key: str, default: int) -> int:
        """The single item of a key that must be a whole number."""
        value = self.one(key, str(default))
        if not value.isdecimal():
            raise self.error(f"the key `{key}` needs a whole number, and {value!r} is none.")
        return int(value)

    def among(self, key: str, known: tuple[str, ...]) -> str:
        """The single item of a key that must be one of those known; the first of them is the default."""
        value = self.one(key, known[0])
        if value not in known:
            raise self.error(f"`{key}` is one of {', '.join(known)}, and {value!r} is none of them.")
        return value

    def allow(self, *known: str) -> None:
        """Refuse keys that this kind of block does not know."""
        if unknown := [key for key in self.keys if key not in ("kind", *known)]:
            raise self.error(
                f"a block of the kind {self.kind} has no key `{unknown[0]}`; its keys are {', '.join(known)}."
            )

    def error(self, sentence: str) -> PageError:
        """A sentence about this block, to be raised."""
        return PageError(f"In the block {self.name}, {sentence}")


def parse(name: str, directive: str) -> Block:
    """The block that a directive describes."""
    block = Block(name, {})
    if directive.count('"') % 2:
        raise block.error("a quotation mark is never closed.")
    for pair in re.split(";" + OUTSIDE_QUOTES, directive):
        key, sign, value = (part.strip() for part in pair.partition("="))
        if not sign or not value or not KEY.fullmatch(key):
            raise block.error(f"{pair.strip()!r} is not of the form `key = value`.")
        if key in block.keys:
            raise block.error(f"the key `{key}` is given twice.")
        block.keys[key] = [_item(block, key, text) for text in re.split("," + OUTSIDE_QUOTES, value)]
    if "kind" not in block:
        raise block.error("the key `kind` is missing.")
    return block


def _item(block: Block, key: str, text: str) -> Item:
    found = ITEM.fullmatch(" ".join(text.split()))
    if found is None:
        raise block.error(f'{text.strip()!r} under `{key}` is not of the form `value` or `value as "name"`.')
    value = found["value"].strip('"')
    return Item(value, found["shown"] or value)


def blocks(page: str) -> list[Block]:
    """The blocks of a page in their order; markers that belong to no block are an error."""
    found = list(BLOCK.finditer(page))
    if len(MARKER.findall(page)) != 2 * len(found):
        raise PageError(
            "A marker stands alone: every block begins with a line `<!-- table NAME: key = value -->` and"
            " ends with `<!-- end NAME -->`, and its name is made of lower-case letters, digits and hyphens."
        )
    parsed = [parse(match["name"], match["directive"]) for match in found]
    names = [block.name for block in parsed]
    if twice := [name for name in names if names.count(name) > 1]:
        raise PageError(f"Two blocks have the name {twice[0]}, and each needs its own.")
    return parsed


def filled(page: str, generate: Callable[[Block], str]) -> str:
    """The page with every block generated again; everything outside the blocks stays as it is."""
    generated = {block.name: generate(block) for block in blocks(page)}

    def block(match: re.Match[str]) -> str:
        start = f"<!-- table {match['name']}:{match['directive']}-->"
        return f"{start}\n{generated[match['name']]}\n<!-- end {match['name']} -->"

    return BLOCK.sub(block, page)
