"""The rules of a robots.txt (RFC 9309): a page is made for people, so its site may keep programs away."""

import re
import string
from collections.abc import Iterator, Sequence
from urllib.parse import quote

PRODUCT = "rss_pipeline"
"""Our name there, as in the User-Agent."""
_MOST_CHARACTERS = 500_000
_MOST_RULES = 2_000
_LONGEST = 2_000
_ESCAPE = re.compile(r"%[0-9a-f]{2}", re.IGNORECASE)
_LINE = re.compile(r"\s{0,9}(user-agent|allow|disallow)\s{0,9}:([^#]*)", re.IGNORECASE)


def rules_for_us(text: str) -> tuple[str, ...]:
    """The rules of the groups with our name, else of those for all: `+` or `-` and a pattern of paths.

    >>> rules_for_us("User-agent: *\\nDisallow: /private/\\nAllow: /private/news$")
    ('-/private/', '+/private/news$')
    """
    ours: list[str] = []
    for_all: list[str] = []
    has_ours = False
    # An editor's mark of the encoding is no part of the first line.
    for names, rules in _groups(text[:_MOST_CHARACTERS].lstrip("\ufeff")):
        if PRODUCT in names:
            has_ours = True
            ours += rules
        elif "*" in names:
            for_all += rules
    return tuple((ours if has_ours else for_all)[:_MOST_RULES])


def _groups(text: str) -> Iterator[tuple[set[str], list[str]]]:
    names: set[str] = set()
    rules: list[str] = []
    for line in text.splitlines():
        if not (found := _LINE.match(line)):
            continue
        key, value = found[1].lower(), found[2].strip()
        if key == "user-agent":
            if rules:
                yield names, rules
                names, rules = set(), []
            names.add(value.lower().partition("/")[0])
        elif names and value and len(value) <= _LONGEST:
            rules.append(("+" if key == "allow" else "-") + _encoded(value))
        elif names:
            # An empty rule allows everything, and ends the list of names.
            rules.append("+/")
    if names:
        yield names, rules


def allows(rules: Sequence[str], path: str) -> bool:
    """True if a path, with its query, may be requested: the longest pattern counts, and allows if two are
    equal."""
    path = _encoded(path)
    fitting = [(len(rule), rule[0] == "+") for rule in rules if _fits(rule[1:], path)]
    return max(fitting)[1] if fitting else True


def _encoded(path: str) -> str:
    """A path as it is requested: letters of other scripts as escapes, and escapes in capitals."""
    return _ESCAPE.sub(lambda found: found[0].upper(), quote(path, safe=string.punctuation))


def _fits(pattern: str, path: str) -> bool:
    """True if a path begins as the pattern, in which `*` is anything and a last `$` the end."""
    is_whole = pattern.endswith("$")
    first, *others = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    if not others:
        return not is_whole or at == len(path)
    *others, last = others
    for each in others:
        found = path.find(each, at)
        if found < 0:
            return False
        at = found + len(each)
    if is_whole:
        return len(path) - len(last) >= at and path.endswith(last)
    return path.find(last, at) >= 0
