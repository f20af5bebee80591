"""The OpenAPI document is complete, and true: schemathesis sends what it allows and what it does not."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import booleans
from schemathesis.generation import GenerationMode

from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.api.test_strangers import LOGOUT, OPERATIONS, PUBLIC
from rss_pipeline_tests.storage.values import item, visit
from rss_pipeline_tests.support.installed import INSTALLED
from rss_pipeline_tests.support.reader import HOST, Reader, User, reader_settings

EVERY = {(each.method, each.path) for each in OPERATIONS} | PUBLIC | {LOGOUT}
LIST = "/api/import/opml"
"""Its body is XML: an outline without an address is a folder, which the schema cannot allow beside others."""
EXAMPLES = 3
"""Requests of each kind to each operation: some 130 in all. soak/test_schemathesis.py has the long form."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A reader behind a real server, and a user with feeds, items and a task."""

    reader: Reader
    user: User
    url: str
    schema: Any
    ids: dict[str, str]
    """The valid ids in a path, by the start of the path."""


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tried]:
    with Reader.on(reader_settings(tmp_path_factory.mktemp("home"))) as reader:
        user = ann(reader, a=3, b=1)
        content = "<p>Hi</p>" * 400
        visit(reader.database, [item("9", content_html=content, link="https://a.example/9")], id="a")
        items = user.client.get("/api/items").json()["items"]
        ids = {
            "/api/feeds/": "a",
            "/api/items/": items[0]["id"],
            "/api/tasks/": user.client.post("/api/feeds/a/refresh").json()["task_id"],
        }
        if "search" in INSTALLED:
            from rss_pipeline_tests.features.search.test_api import index

            index(reader)
        with reader.served() as client:
            schema = schemathesis.openapi.from_dict(reader.app.openapi())
            yield Tried(reader, user, str(client.base_url), schema, ids)


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(("method", "path"), sorted(EVERY))
def test_no_request_is_answered_other_than_the_document_says(
    tried: Tried, method: str, path: str, mode: GenerationMode
) -> None:
    operation = tried.schema[path][method]
    if mode is GenerationMode.NEGATIVE and (path == LIST or not (operation.body or operation.query)):
        return

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), has_known_id=booleans())
    def send(case: Any, has_known_id: bool) -> None:
        # A session of its own: some requests end it.
        headers = {"Authorization": f"Bearer {tried.reader.signed_in(tried.user.id).token}", "Host": HOST}
        known = [id for start, id in tried.ids.items() if path.startswith(start)]
        if has_known_id and known and "id" in case.path_parameters:
            case.path_parameters["id"] = known[0]
        case.call_and_validate(base_url=tried.url, headers=headers)

    send()
