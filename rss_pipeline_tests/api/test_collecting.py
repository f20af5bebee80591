"""Hindrances of visits: said alike by the pages and the JSON API, and by `doctor` in its words."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from rss_pipeline import errors
from rss_pipeline.pipeline.hindrances import POLLING, SENTENCES
from rss_pipeline.reader.collecting import LOOK_SECONDS, MISSING_SECONDS, Collecting
from rss_pipeline.storage.installation import forget_poll_trouble, note_poll_trouble
from rss_pipeline.web import healthz
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.storage.values import NOW, register, spec
from rss_pipeline_tests.support.reader import Reader


def switch_off(dagster_home: Path, *names: str) -> None:
    """Stop these sensors, as Dagster's tables have it."""
    file = dagster_home / "schedules/schedules.db"
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as tables:
        tables.execute("CREATE TABLE instigators (status TEXT, instigator_body TEXT)")
        for name in names:
            body = json.dumps({"origin": {"job_name": name}})
            tables.execute("INSERT INTO instigators VALUES ('STOPPED', ?)", [body])
        tables.commit()


def test_pages_promise_no_visit_that_does_not_come_and_say_why(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = reader.user("ann")
    register(reader.database, spec("a"), now=NOW)
    subscribe(reader.database, user.id, "a")
    pages = browser(reader, user)

    def said() -> tuple[list[str], str]:
        object.__setattr__(reader.stores, "collecting", Collecting(reader.settings))
        found = user.client.get("/api/collecting").json()["hindrances"]
        page = pages.get("/unread").text
        for each in found:
            assert each["text"] in page.replace("&#39;", "'")
            assert ("Since" in page) is (each["since"] is not None)
        return [each["kind"] for each in found], page

    assert said()[0] == []
    assert "which takes a minute or two" in said()[1]
    note_poll_trouble(reader.database, "offline", now=NOW)
    kinds, page = said()
    assert kinds == ["offline"]
    assert "minute or two" not in page
    note_poll_trouble(reader.database, "objects", now=NOW)
    assert said()[0] == ["objects"]
    reader.database.batch([forget_poll_trouble()])
    switch_off(reader.settings.dagster_home, POLLING)
    assert said()[0] == ["polls_off"]
    (reader.settings.dagster_home / "schedules/schedules.db").write_bytes(b"damaged")
    assert said()[0] == []
    folder = reader.settings.objects_path
    folder.rename(folder.with_name("elsewhere"))
    folder.write_bytes(b"")
    assert said()[0] == ["objects"]
    folder.unlink()
    monkeypatch.setattr(errors, "ROOM_OF_A_RUN", 10**18)
    assert said()[0] == ["disk_full"]


def test_the_machine_is_looked_at_once_in_some_seconds(reader: Reader) -> None:
    at = 100.0
    looks = Collecting(reader.settings, seconds=lambda: at)
    assert looks.hindrances(None) == []
    switch_off(reader.settings.dagster_home, POLLING)
    at += LOOK_SECONDS
    assert looks.hindrances(None) == []
    at += 1
    assert looks.is_stale
    assert [each.text for each in looks.hindrances(None)] == [SENTENCES["polls_off"]]


def test_what_is_missing_of_up_is_said_when_it_is_away_for_long(reader: Reader) -> None:
    now = time.monotonic()
    looks = Collecting(reader.settings)
    before = bytes(healthz._NOTED)
    try:
        healthz.note([], now=now - 300)
        healthz.note(["Dagster's daemon"], now=now - MISSING_SECONDS + 20)
        healthz.note(["Dagster's webserver"], now=now)
        assert looks.hindrances(None) == [], "it is started again"
        healthz.note([], now=now - 300)
        healthz.note(["Dagster's daemon"], now=now - MISSING_SECONDS - 1)
        healthz.note(["Dagster's daemon"], now=now)
        assert [each.kind for each in looks.hindrances(None)] == ["not_running"]
    finally:
        healthz._NOTED[:] = before
