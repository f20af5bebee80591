"""A command and its environment as other programs' files have them (compose.yaml, manifests): is it ours?"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from rss_pipeline.cli.main import main

_TEMPLATE = Path(__file__).parents[2] / ".env.example"
"""It has all settings (test_docs.py)."""


def check_program(words: Sequence[str], environ: Mapping[str, str]) -> None:
    """Assert that `rss-pipeline` has this command with these options, and that each variable is a setting."""
    command = main.get_command(click.Context(main), words[0])
    assert command is not None, words
    command.make_context(words[0], list(words[1:]))
    assert (
        set(environ) - set(re.findall(r"^#([A-Z_0-9]+)=", _TEMPLATE.read_text("utf-8"), re.MULTILINE))
        == set()
    )
