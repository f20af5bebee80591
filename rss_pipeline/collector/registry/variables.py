"""Variables (`${VAR}`) in a text of feeds.yaml, and the form in which a message may show the text.

No YAML here, and no knowledge of the key that the text belongs to.
"""

import re
from collections.abc import Callable, Mapping

_VARIABLE = re.compile(r"\$(\$?)\{([^{}]*)(\}?)")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def expand(text: str, environ: Mapping[str, str], literal: Callable[[str], str] = str) -> str:
    """`text` with each `${NAME}` replaced by its value; `$${` gives `${`.

    `literal` is applied to the text between the variables, not to their values. Raises ValueError with a
    message that names each missing variable and never shows a value.
    """
    if "${" not in text:
        return literal(text)
    parts: list[str] = []
    problems: list[str] = []
    end = 0
    for match in _VARIABLE.finditer(text):
        parts.append(literal(text[end : match.start()]))
        end = match.end()
        escaped, name, closed = match.groups()
        if escaped:
            parts.append(literal(match[0][1:]))
        elif not closed or not _VARIABLE_NAME.fullmatch(name):
            problems.append(
                '"${" is not followed by a variable; write ${NAME} with letters, digits and _, or $${'
            )
        elif name not in environ:
            problems.append(f"the environment variable {name} is not set; set it (in .env, for instance)")
        elif not environ[name]:
            problems.append(f"the environment variable {name} is empty; give it a value")
        else:
            parts.append(environ[name])
    if problems:
        raise ValueError("; ".join(dict.fromkeys(problems)))
    return "".join([*parts, literal(text[end:])])


def shown(text: str) -> str:
    """`text` for a message: quoted, shortened, and with `***` for a possible password before an `@`."""
    if "@" in text:
        scheme, slashes, rest = text.partition("//")
        head = scheme + slashes if slashes and "@" in rest else ""
        text = f"{head}***@{text.rpartition('@')[2]}"
    text = " ".join(text.split())
    return f'"{text[:77]}..."' if len(text) > 80 else f'"{text}"'
