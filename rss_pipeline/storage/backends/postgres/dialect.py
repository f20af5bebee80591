"""The statements of this project, which are SQLite's, as Postgres reads them: a function from text to text.

A statement is written once, for all stores, so that both understand it; what they have no common words for is
here, and what Postgres lacks is a function of functions.sql. Texts out of JSON are texts in Postgres: where
one is a number, the statement says so (`storage.sql.number`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

# SQL as a tree of its tokens: words, strings, numbers, parameters, signs, and what is in parentheses.
#
# Blanks and comments are gone. What Postgres reads otherwise than SQLite is dialect.py's.

_TOKEN = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<string>'(?:[^']|'')*')
    |(?P<name>"(?:[^"]|"")*")
    |(?P<parameter>\?\d*)
    |(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign><>|<=|>=|==|!=|\|\||->>|->|[-+*/%<>=(),.;&|~])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class SqlToken:
    """One token as it is written."""

    text: str
    kind: str

    def is_word(self, *words: str) -> bool:
        """True for one of these key words or names, in whatever case; `words` are upper case."""
        return self.kind == "word" and self.text.upper() in words

    def is_sign(self, *signs: str) -> bool:
        return self.kind == "sign" and self.text in signs


@dataclass(frozen=True, slots=True)
class Group:
    """The tokens between two parentheses."""

    nodes: list["Node"] = field(default_factory=list)

    def is_word(self, *_words: str) -> bool:
        return False

    def is_sign(self, *_signs: str) -> bool:
        return False

    @property
    def arguments(self) -> list[list["Node"]]:
        """The parts between its commas; none where it is empty."""
        return split(self.nodes) if self.nodes else []

    @property
    def is_query(self) -> bool:
        return bool(self.nodes) and self.nodes[0].is_word("SELECT", "WITH", "VALUES")


Node = SqlToken | Group


def split(nodes: Sequence[Node]) -> list[list[Node]]:
    """The parts between commas."""
    parts: list[list[Node]] = [[]]
    for node in nodes:
        if node.is_sign(","):
            parts.append([])
        else:
            parts[-1].append(node)
    return parts


def parse(sql: str) -> list[Node]:
    """The tree of a statement.

    Raises ValueError for a sign that no statement has, or parentheses that do not match.
    """
    stack: list[list[Node]] = [[]]
    for token in _tokens(sql):
        if token.is_sign("("):
            group = Group()
            stack[-1].append(group)
            stack.append(group.nodes)
        elif token.is_sign(")"):
            if len(stack) == 1:
                raise ValueError("a parenthesis is closed that is not open")
            stack.pop()
        else:
            stack[-1].append(token)
    if len(stack) > 1:
        raise ValueError("a parenthesis is not closed")
    return stack[0]


def walk(nodes: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """This list of nodes, and that of each group in it."""
    yield nodes
    for node in nodes:
        if isinstance(node, Group):
            yield from walk(node.nodes)


def _tokens(sql: str) -> Iterator[SqlToken]:
    at = 0
    while at < len(sql):
        match = _TOKEN.match(sql, at)
        if match is None or match.lastgroup is None:
            raise ValueError(f"no SQL of ours: {sql[at : at + 20]!r}")
        if match.lastgroup != "blank":
            yield SqlToken(match[0], match.lastgroup)
        at = match.end()


SCHEMA = "rss_sqlite"
"""The schema of functions.sql."""
ROWID_TABLES = frozenset({"items", "item_versions", "image_tasks"})
"""Tables with rows that are found by `rowid`: in Postgres it is a column."""
FILLED = {"feeds": 75}
"""Tables with rows that change at each visit, and percent of a page that inserts fill: a claim writes its new
version of a row beside the old one then, and no entry into any index."""

_RENAMED = {
    "STRFTIME": f"{SCHEMA}.strftime",
    "JSON_GROUP_ARRAY": f"{SCHEMA}.json_group_array",
    "JSON_GROUP_OBJECT": "json_object_agg",
    "JSON_ARRAY_LENGTH": f"{SCHEMA}.json_array_length",
    "INSTR": "strpos",
    "DATE": f"{SCHEMA}.date",
    "JULIANDAY": f"{SCHEMA}.julianday",
    "RANDOMBLOB": f"{SCHEMA}.randomblob",
    "HEX": f"{SCHEMA}.hex",
    "PRAGMA_TABLE_INFO": f"{SCHEMA}.pragma_table_info",
    "IFNULL": "coalesce",
}
_SQLITE_MASTER = """(SELECT CASE relkind WHEN 'i' THEN 'index' ELSE 'table' END AS type,
  relname::text AS name, oid::bigint AS rowid FROM pg_catalog.pg_class
  WHERE relnamespace = pg_catalog.to_regnamespace(quote_ident(current_schema())) AND relkind IN ('r', 'i')
) AS sqlite_master"""


@lru_cache(maxsize=2_000)
def translate(sql: str) -> str:
    """The statement as Postgres reads it, with parameters `$1`, `$2` ...

    Raises ValueError for a text that is no statement of any store.
    """
    nodes = parse(sql)
    return _Translation(nodes).write(nodes)


class _Translation:
    """One statement; it counts parameters and the names that subqueries get."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._parameters = 0
        self._unnamed = 0
        self._from_json = names_of_json_each(nodes)

    def write(self, nodes: Sequence[Node]) -> str:
        if begins(nodes, "CREATE", "TRIGGER"):
            # Only SQLite and D1 have any (0052): what they note is of no use where reads cost nothing.
            return "SELECT 1"
        if begins(nodes, "CREATE", "TABLE"):
            nodes = self._table(nodes)
        elif begins(nodes, "ALTER", "TABLE"):
            nodes = typed(nodes, after="COLUMN")
        pieces: list[str] = []
        is_from, at = False, 0
        while at < len(nodes):
            node = nodes[at]
            if node.is_word("FROM", "JOIN"):
                is_from = True
            elif isinstance(node, SqlToken) and node.text.upper() in ENDS_FROM:
                is_from = False
            taken, piece = self._next(nodes, at, is_from=is_from)
            at += taken
            if piece:
                pieces.append(piece)
        return joined(pieces)

    def _next(self, nodes: Sequence[Node], at: int, *, is_from: bool) -> tuple[int, str]:
        """The number of nodes that are read, and the SQL that is written for them."""
        node, after = nodes[at], nodes[at + 1] if at + 1 < len(nodes) else SqlToken("", "end")
        if isinstance(node, Group):
            return 1, self._group(nodes, at, is_from=is_from)
        if node.kind == "parameter":
            return 1, self._parameter(node, is_divisor=at > 0 and nodes[at - 1].is_sign("/"))
        if is_from and node.is_sign(","):
            # In Postgres a comma joins later than JOIN: a condition would not see the tables before it.
            return 1, "CROSS JOIN"
        if node.is_word("CROSS") and (join := self._by_rows(nodes, at)) is not None:
            return join
        if node.is_sign("+") and is_unary(nodes, at) and isinstance(after, SqlToken) and after.kind == "word":
            # In SQLite it keeps a column from being looked up in an index.
            return 1, ""
        if node.kind != "word":
            return 1, node.text
        if node.is_word("IS"):
            return is_distinct(nodes, at)
        if node.is_word("LIMIT") and after.is_sign("-"):
            return 3, "LIMIT ALL"
        if node.is_word("INDEXED") and after.is_word("BY"):
            return 3, ""
        if (node.is_word("NOT") and after.is_word("INDEXED")) or (
            node.is_word("WITHOUT") and after.is_word("ROWID")
        ):
            return 2, ""
        if node.is_word("CROSS") and after.is_word("JOIN") and has_on(nodes[at + 2 :]):
            # In SQLite it says which table comes first.
            return 1, ""
        if node.is_word("SQLITE_MASTER"):
            return 1, _SQLITE_MASTER
        call = self._call(node.text, after) if isinstance(after, Group) else None
        return (1, node.text) if call is None else (2, call)

    def _parameter(self, token: SqlToken, *, is_divisor: bool) -> str:
        number = int(token.text[1:] or self._parameters + 1)
        self._parameters = max(self._parameters, number)
        # SQLite and D1 bind every number as a double.
        return f"CAST(${number} AS double precision)" if is_divisor else f"${number}"

    def _group(self, nodes: Sequence[Node], at: int, *, is_from: bool) -> str:
        group = nodes[at]
        assert isinstance(group, Group)
        written = f"({self.write(group.nodes)})"
        before = nodes[at - 1] if at > 0 else None
        is_table = before is not None and (
            before.is_word("FROM", "JOIN") or (is_from and before.is_sign(","))
        )
        if not (is_table and group.is_query) or has_alias(nodes[at + 1 :]):
            return written
        self._unnamed += 1
        return f"{written} AS unnamed_{self._unnamed}"

    def _by_rows(self, nodes: Sequence[Node], at: int) -> tuple[int, str] | None:
        """A join of the rows that a subquery finds for each row before it: SQLite looks them up by their
        `rowid`, and Postgres would go through the whole table for it. None for other joins."""
        found = join_by_rowid(nodes, at)
        if found is None:
            return None
        taken, name, rows = found
        return taken, f"CROSS JOIN LATERAL ({self.write(rows)}) AS {name}"

    def _call(self, name: str, group: Group) -> str | None:
        """A call of a function that Postgres lacks or has otherwise; None for others."""
        arguments = group.arguments
        match name.upper(), len(arguments):
            case "CAST", 1:
                return self._cast(arguments[0])
            case "LENGTH", 1 if (text := bytes_of(arguments[0])) is not None:
                # It need not read the text.
                return f"octet_length({self._text(text)})"
            case (("MAX" | "MIN"), 2 | 3 | 4):
                return f"{SCHEMA}.{name.lower()}({self._listed(arguments)})"
            case "SUBSTR", 2 | 3:
                first, *places = map(self.write, arguments)
                return f"substr({', '.join([first, *(f'CAST({place} AS integer)' for place in places)])})"
            case "JSON_EACH", 1:
                return f"{SCHEMA}.json_each({self.write(arguments[0])})"
            case "JSON_EACH", 2:
                return f"{SCHEMA}.json_each({self._extract(*arguments)})"
            case "JSON_EXTRACT", 2:
                return self._extract(*arguments)
            case "JSON", 1:
                # Parsed: its fields are read from it.
                return self._parsed(arguments[0])
            case "JSON_ARRAY", _:
                return f"array_to_json(ARRAY[{self._listed(arguments, as_json=True)}]::json[])"
            case "JSON_OBJECT", _:
                return f"{SCHEMA}.json_object(ARRAY[{self._listed(arguments, as_json=True)}]::json[])"
            case (("JSON_SET" | "JSON_INSERT"), 3):
                document, path, value = arguments
                return (
                    f"{SCHEMA}.{name.lower()}({self._text(document)}, {self._text(path)},"
                    f" {self._listed([value], as_json=True)})"
                )
            case "JSON_PATCH", 2:
                return f"{SCHEMA}.json_patch({self._text(arguments[0])}, {self._text(arguments[1])})"
            case "GROUP_CONCAT", 2:
                return f"string_agg({self._text(arguments[0])}, {self.write(arguments[1])})"
            case other, _ if other in _RENAMED:
                return f"{_RENAMED[other]}({self.write(group.nodes)})"
        return None

    def _listed(self, arguments: Sequence[Sequence[Node]], *, as_json: bool = False) -> str:
        if not as_json:
            return ", ".join(map(self.write, arguments))
        return ", ".join(map(self._as_json, arguments))

    def _as_json(self, argument: Sequence[Node]) -> str:
        match argument:
            case [SqlToken() as json, Group(nodes=document)] if json.is_word("JSON"):
                return f"CAST({self.write(document)} AS json)"
        return f"{SCHEMA}.as_json({self.write(argument)})"

    def _text(self, argument: Sequence[Node]) -> str:
        return f"CAST({self.write(argument)} AS text)"

    def _cast(self, argument: Sequence[Node]) -> str:
        *value, _, kind = argument
        written = self.write(value)
        if kind.is_word("INTEGER"):
            return f"{SCHEMA}.whole({written})"
        if kind.is_word("BLOB"):
            return f"convert_to(CAST({written} AS text), 'UTF8')"
        return f"CAST({written} AS {'double precision' if kind.is_word('REAL') else self.write([kind])})"

    def _extract(self, document: Sequence[Node], path: Sequence[Node]) -> str:
        """A field of a JSON text, as text; NULL where it is null or not there."""
        keys = keys_of(path)
        if keys is None:
            return f"{SCHEMA}.json_extract({self._text(document)}, {self._text(path)})"
        found = self._parsed(document)
        return f"({found} ->> {keys[0]})" if len(keys) == 1 else f"({found} #>> {path_of(keys)})"

    def _parsed(self, document: Sequence[Node]) -> str:
        """A JSON text as jsonb: that of json_each is there, so that a row is parsed once and not for each
        of its fields."""
        match document:
            case [SqlToken(text=name), SqlToken(text="."), SqlToken(text="value")] if name in self._from_json:
                return f"{name}.parsed"
            case [SqlToken(text="value")] if self._from_json:
                return "parsed"
        return f"CAST({self.write(document)} AS jsonb)"

    def _table(self, nodes: Sequence[Node]) -> list[Node]:
        """CREATE TABLE with the types of Postgres."""
        [place] = [n for n, node in enumerate(nodes) if isinstance(node, Group)][:1] or [-1]
        if place < 1:
            return list(nodes)
        group, name, comma = nodes[place], nodes[place - 1], SqlToken(",", "sign")
        assert isinstance(group, Group)
        columns: list[Node] = []
        for part in split(group.nodes):
            columns += [*([comma] if columns else []), *typed(part)]
        if isinstance(name, SqlToken) and name.text in ROWID_TABLES:
            rowid = "rowid bigint GENERATED BY DEFAULT AS IDENTITY UNIQUE"
            columns += [comma, SqlToken(rowid, "written")]
        table = [*nodes[:place], Group(columns), *nodes[place + 1 :]]
        if isinstance(name, SqlToken) and name.text in FILLED:
            table.append(SqlToken(f"WITH (fillfactor = {FILLED[name.text]})", "written"))
        return table


# Paths in JSON, which SQLite writes as `'$.name'` and `'$[0].name'`, for Postgres.

_STEP = re.compile(r"""\.(?P<name>\w+)|\."(?P<quoted>[^"']+)"|\[(?P<index>\d+)\]""")


def keys_of(path: Sequence[Node]) -> list[str] | None:
    """The steps of a path that is a literal, as literals of Postgres: `'name'` and `0`; None for others."""
    if len(path) != 1 or not isinstance(path[0], SqlToken) or path[0].kind != "string":
        return None
    text = path[0].text[1:-1]
    if not text.startswith("$"):
        return None
    keys, at = [], 1
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            return None
        keys.append(step["index"] or f"'{step['name'] or step['quoted']}'")
        at = step.end()
    return keys or None


def path_of(keys: Sequence[str]) -> str:
    """Several steps as one path."""
    return "ARRAY[" + ", ".join(key if key.startswith("'") else f"'{key}'" for key in keys) + "]"


# Patterns of tokens: around a word, in a column's definition, of a join.

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
        if isinstance(node, SqlToken) and node.text.upper() in _COLUMN_TYPES:
            written[place] = SqlToken(_COLUMN_TYPES[node.text.upper()], "written")
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
                names.add(alias.text if isinstance(alias, SqlToken) else "json_each")
    return frozenset(names)


def has_alias(behind: Sequence[Node]) -> bool:
    first = behind[0] if behind else None
    return (
        isinstance(first, SqlToken) and first.kind in ("word", "name") and first.text.upper() not in _NO_ALIAS
    )


def has_on(nodes: Sequence[Node]) -> bool:
    """True if a join's table is followed by its condition."""
    for node in nodes:
        if node.is_word("ON"):
            return True
        if node.is_sign(",") or (isinstance(node, SqlToken) and node.text.upper() in _NO_ALIAS):
            return False
    return False


def is_unary(nodes: Sequence[Node], at: int) -> bool:
    if at == 0:
        return True
    before = nodes[at - 1]
    return isinstance(before, SqlToken) and (
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
        case [
            on,
            SqlToken(text=of),
            SqlToken(text="."),
            SqlToken(text="rowid"),
            within,
            Group(nodes=rows),
        ] if on.is_word("ON") and within.is_word("IN") and isinstance(name, SqlToken) and of == name.text:
            every = SqlToken("*", "sign")
            match rows:
                case [select, SqlToken(text="rowid"), *behind]:
                    return place + 6 - at, of, [select, every, *behind]
                case [
                    select,
                    SqlToken() as owner,
                    SqlToken(text=".") as dot,
                    SqlToken(text="rowid"),
                    *behind,
                ]:
                    return place + 6 - at, of, [select, owner, dot, every, *behind]
    return None


def bytes_of(argument: Sequence[Node]) -> Sequence[Node] | None:
    """The text of `CAST(text AS BLOB)`; None for anything else."""
    match argument:
        case [SqlToken() as cast, Group(nodes=[*text, _, SqlToken() as kind])] if cast.is_word(
            "CAST"
        ) and kind.is_word("BLOB"):
            return text
    return None
