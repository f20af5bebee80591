"""Dockerfile and compose.yaml: what they promise, as far as it can be read without Docker.

hadolint checks the Dockerfile in `make lint`. Nothing is built here. The tests of a fleet have those
of the manifests of Kubernetes.
"""

import re
import shlex
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from dotenv import dotenv_values

from rss_pipeline.settings import Settings
from rss_pipeline_tests.support.shown import check_program

ROOT = Path(__file__).parents[1]


def instructions() -> list[tuple[str, str]]:
    """Instruction and arguments, continued lines joined."""
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def of(name: str) -> list[str]:
    return [arguments for instruction, arguments in instructions() if instruction == name]


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    return loaded


SERVICES: dict[str, dict[str, Any]] = compose()["services"]
PROGRAMS = [name for name, service in SERVICES.items() if "build" in service]


def service() -> dict[str, Any]:
    """The one that is started without a profile."""
    [found] = [service for service in SERVICES.values() if "profiles" not in service]
    return found


def interpolated(text: str, environ: Mapping[str, str]) -> str:
    """As Compose does it, for the forms that the file has."""

    def value(found: re.Match[str]) -> str:
        name, form, word = found.groups()
        if form == ":+":
            return str(word) if environ.get(name) else ""
        return environ.get(name) or word

    return re.sub(r"(?<!\$)\$\{(\w+)(:[+-])([^}$]*)\}", value, text)


def of_fleet() -> dict[str, str]:
    """The .env that docs/fleet.md shows."""
    page = (ROOT / "docs" / "fleet.md").read_text("utf-8")
    [shown] = re.findall(r"```ini\n# \.env\n(COMPOSE_PROFILES=.*?)```", page, flags=re.DOTALL)
    return {name: value or "" for name, value in dotenv_values(stream=StringIO(shown)).items()}


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


def test_each_volume_is_of_a_service() -> None:
    used = {
        volume.partition(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())
    }
    assert set(compose()["volumes"]) == used


def test_without_a_profile_there_is_one_machine_as_ever() -> None:
    assert service() is SERVICES["rss"]
    assert interpolated(service()["command"], {}).split() == ["up"]
    assert all(not need["required"] for need in service()["depends_on"].values())
    others = [SERVICES[name]["profiles"] for name in SERVICES if name != "rss"]
    assert others == [["fleet"]] * len(others)


def test_the_env_that_the_page_shows_makes_it_a_fleet() -> None:
    pytest.importorskip("rss_pipeline.features.fleet")
    environ = of_fleet()
    assert environ["COMPOSE_PROFILES"] == "fleet"
    assert interpolated(service()["command"], environ).split() == ["up", "--fleet"]
    for name in PROGRAMS:
        settings = Settings.from_environ({**environ, **SERVICES[name]["environment"]}, cwd=Path("/data"))
        assert settings.runs_elsewhere is not None
        servers = [urlsplit(environ[name]) for name in ("DATABASE_URL", "RSS_BROKER_URL")]
        assert [server.hostname for server in servers] == ["postgres", "redis"]
        passwords = [environ["POSTGRES_PASSWORD"], environ["REDIS_PASSWORD"]]
        assert [server.password for server in servers] == passwords
        postgres = SERVICES["postgres"]["environment"]
        assert (servers[0].username, servers[0].path) == (
            postgres["POSTGRES_USER"],
            f"/{postgres['POSTGRES_DB']}",
        )


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_service_of_ours_has_a_command_and_settings_that_exist(name: str) -> None:
    check_program(interpolated(SERVICES[name]["command"], of_fleet()).split(), SERVICES[name]["environment"])


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_no_rights_and_no_password_in_the_file(name: str) -> None:
    found = SERVICES[name]
    assert (found["read_only"], found["cap_drop"]) == (True, ["ALL"])
    assert found["security_opt"] == ["no-new-privileges:true"]
    assert "user" in found or "build" in found
    secrets = [found.get("environment", {}).get(key) for key in ("POSTGRES_PASSWORD", "REDISCLI_AUTH")]
    assert all(value is None or re.fullmatch(r"\$\{\w+:-\}", value) for value in secrets)
    assert all(port.startswith("127.0.0.1:") for port in found.get("ports", ()))


def test_workers_are_named_apart_and_share_the_objects_of_the_main_machine() -> None:
    worker = SERVICES["worker"]
    assert (SERVICES["rss"]["environment"]["RSS_WORKER_NAME"], worker["environment"]["RSS_WORKER_NAME"]) == (
        "main",
        "",
    )
    [volume] = worker["volumes"]
    name, _, at = volume.partition(":")
    assert f"{name}:/data" in SERVICES["rss"]["volumes"]
    theirs = Settings.from_environ(worker["environment"], cwd=Path("/data"))
    ours = Settings.from_environ(service()["environment"], cwd=Path("/data"))
    shared = at / ours.objects_path.relative_to("/data")
    assert f"ln -sfn {shared} {theirs.objects_path} " in worker["entrypoint"][2]
    assert theirs.feeds_file == at / ours.feeds_file.relative_to("/data")


def test_a_worker_has_time_to_release_its_claims() -> None:
    worker = pytest.importorskip("rss_pipeline.features.fleet.worker")
    assert float(SERVICES["worker"]["stop_grace_period"].removesuffix("s")) > worker.STOP_SECONDS
