"""The packages without which some parts do not work: those of the extras, and those that read articles.

What switches a part on is not here: a feature says it (`Feature.packages`).
"""

import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

from rss_pipeline.errors import ExtraMissing

_IMPORT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """Packages that are installed together, and the part of the project that needs them."""

    part: str
    """The beginning of a sentence."""
    packages: tuple[str, ...]
    """By the names under which they are imported."""
    install: str
    """The arguments of `pip install` that install them."""
    is_optional: bool = True
    """False for what an installation always has, if nothing went wrong."""
    imported: tuple[str, ...] = ()
    """The packages whose import `problem` tries; an error of the others shows where they are used."""

    @property
    def missing(self) -> str | None:
        """A clause on what is not installed; None where all is. Nothing is imported for it."""
        names = [name for name in self.packages if find_spec(name) is None]
        return f"{self.part} needs {' and '.join(names)}, not installed here" if names else None

    @property
    def problem(self) -> str | None:
        """As `missing`, and a clause on what cannot be imported. It may take a fifth of a second."""
        if (missing := self.missing) is not None or not self.imported:
            return missing
        try:
            _import(self.imported)
        except ImportError as error:
            return self._not_imported(str(error))
        return None

    def _not_imported(self, said: str) -> str:
        return f"{self.part} needs {' and '.join(self.packages)}, which cannot be imported here ({said})"

    @property
    def command(self) -> str:
        """The command that installs them, in the folder of rss_pipeline."""
        return f".venv/bin/pip install -c constraints.txt {self.install}"

    @property
    def fix(self) -> str:
        """The sentence on what to do."""
        return f"Run `{self.command}` in the folder of rss_pipeline."

    def not_imported(self, error: ImportError) -> str:
        """Two sentences on an import that failed: why, and what to do."""
        return f"{self.missing or self._not_imported(str(error))}. {self.fix}"

    def require(self) -> None:
        """Raise ExtraMissing, with what to do, where there is a `problem`."""
        if (problem := self.problem) is not None:
            raise ExtraMissing(f"{problem}. {self.fix}")


@cache
def _import(packages: tuple[str, ...]) -> None:
    """Import these in a process of its own, so that this one does not grow. Raise ImportError where that
    fails; once it did not, it is not tried again."""
    command = [sys.executable, "-P", "-c", f"import {', '.join(packages)}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_IMPORT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ImportError(str(error)) from error
    if done.returncode != 0:
        *_, said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise ImportError(said)


ARTICLES = Extra(
    part="Full text",
    packages=("trafilatura", "lxml_html_clean"),
    install="--force-reinstall trafilatura lxml_html_clean",
    is_optional=False,
    imported=("trafilatura",),
)
PARQUET = Extra(part="Parquet", packages=("pyarrow",), install="-e '.[parquet]'")
POSTGRES = Extra(part="Postgres", packages=("psycopg",), install="-e '.[postgres]'")
FLEET = Extra(
    part="A fleet",
    packages=("psycopg", "dagster_postgres", "celery", "redis"),
    install="-e '.[fleet]'",
)
EXTRAS = (ARTICLES, PARQUET, POSTGRES, FLEET)
