"""Patterns of tokens that dialect.py looks for: around a word, in a column's definition, of a join."""

from collections.abc import Sequence

from rss_pipeline.storage.backends.postgres.tokens import Group, Node, Token, walk

_COLUMN_TYPES = {
    "INTEGER": "bigint",
    "REAL": "double precision",
    "TEXT": 'text COLLATE "C"',
    "BLOB": "bytea",
}
ENDS_FROM = frozenset(
    {"WHERE", "GROUP", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "HAVING", "RETURNING", "WINDOW"}
    | {"SELECT", "SET"}
)
"""Key words that end the tables of a query."""
_NO_ALIAS = ENDS_FROM | {"JOIN", "LEFT", "INNER", "CROSS", "ON"}
_BEFORE_A_VALUE = frozenset(
    {"SELECT", "DISTINCT", "WHERE", "AND", "OR", "NOT", "ON", "BY", "WHEN", "THEN", "ELSE", "CASE", "BETWEEN"}
    | {"IN", "LIMIT", "OFFSET", "HAVING", "SET"}
)
_AS_IN_SQL = ("NULL", "TRUE", "FALSE", "UNKNOWN", "DISTINCT")


def typed(nodes: Sequence[Node], *, after: str | None = None) -> list[Node]:
    """A column's definition with the type that Postgres has, the second word of it. It begins behind
    `after`."""
    place = 1
    if after is not None:
        found = [n + 2 for n, node in enumerate(nodes) if node.is_word(after)]
        place = found[0] if found else len(nodes)
    written = list(nodes)
    if place < len(nodes):
        node = nodes[place]
        if isinstance(node, Token) and node.text.upper() in _COLUMN_TYPES:
            written[place] = Token(_COLUMN_TYPES[node.text.upper()], "written")
    return written


def is_distinct(nodes: Sequence[Node], at: int) -> tuple[int, str]:
    """SQLite's IS compares any two values."""
    is_not = at + 1 < len(nodes) and nodes[at + 1].is_word("NOT")
    place = at + 2 if is_not else at + 1
    if place < len(nodes) and nodes[place].is_word(*_AS_IN_SQL):
        return 1, "IS"
    return (2, "IS DISTINCT FROM") if is_not else (1, "IS NOT DISTINCT FROM")


def names_of_json_each(nodes: Sequence[Node]) -> frozenset[str]:
    """The names that results of json_each have in this statement; `json_each` where one has none."""
    names = set()
    for level in walk(nodes):
        for at, node in enumerate(level):
            if node.is_word("JSON_EACH") and at + 1 < len(level):
                behind = [other for other in level[at + 2 : at + 4] if not other.is_word("AS")]
                alias = behind[0] if behind and has_alias(level[at + 2 :]) else None
                names.add(alias.text if isinstance(alias, Token) else "json_each")
    return frozenset(names)


def has_alias(behind: Sequence[Node]) -> bool:
    first = behind[0] if behind else None
    return isinstance(first, Token) and first.kind in ("word", "name") and first.text.upper() not in _NO_ALIAS


def has_on(nodes: Sequence[Node]) -> bool:
    """True if a join's table is followed by its condition."""
    for node in nodes:
        if node.is_word("ON"):
            return True
        if node.is_sign(",") or (isinstance(node, Token) and node.text.upper() in _NO_ALIAS):
            return False
    return False


def is_unary(nodes: Sequence[Node], at: int) -> bool:
    if at == 0:
        return True
    before = nodes[at - 1]
    return isinstance(before, Token) and (
        before.kind == "sign" or (before.kind == "word" and before.text.upper() in _BEFORE_A_VALUE)
    )


def begins(nodes: Sequence[Node], *words: str) -> bool:
    return len(nodes) >= len(words) and all(
        node.is_word(word) for node, word in zip(nodes, words, strict=False)
    )


def joined(pieces: Sequence[str]) -> str:
    text = ""
    for piece in pieces:
        is_close = not text or text.endswith((".", "(")) or piece in (".", ",")
        text += piece if is_close else f" {piece}"
    return text


def join_by_rowid(nodes: Sequence[Node], at: int) -> tuple[int, str, list[Node]] | None:
    """`CROSS JOIN items AS i ON i.rowid IN (SELECT n.rowid FROM ...)`: how many nodes it has, the name of its
    rows, and the query with all columns of them. None for other joins."""
    if at + 3 >= len(nodes) or not nodes[at + 1].is_word("JOIN"):
        return None
    name, place = nodes[at + 2], at + 3
    if nodes[place].is_word("AS"):
        name, place = nodes[place + 1], place + 2
    match nodes[place : place + 6]:
        case [on, Token(text=of), Token(text="."), Token(text="rowid"), within, Group(nodes=rows)] if (
            on.is_word("ON") and within.is_word("IN") and isinstance(name, Token) and of == name.text
        ):
            every = Token("*", "sign")
            match rows:
                case [select, Token(text="rowid"), *behind]:
                    return place + 6 - at, of, [select, every, *behind]
                case [select, Token() as owner, Token(text=".") as dot, Token(text="rowid"), *behind]:
                    return place + 6 - at, of, [select, owner, dot, every, *behind]
    return None


def bytes_of(argument: Sequence[Node]) -> Sequence[Node] | None:
    """The text of `CAST(text AS BLOB)`; None for anything else."""
    match argument:
        case [Token() as cast, Group(nodes=[*text, _, Token() as kind])] if cast.is_word(
            "CAST"
        ) and kind.is_word("BLOB"):
            return text
    return None
