"""Words: the house tokeniser, one regular expression that splits English as spaCy does.

spaCy's splitting is what the published preparations used, so it is the yardstick; its 200 MB are not
needed to match it. Two of its habits explain most of the expression. What stands between two blanks is
peeled from both ends, punctuation mark by punctuation mark, and only the rest is searched for places to
cut; so a mark inside a piece ("film.<br") stays there. And no token ever spans a blank, so a text may be
cut at any blank and tokenised in parts, which is how `tokenise_sentences` works.

Departures, together rarer than two tokens in a thousand: "'ve" and "'m" after a blank stay whole (texts
that come as tokens write them so), "id" and "wed" are words, and any "...n't" or "...'ll" is a contraction
where spaCy goes by a list.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from attentest.refusal import Refusal

WORDS_VERSION = 1  # raise it whenever any text would split differently: corpora are keyed by it

_MARK = r""",;:!?()\[\]{}<>_\#*&"'“”‘’«»„`´–—¡¿"""  # peeled off wherever a piece begins or ends
_SIGN = r"…°©®™\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"  # a token wherever it stands
_MONEY = r"$£€¥"
_LETTER = r"[^\W\d_]"
_END = rf"(?=[.{_MARK}{_SIGN}]*+(?!\S))"  # nothing but marks until the next blank

_ABBREVIATION = r"""
    (?: M(?:rs?|s|t|essrs) | [DJS]r | St | Prof | Rev | Gen | Rep | Sen | Gov | Adm | Ph\.D
      | vs | i\.e | e\.g | [ap]\.m | Inc | Ltd | [Cc]o | Corp | Bros
      | Jan | Feb | Mar | Apr | Jun | Jul | Aug | Sept? | Oct | Nov | Dec | [a-z] )"""
_UNIT = r"(?: [kcmdnµ]?m[²³]? | [kmµ]?g | mph | k?m/[hs] | lb | oz | [KMGTkmgt][Bb] | [KMGT] | [ap]\.?m )"
_CLITIC = rf"['’](?: [sS] | ll | re | ve | d | m ){_END}"
_CUT = rf"""
    (?<=[^\W_]) (?: -{{1,3}} | [–—~:<>=/] ) (?={_LETTER})  # well-known, 10-year, and:then, he/she, a<br
  | (?<={_LETTER}) , (?={_LETTER})
  | (?<=[a-zß-öø-ÿ"'”’]) \. (?=[A-ZÀ-ÖØ-Þ"'“‘])            # a forgotten blank: "the end.The next"
  | (?<=\d) [-+*^] (?=[\d-])
"""
_STOP = rf"(?: {_CUT} | \.\. | {_CLITIC} | (?<=\d)[+%{_MONEY}]{_END} )"

# Linear time, by construction. Every unbounded repetition is possessive, save the lazy one before "n't",
# which passes over letters only. An alternative that scans a run and then fails leaves it either to the
# last one, which takes it whole, or to the marks, which are taken one by one and never scan a run of marks.
# Hence too a dot before marks is a token at once: the last alternative, begun there, would scan them all.
_TOKEN = re.compile(
    rf"""
    (?!\s)(?:                              # without this, each blank would try every alternative in turn
    [A-Za-z]++ (?=[,!?]?+(?!\S))           # four tokens in five end here
  | [a-z]{{3,}}+ (?=\.(?!\S))             # and most of the rest: no such abbreviation is as long
  | \.\.++ | \.(?![^\s.{_MARK}{_SIGN}])
  | {_CLITIC}
  | n['’]t\b
  | ['’](?:em|cause){_END}
  | [:;=][-o]?[)(DPp/|\]\[](?!\w) | \(-?[:;](?!\w)                                        # smileys
  | ''
  | [{_MARK}{_SIGN}{_MONEY}%=]
  | \+(?!\d)
  | (?: (?:https?|ftp):// | www\. ) (?: [^\s.{_MARK}]++ | [.{_MARK}]++(?=\S) )++
  | {_ABBREVIATION} \.(?!\.) {_END}
  | (?: and/or | w/o ) {_END}
  | (?=[A-Za-z]++['’]) [A-Za-z][a-z]*? (?=n['’]t\b)
  | \d++ (?:[.,]\d++)*+ (?={_UNIT}{_END})
  | [\w.+-]{{1,64}}+ @ [a-z\d-]{{1,63}}+ (?: \.[a-z\d-]{{1,63}}+ ){{0,8}}+ {_END}           # mail
  | {_CUT}
  | [^\s{_MARK}]                           # anything else, up to a cut or to marks that end the piece
    (?: [^\W_]++
      | (?!{_STOP}) (?: [^\s.{_MARK}{_SIGN}] | (?: (?!{_STOP})[.{_MARK}] )++ (?=[^\s.{_MARK}{_SIGN}]) )
    )*+
    (?: (?<=[A-Z])(?<![A-Z][A-Z]) \.(?!\.) )?                                               # U.S., J.
    )
    """,
    re.VERBOSE,
)


def _run_together() -> dict[str, int]:
    """Where to cut the contractions people write in one word; "its", "were", "well" are words too."""
    ends = {
        "nt": "ai are ca could did do does had has have is should was were wo would",
        "s": "that what there he she how who where",
        "ve": "i we you they",
        "re": "you they",
        "ll": "it you they",
        "m": "i",
        "not": "can",
        "na": "gon",
        "ta": "got",
    }
    cuts = {stem + end: len(stem) for end, stems in ends.items() for stem in stems.split()}
    return cuts | {word.capitalize(): cut for word, cut in cuts.items()}


_RUN_TOGETHER = _run_together()
_RUN_TOGETHER_WORDS = frozenset(_RUN_TOGETHER)  # a set checks a whole text in one call

_SENTENCE_END = re.compile(r"""[.!?]["'”’»)\]}]*+\s++|[\n\r]""")
_LINE_ENDS = frozenset("\n\r")
_OPENING_QUOTES = frozenset("\"'“‘«„`")


def tokenise(text: str) -> list[str]:
    """The words and marks of a text, in order, with their case kept.

    Only blanks are lost: the tokens, put together, are the text without its blanks.
    """
    tokens = _TOKEN.findall(text)
    if _RUN_TOGETHER_WORDS.isdisjoint(tokens):
        return tokens
    return [part for token in tokens for part in _parted(token)]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where each token of `tokenise` is: (start, end) in the raw string, in order and without overlap."""
    spans: list[tuple[int, int]] = []
    for found in _TOKEN.finditer(text):
        start, end = found.span()
        cut = _RUN_TOGETHER.get(found[0])
        spans += [(start, end)] if cut is None else [(start, start + cut), (start + cut, end)]
    return spans


def _parted(token: str) -> tuple[str, ...]:
    cut = _RUN_TOGETHER.get(token)
    return (token,) if cut is None else (token[:cut], token[cut:])


def tokenise_sentences(text: str) -> tuple[list[str], list[int]]:
    """The tokens of a text, and the position at which each sentence begins.

    A sentence ends at a line's end, and after `.!?` where a blank and then a capital or a quotation mark
    follow; quotation marks and brackets that close right after the `.!?` still belong to it. The rule is
    deliberately this blunt ("Mr. Smith" is cut): attention over sentences needs units, not a parse.
    """
    tokens: list[str] = []
    starts: list[int] = []
    for sentence in _sentences(text):
        found = tokenise(sentence)
        if found:
            starts.append(len(tokens))
            tokens += found
    return tokens, starts


def _sentences(text: str) -> Iterator[str]:
    begin = 0
    for end in _SENTENCE_END.finditer(text):
        follows = text[end.end() : end.end() + 1]
        if follows.isupper() or follows in _OPENING_QUOTES or not _LINE_ENDS.isdisjoint(end[0]):
            yield text[begin : end.end()]
            begin = end.end()
    yield text[begin:]


@functools.cache
def _spacy() -> Callable[[str], Any]:
    try:
        spacy = importlib.import_module("spacy")
    except ImportError as missing:
        raise Refusal(
            "tokeniser 'spacy'",
            got="an environment without spaCy",
            needs="the extra `spacy`",
            way_out="Run pip install 'attentest[spacy]', or use the tokeniser 'words'.",
        ) from missing
    return spacy.blank("en").tokenizer


def spacy_tokenise(text: str) -> list[str]:
    """The tokens of spaCy's blank English pipeline, less those that are only blanks.

    What the published preparations used, and what `tokenise` is measured against.
    """
    return [token.text for token in _spacy()(text) if not token.is_space]
