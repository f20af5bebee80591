"""Values of feeds.yaml that several keys have: texts, names, titles, truth values, durations.

Each function takes a node and raises a PydanticCustomError with a sentence; keys and their limits are in
`entry.py`, and in the features' own models.
"""

import re
import unicodedata
from collections.abc import Mapping
from datetime import timedelta

from pydantic import ValidationInfo
from pydantic_core import PydanticCustomError

from rss_pipeline.collector.registry.variables import expand, shown
from rss_pipeline.collector.registry.yaml_nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_TITLE_CHARACTERS = 500
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
"""An id of a feed or a topic, or the name of a stream."""
NAME_RULE = "1 to 80 characters of a-z, 0-9 and -, beginning with a letter or digit"

_DURATION = re.compile(r"(?:([0-9]{1,6})d)? ?(?:([0-9]{1,6})h)? ?(?:([0-9]{1,6})m)?")
FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def invalid(sentence: str) -> PydanticCustomError:
    """The exception of a mistake in a value."""
    return PydanticCustomError("mistake", "{sentence}", {"sentence": sentence})


def written_text(value: object) -> str:
    """The text as written, for a message; `${VAR}` is not replaced."""
    match value:
        case ScalarNode(is_null=False):
            return value.text
        case ScalarNode():
            raise invalid("has no value; write one, or remove the key")
        case _:
            raise invalid(f"is {describe(value)}; write a single value")


def describe(value: object) -> str:
    """The kind of a node, for a message."""
    return {SequenceNode: "a list", MappingNode: "a mapping", ScalarNode: "a single value"}[type(value)]


def environ_of(info: ValidationInfo) -> Mapping[str, str]:
    context: dict[str, Mapping[str, str]] = info.context or {}
    return context["environ"]


def expanded_text(value: object, info: ValidationInfo) -> str:
    """The text with the values of its variables."""
    return expanded(value, environ_of(info))


def expanded(value: object, environ: Mapping[str, str]) -> str:
    """`expanded_text` outside of a model."""
    text = written_text(value)
    try:
        return expand(text, environ).strip()
    except ValueError as error:
        raise invalid(str(error)) from None


def id_of(value: object, info: ValidationInfo) -> str:
    text = expanded_text(value, info)
    if not NAME.fullmatch(text):
        raise invalid(f"{shown(written_text(value))} is not a valid id; write {NAME_RULE}")
    return text


def title_of(value: object, info: ValidationInfo) -> str:
    title = " ".join(expanded_text(value, info).split())
    if not title or len(title) > MAX_TITLE_CHARACTERS or not is_printable(title):
        raise invalid(f"write a title of 1 to {MAX_TITLE_CHARACTERS} printable characters, or remove the key")
    return title


def flag_of(value: object, info: ValidationInfo) -> bool:
    flag = FLAGS.get(expanded_text(value, info).lower())
    if flag is None:
        raise invalid(f"{shown(written_text(value))} is not a truth value; write true or false")
    return flag


def duration_of(value: object, info: ValidationInfo, *, also: str = "") -> timedelta:
    """A duration of days, hours and minutes; `also` are further words that the key has, for the message."""
    text = expanded_text(value, info)
    written = shown(written_text(value))
    match = _DURATION.fullmatch(text)
    if not text or not match:
        proposal = (
            f' ("{text}m" for minutes)' if re.fullmatch(r"[0-9]{1,4}", text) and '"${' not in written else ""
        )
        raise invalid(f"{written} is not an interval; write {also}30m, 2h, 1h30m or 1d{proposal}")
    days, hours, minutes = (int(number or 0) for number in match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes)


def nodes_of(value: object) -> tuple[Node, ...]:
    """The nodes of a list; a single value is a list of one."""
    match value:
        case SequenceNode(items=()):
            raise invalid("has no entries; write some, or remove the key")
        case SequenceNode():
            return value.items
        case ScalarNode():
            return (value,)
        case _:
            raise invalid(f"is {describe(value)}; write a value, or a list of values: [a, b]")


# The characters that a title or folder may have, and texts of other programs brought into that form.

_JOINERS = str.maketrans("", "", "\u200c\u200d")
"""Without them Persian and Indic words are spelled otherwise, and one emoji becomes several."""


def is_printable(text: str) -> bool:
    """`str.isprintable`, with the two joiners of words and emoji as letters."""
    return text.translate(_JOINERS).isprintable()


def printable(text: str) -> str:
    """The text on one line: characters without a width go, other unprintable ones become blanks."""
    return " ".join("".join(map(_shown, text)).split())


def _shown(character: str) -> str:
    if is_printable(character):
        return character
    return "" if unicodedata.category(character) == "Cf" else " "
