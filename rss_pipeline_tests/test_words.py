"""The rules for words in docs/development.md that a program can check: docstrings, and what users read."""

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import click

from rss_pipeline.cli.main import main

ROOT = Path(__file__).parents[1]
ROOMS = ("rss_pipeline", "rss_pipeline_tests", "benchmarks", "examples")
NO_NOUN = re.compile(r"(What|Whether|Of|Who|Those|How|Where|When)\b")
HOME_MADE = re.compile(
    r"\b(asks?|asked|asking|tells?|told|telling|troubles?|mend(s|ed|ing)?|whose|nobody|at it|stands?|lies)\b",
    re.IGNORECASE,
)


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each string on its own: of modules, classes, functions, fields and constants."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {text[:60]}"
        for room in ("rss_pipeline", "rss_pipeline_tests")
        for path in sorted((ROOT / room).rglob("*.py"))
        for line, text in docstrings(path)
        if NO_NOUN.match(text)
    ] == []


def test_readme_and_the_reader_s_pages_have_the_field_s_words() -> None:
    pages = (ROOT / "rss_pipeline").rglob("*.html")
    assert [
        f"{path.relative_to(ROOT)}:{number}: {found[0]}"
        for path in sorted([ROOT / "README.md", *pages])
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if (found := HOME_MADE.search(line))
    ] == []


TEST = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
MODULE = re.compile(r"(?<![\w/.<*{])[a-z][a-z_0-9/]*\.py\b")


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings and comments."""
    yield from docstrings(path)
    with path.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def test_every_module_that_a_docstring_or_comment_names_exists() -> None:
    modules = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    known = {"/" + path.relative_to(ROOT).as_posix() for path in modules}
    assert [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted(modules)
        # Tokens of all modules would take ten seconds.
        if MODULE.search(path.read_text("utf-8"))
        for line, text in texts(path)
        for name in MODULE.findall(text)
        if not any(each.endswith("/" + name) for each in known)
    ] == []


def test_tests_have_the_field_s_words_in_docstrings_and_comments() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {found[0]}"
        for path in sorted((ROOT / "rss_pipeline_tests").rglob("*.py"))
        if HOME_MADE.search(path.read_text("utf-8"))
        for line, text in texts(path)
        if (found := HOME_MADE.search(text))
    ] == []


def test_names_of_tests_have_the_field_s_words() -> None:
    assert [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "rss_pipeline_tests").rglob("*.py"))
        for name in TEST.findall(path.read_text("utf-8"))
        if HOME_MADE.search(name.replace("_", " "))
    ] == []


def test_a_page_names_every_command() -> None:
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    commands = main.list_commands(click.Context(main))
    assert len(commands) >= 15
    assert [name for name in commands if not re.search(rf"^\|.*`{name}\b", page, re.MULTILINE)] == []
