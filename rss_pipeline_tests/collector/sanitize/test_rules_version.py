"""The version by which sanitized HTML is kept."""

from importlib import metadata
from pathlib import Path

import pytest

from rss_pipeline.collector.parse.parser_version import code_version, parser_version
from rss_pipeline.collector.sanitize.rules_version import rules_version


def test_the_version_of_the_rules_is_short_and_its_own() -> None:
    assert rules_version() == rules_version.__wrapped__()
    assert len(rules_version()) == 12
    assert rules_version() != parser_version()


def test_a_version_changes_with_the_code_and_with_the_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rules.py"
    file.write_text("a = 1", "utf-8")
    before = code_version([file], libraries=["nh3"])
    assert code_version([file], libraries=["nh3"]) == before
    file.write_text("a = 2", "utf-8")
    after = code_version([file], libraries=["nh3"])
    assert after != before
    monkeypatch.setattr(metadata, "version", lambda _: "99.0")
    assert code_version([file], libraries=["nh3"]) != after


def test_every_module_that_sanitizing_imports_of_the_collector_counts() -> None:
    """Else HTML that was kept would stay as an older rule made it."""
    import rss_pipeline.collector.sanitize as sanitize
    from rss_pipeline.collector.sanitize import rules_version as rules

    folder = Path(sanitize.__file__).parent
    known = {"sanitize", "images", "models"}
    counted = {"parse.parser_version"} | {f"parse.{Path(name).stem}" for name in rules._OF_PARSERS}
    for path in (*folder.glob("*.py"), *(folder.parent / "images").glob("*.py")):
        for line in path.read_text("utf-8").splitlines():
            if line.startswith("from rss_pipeline.collector."):
                module = line.split()[1].removeprefix("rss_pipeline.collector.")
                assert module.split(".")[0] in known or module in counted
