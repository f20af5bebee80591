"""`rss-pipeline import` and `export-opml`: what they print, and their exit codes.

What they do with feeds.yaml is tested in pipeline/registry.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rss_pipeline.cli.main import main

OPML = '<opml version="2.0"><body><outline text="News">{}</outline></body></opml>'


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("RSS_")]:
        monkeypatch.delenv(name)

    def call(*arguments: str) -> Result:
        result = CliRunner().invoke(main, arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return call


def test_an_import_prints_what_became_of_the_feeds_and_an_export_gives_them_back(
    tmp_path: Path, invoke: Callable[..., Result]
) -> None:
    (tmp_path / "feeds.yaml").write_text("# mine\n- https://a.example/\n", "utf-8")
    outlines = "".join(f'<outline xmlUrl="https://{name}.example/" text="{name}"/>' for name in "abb")
    (tmp_path / "x.opml").write_text(OPML.format(outlines), "utf-8")
    said = invoke("import", "x.opml")
    assert said.exit_code == 0
    assert f"{tmp_path}/feeds.yaml: 1 feeds added, 1 were there already; 1 doubles merged." in said.stdout
    assert "The next poll visits them" in said.stdout
    assert json.loads(invoke("import", "x.opml", "--json").stdout) == {
        "added": 0,
        "already_listed": 2,
        "doubles": 1,
        "pages": [],
        "in_several_folders": [],
    }
    printed = invoke("export-opml").stdout
    assert '<outline type="rss" text="b" title="b" xmlUrl="https://b.example/" />' in printed
    assert invoke("export-opml", "out.opml").stdout == "out.opml: 2 feeds.\n"
    assert invoke("import", "out.opml").stdout.startswith(f"{tmp_path}/feeds.yaml: 0 feeds added, 2 were")
    refused = invoke("export-opml", "no/out.opml")
    assert (refused.exit_code, "no/out.opml cannot be written: No such file" in refused.stderr) == (1, True)


def test_each_mistake_of_a_file_is_a_line_and_nothing_is_added(
    tmp_path: Path, invoke: Callable[..., Result]
) -> None:
    (tmp_path / "x.opml").write_text(OPML.format('\n<outline type="rss"/>\n<outline xmlUrl="a:b"/>'), "utf-8")
    said = invoke("import", "x.opml")
    assert said.exit_code == 1
    lines = said.stderr.splitlines()
    assert lines[0] == "x.opml: 2 mistake(s); nothing was changed."
    assert [line.split(":")[0] for line in lines[1:]] == ["  line 2", "  line 3"]
    assert not (tmp_path / "feeds.yaml").exists()


def test_passwords_are_not_exported_and_that_is_said(tmp_path: Path, invoke: Callable[..., Result]) -> None:
    (tmp_path / "feeds.yaml").write_text("- https://me:hidden@a.example/\n", "utf-8")
    said = invoke("export-opml")
    assert "hidden" not in said.stdout
    assert "1 feeds need a password or headers, which OPML does not have." in said.stderr
