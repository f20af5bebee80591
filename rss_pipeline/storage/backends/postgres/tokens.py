"""SQL as a tree of its tokens: words, strings, numbers, parameters, signs, and what is in parentheses.

Blanks and comments are gone. What Postgres reads otherwise than SQLite is dialect.py's.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

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
class Token:
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


Node = Token | Group


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


def _tokens(sql: str) -> Iterator[Token]:
    at = 0
    while at < len(sql):
        match = _TOKEN.match(sql, at)
        if match is None or match.lastgroup is None:
            raise ValueError(f"no SQL of ours: {sql[at : at + 20]!r}")
        if match.lastgroup != "blank":
            yield Token(match[0], match.lastgroup)
        at = match.end()
