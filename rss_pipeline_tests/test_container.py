"""Dockerfile and compose.yaml: what they promise, as far as it can be read without Docker.

hadolint checks the Dockerfile in `make lint`. Nothing is built here.
"""

import shlex
from pathlib import Path
from typing import Any

import yaml

from rss_pipeline.settings import Settings

ROOT = Path(__file__).parents[1]


def instructions() -> list[tuple[str, str]]:
    """Instruction and arguments, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def of(name: str) -> list[str]:
    return [arguments for instruction, arguments in instructions() if instruction == name]


def service() -> dict[str, Any]:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    [found] = compose["services"].values()
    assert set(compose["volumes"]) == {volume.partition(":")[0] for volume in found["volumes"]}
    result: dict[str, Any] = found
    return result


def environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for line in of("ENV") for pair in shlex.split(line))


def test_the_program_runs_without_rights_and_doctor_is_its_health_check() -> None:
    assert of("USER") == ["10001:10001"]
    assert '["rss-pipeline", "doctor"]' in of("HEALTHCHECK")[0]
    assert (of("ENTRYPOINT"), of("CMD")) == (['["rss-pipeline"]'], ['["up"]'])
    names = [name for name, _ in instructions()]
    assert names.index("USER") > max(n for n, name in enumerate(names) if name in ("RUN", "COPY"))
    assert service()["cap_drop"] == ["ALL"]


def test_the_ui_and_the_reader_are_published_to_this_machine_only() -> None:
    assert service()["ports"] == ["127.0.0.1:3000:3000", "127.0.0.1:3001:3001"]
    settings = Settings.from_environ(service()["environment"], cwd=Path("/data"))
    assert (settings.ui_address, settings.port) == ("0.0.0.0", 3000)
    assert (settings.reader_address, settings.reader_port) == ("0.0.0.0", 3001)


def test_everything_that_is_kept_is_in_the_volume() -> None:
    [volume] = service()["volumes"]
    folder = Path(volume.partition(":")[2])
    for environ in (environment(), service()["environment"]):
        settings = Settings.from_environ(environ, cwd=folder)
        assert settings.unknown == ()
        assert settings.home.is_relative_to(folder)
        assert settings.feeds_file.is_relative_to(folder)
    assert of("VOLUME") == [str(folder)]


def test_what_is_copied_is_there_and_reaches_docker_and_nothing_else_does() -> None:
    copied = {
        source
        for arguments in of("COPY")
        if "--from" not in arguments
        for source in [word for word in arguments.split() if not word.startswith("--")][:-1]
    }
    assert all((ROOT / source).exists() for source in copied)
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert "*" in ignored
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    assert let_in == copied | {"Dockerfile"}
