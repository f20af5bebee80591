"""The manifests of deploy/kubernetes/: what they promise, as far as it can be read without a cluster.

They were held against Kubernetes' own schemas once; nothing of it is installed here.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from dotenv import dotenv_values
from starlette.routing import Route

from rss_pipeline.api.app import ROUTERS
from rss_pipeline.features.fleet.worker import STOP_SECONDS
from rss_pipeline.settings import Settings
from rss_pipeline_tests.support.shown import check_program

FOLDER = Path(__file__).parents[3] / "deploy" / "kubernetes"


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text("utf-8")))


KUSTOMIZATION: dict[str, Any] = documents("kustomization.yaml")[0]
OBJECTS = [found for name in KUSTOMIZATION["resources"] for found in documents(name)]
PODS: dict[str, dict[str, Any]] = {
    found["metadata"]["name"]: found["spec"]["template"]["spec"]
    for found in OBJECTS
    if found["kind"] == "Deployment"
}
CONTAINERS = {
    f"{pod}/{container['name']}": (spec, container)
    for pod, spec in PODS.items()
    for container in [*spec.get("initContainers", ()), *spec["containers"]]
}
SETTINGS = {name: value or "" for name, value in dotenv_values(FOLDER / "settings.env").items()}
SECRETS = {
    "DATABASE_URL": "postgresql://rss:secret@postgres.example:5432/rss",
    "RSS_BROKER_URL": "redis://:secret@redis.example:6379/0",
    "S3_ACCESS_KEY_ID": "key",
    "S3_SECRET_ACCESS_KEY": "secret",
    "RSS_READER_SECRET": "s" * 48,
}
"""The variables that the page puts into the secret."""


def environment(container: dict[str, Any]) -> dict[str, str]:
    own = {each["name"]: each["value"] for each in container.get("env", ())}
    return {**SETTINGS, **SECRETS, **own}


def settings_of(name: str) -> Settings:
    return Settings.from_environ(environment(CONTAINERS[name][1]), cwd=Path("/"))


def test_the_page_names_what_is_secret_and_no_file_has_it() -> None:
    page = (FOLDER.parents[1] / "docs" / "fleet.md").read_text("utf-8")
    [sentence] = re.findall(r"^`secrets\.env` has (.*?) and\n", page, flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"`(\w+)`", sentence) == list(SECRETS)
    assert not {*SECRETS} & {*SETTINGS}


def test_every_file_is_used() -> None:
    used = {*KUSTOMIZATION["resources"], "kustomization.yaml"}
    for generated in KUSTOMIZATION["configMapGenerator"]:
        used |= {*generated.get("envs", ()), *generated.get("files", ())}
    assert used == {path.name for path in FOLDER.iterdir()}


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_has_a_command_and_settings_that_exist(name: str) -> None:
    _, container = CONTAINERS[name]
    check_program(container["args"], environment(container))
    assert container["image"] in [image["name"] for image in KUSTOMIZATION["images"]]
    named = [next(iter(source.values()))["name"] for source in container["envFrom"]]
    assert named == ["rss-settings", "rss-secrets"]


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_has_no_rights_and_writes_into_volumes_only(name: str) -> None:
    pod, container = CONTAINERS[name]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    # The user of the image.
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["fsGroup"]) == (10001, 10001)
    assert {mount["name"] for mount in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    settings = settings_of(name)
    mounted = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    assert mounted[str(settings.home.parent)] is False
    assert mounted[str(settings.feeds_file.parent)] is True


@pytest.mark.parametrize("pod", PODS)
def test_no_variable_of_a_service_becomes_a_setting(pod: str) -> None:
    """A Service `rss-reader` would set RSS_READER_PORT to tcp://10.0.0.1:3001."""
    assert PODS[pod]["enableServiceLinks"] is False
    assert PODS[pod]["automountServiceAccountToken"] is False


def test_the_ui_is_reached_from_its_own_pod_only() -> None:
    settings = settings_of("rss-main/main")
    assert settings.ui_address == "127.0.0.1"
    [service] = [found["spec"] for found in OBJECTS if found["kind"] == "Service"]
    [port] = service["ports"]
    [named] = PODS["rss-main"]["containers"][0]["ports"]
    assert (port["port"], port["targetPort"], named["containerPort"]) == (
        3001,
        "reader",
        settings.reader_port,
    )


def test_the_reader_is_requested_by_a_name_and_an_address_that_it_has() -> None:
    main = PODS["rss-main"]["containers"][0]
    settings = settings_of("rss-main/main")
    for probe in ("readinessProbe", "startupProbe"):
        asked = main[probe]["httpGet"]
        assert asked["httpHeaders"] == [{"name": "Host", "value": f"127.0.0.1:{settings.reader_port}"}]
        routes = [route for router in ROUTERS for route in router.routes if isinstance(route, Route)]
        assert asked["path"] in [route.path for route in routes]
    assert f"127.0.0.1:{settings.port}/" in main["livenessProbe"]["exec"]["command"][-1]


def test_there_is_one_main_machine_and_any_number_of_workers() -> None:
    main, worker = (found for found in OBJECTS if found["kind"] == "Deployment")
    assert (main["spec"]["replicas"], main["spec"]["strategy"]) == (1, {"type": "Recreate"})
    assert environment(CONTAINERS["rss-main/main"][1])["RSS_WORKER_NAME"] == "main"
    # Each has the name of its pod.
    assert "RSS_WORKER_NAME" not in environment(CONTAINERS["rss-worker/worker"][1])
    for name in CONTAINERS:
        settings = settings_of(name)
        assert settings.runs_elsewhere is not None, name
        assert settings.objects_server is not None, "each pod would have objects of its own"
    assert worker["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > STOP_SECONDS
    [budget] = [found["spec"] for found in OBJECTS if found["kind"] == "PodDisruptionBudget"]
    assert budget["selector"] == worker["spec"]["selector"]
