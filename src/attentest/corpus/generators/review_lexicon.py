"""The words of `planted-reviews`: graded sentiment words, what a review is about, and neutral sentences.

In a template, square brackets mark what decides a label if the clause counts: the cue and its negator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

STRONGEST = 4  # the highest grade of a sentiment word
# By grade from 1 to 4. Adjectives of every grade fit every noun below, so that no noun predicts a grade.
POSITIVE = (
    ("decent", "fine", "adequate", "passable"),
    ("good", "nice", "solid", "pleasant"),
    ("great", "excellent", "wonderful", "terrific"),
    ("superb", "outstanding", "perfect", "brilliant"),
)
NEGATIVE = (
    ("bland", "mediocre", "forgettable", "uneven"),
    ("bad", "poor", "weak", "clumsy"),
    ("terrible", "awful", "dreadful", "horrible"),
    ("abysmal", "atrocious", "disastrous", "unbearable"),
)
# Verbs by grade as (past, base): "it pleased me", "it did not please me".
POSITIVE_VERBS = (
    (("satisfied", "satisfy"), ("reassured", "reassure")),
    (("pleased", "please"), ("charmed", "charm")),
    (("impressed", "impress"), ("delighted", "delight")),
    (("amazed", "amaze"), ("thrilled", "thrill")),
)
NEGATIVE_VERBS = (
    (("puzzled", "puzzle"), ("tired", "tire")),
    (("annoyed", "annoy"), ("bored", "bore")),
    (("disappointed", "disappoint"), ("irritated", "irritate")),
    (("disgusted", "disgust"), ("infuriated", "infuriate")),
)
NEGATORS = frozenset({"not", "n't", "never"})
ADJECTIVES = {1: POSITIVE, -1: NEGATIVE}
VERBS = {1: POSITIVE_VERBS, -1: NEGATIVE_VERBS}


def _grades() -> dict[str, int]:
    graded = {}
    for sign in (1, -1):
        for grade in range(1, STRONGEST + 1):
            verbs = (form for verb in VERBS[sign][grade - 1] for form in verb)
            graded.update(dict.fromkeys((*ADJECTIVES[sign][grade - 1], *verbs), sign * grade))
    return graded


GRADES = _grades()  # every form of every sentiment word, from -4 to 4

Forms = tuple[str, ...]  # of a clause: as it is, then the ways to negate it
ADJECTIVE_CLAUSES: tuple[Forms, ...] = (
    ("the {noun} is [{cue}]", "the {noun} is [not] [{cue}]", "the {noun} is[n't] [{cue}]"),
    ("the {noun} was really [{cue}]", "the {noun} was [not] really [{cue}]", "the {noun} was[n't] [{cue}]"),
    ("the {noun} seemed [{cue}] to me", "the {noun} did [not] seem [{cue}] to me"),
    (
        "I found the {noun} [{cue}]",
        "I did [not] find the {noun} [{cue}]",
        "I [never] found the {noun} [{cue}]",
    ),
    ("I thought the {noun} was [{cue}]", "I did[n't] think the {noun} was [{cue}]"),
    ("frankly, the {noun} was [{cue}]", "frankly, the {noun} was [never] [{cue}]"),
)
VERB_CLAUSES: tuple[Forms, ...] = (
    ("the {noun} [{past}] me", "the {noun} did [not] [{base}] me", "the {noun} did[n't] [{base}] me"),
    ("the {noun} really [{past}] me", "the {noun} [never] really [{past}] me"),
)
REPORTED_ADJECTIVE_CLAUSES: tuple[Forms, ...] = (
    (
        "my {noun} called it [{cue}]",
        "my {noun} did [not] call it [{cue}]",
        "my {noun} [never] called it [{cue}]",
    ),
    ("my {noun} says that it is [{cue}]", "my {noun} says that it is[n't] [{cue}]"),
)
REPORTED_VERB_CLAUSES: tuple[Forms, ...] = (
    ("it [{past}] my {noun}", "it did [not] [{base}] my {noun}", "it [never] [{past}] my {noun}"),
)
MOST_CUES = 12  # of a review, and as many distractors: every one has a noun of its own
CONNECTIVES = (", and ", ", while ", "; ")  # none that tells whether the two clauses agree, as "but" would


@final
@dataclass(frozen=True, kw_only=True)
class Domain:
    """What reviews of one kind talk about. A clause with a noun of `elsewhere` decides nothing."""

    things: dict[str, tuple[str, ...]]  # what is reviewed, and the nouns that belong to it alone
    aspects: tuple[str, ...]  # the nouns that belong to every such thing
    elsewhere: tuple[str, ...]
    openings: tuple[str, ...]
    neutral: tuple[str, ...]


PEOPLE = ("brother", "sister", "neighbour", "aunt", "uncle", "colleague", "flatmate", "cousin")
SLOTS = {
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": ("January", "March", "April", "June", "July", "September", "October", "December"),
    "city": ("Lisbon", "Oslo", "Cairo", "Boston", "Lima", "Kyoto", "Vienna", "Dublin"),
    "job": ("nurse", "farmer", "pilot", "lawyer", "baker", "painter", "sailor", "detective"),
    "room": ("kitchen", "office", "bedroom", "hallway", "garage", "studio"),
    "colour": ("black", "white", "grey", "blue", "green", "red"),
    "number": ("two", "three", "four", "five", "six", "ten"),
}
FILM = Domain(
    things={
        "film": ("title song",),
        "comedy": ("timing", "humour"),
        "thriller": ("suspense", "chase scene"),
        "western": ("scenery", "final duel"),
        "drama": ("love story", "courtroom scene"),
        "documentary": ("narration", "archive footage"),
    },
    aspects=(
        "plot", "acting", "script", "ending", "soundtrack", "camerawork", "dialogue", "pacing", "cast",
        "opening scene", "lead actor", "villain", "editing", "lighting",
    ),
    elsewhere=("popcorn", "cinema", "parking", "audience", "trailer", "poster", "queue", "lobby", "usher"),
    openings=(
        "We watched this {thing} on {day}.",
        "I saw this {thing} in {city} last {month}.",
        "This {thing} came out in {month}.",
        "I borrowed this {thing} from the library.",
        "This is the second {thing} by a director from {city}.",
    ),
    neutral=(
        "It is set in {city}.",
        "It follows a {job} and a {job}.",
        "It is told in {number} chapters.",
        "A {job} moves from {city} to {city}.",
        "Most of it takes place on a {day}.",
        "It was made in {city} over {number} months.",
        "There are {number} songs in it.",
        "It is based on a book about a {job}.",
        "The {job} has {number} children.",
        "Half of it is in {colour} and {colour}.",
        "I went on a {day} evening with {number} other people.",
        "It begins in {month} and ends in {month}.",
        "The director used to work as a {job}.",
        "Somebody steals a {colour} car.",
        "I have read the book twice.",
    ),
)  # fmt: skip
PRODUCT = Domain(
    things={
        "phone": ("battery", "screen", "camera", "speaker", "charger"),
        "laptop": ("keyboard", "screen", "hinge", "fan", "webcam"),
        "kettle": ("lid", "spout", "filter", "base", "switch"),
        "lamp": ("shade", "bulb", "dimmer", "stand", "switch"),
        "backpack": ("zip", "lining", "front pocket", "shoulder strap", "buckle"),
        "bicycle": ("saddle", "chain", "front brake", "gearing", "bell"),
        "office chair": ("seat", "backrest", "armrest", "padding", "headrest"),
        "radio": ("aerial", "speaker", "tuner", "display", "volume knob"),
    },
    aspects=("design", "finish", "build quality", "size", "weight", "handle", "manual", "price", "warranty"),
    elsewhere=("packaging", "delivery", "courier", "shop", "website", "invoice", "wrapping", "box"),
    openings=(
        "I bought this {thing} in {month}.",
        "I ordered this {thing} on a {day}.",
        "We have had this {thing} since {month}.",
        "This {thing} replaces one that I had for {number} years.",
        "I was given this {thing} for my birthday.",
    ),
    neutral=(
        "It stands in the {room} now.",
        "Mine is {colour}.",
        "It also comes in {colour} and {colour}.",
        "I use it about {number} times a week.",
        "I keep it in the {room}.",
        "It was made in {city}.",
        "I took it to {city} for {number} days.",
        "A {job} showed me how it works.",
        "There are {number} of us in the house.",
        "I work as a {job} and use it from {day} to {day}.",
        "I have owned it for {number} months.",
        "The label on the back is {colour}.",
        "I registered it online in {month}.",
        "It is as long as my arm.",
        "I compared it with {number} others before I chose it.",
    ),
)  # fmt: skip
DOMAINS = {"film": (FILM,), "product": (PRODUCT,), "both": (FILM, PRODUCT)}
ELSEWHERE = frozenset({*PEOPLE, *FILM.elsewhere, *PRODUCT.elsewhere})
