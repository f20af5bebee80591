"""The first user and the settings, clicked in Chromium: with scripts and without, wide and on a phone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from rss_pipeline_tests.storage.subscriptions.readers import arrive
from rss_pipeline_tests.storage.values import register, spec
from rss_pipeline_tests.support.clients.chromium import CHROMIUM, watched
from rss_pipeline_tests.support.installed import INSTALLED
from rss_pipeline_tests.support.reader import Reader, reader_settings, served
from rss_pipeline_tests.support.up import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

PASSWORD, ANOTHER = "correct horse", "another horse"
PHONE = {"viewport": {"width": 390, "height": 844}, "java_script_enabled": False}
OPML = """<opml version="2.0"><body>
<outline text="One" xmlUrl="{}"/>
</body></opml>"""


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Reader]:
    """A reader that no one has opened yet, with two feeds of feeds.yaml."""
    port = free_port()
    with Reader.on(reader_settings(tmp_path / "home", reader_port=port)) as reader:
        register(reader.database, spec("one"), spec("two"))
        arrive(reader.database, "one", "1", "2")
        with served(reader.app, port=port):
            yield reader


@contextmanager
def opened(browser: Browser, reader: Reader, **options: Any) -> Iterator[Page]:
    """A page of a browser that has no cookie yet; it requests nothing else, and no script of it fails."""
    url = f"http://127.0.0.1:{reader.settings.reader_port}"
    with watched(browser, base_url=url, **options) as found:
        yield found.page()
        assert (found.elsewhere, found.errors) == ([], [])


def begin(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password", exact=False).first.fill(PASSWORD)
    page.get_by_label("Password again").fill(PASSWORD)
    page.get_by_role("button", name="Start reading").click()
    expect(page).to_have_url("/unread")


def is_no_wider_than_its_window(page: Page) -> bool:
    body = page.locator("main").bounding_box()
    assert body is not None
    assert page.viewport_size is not None
    return body["x"] + body["width"] <= page.viewport_size["width"]


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone without scripts"])
def test_a_new_reader_makes_the_user_reads_and_sets_it_up(
    browser: Browser, door: Reader, tmp_path: Path, options: dict[str, Any]
) -> None:
    with opened(browser, door, **options) as page:
        begin(page)
        expect(page.locator("#entries .entry")).to_have_count(2)
        page.goto("/settings")
        page.get_by_label("Colours").select_option("dark")
        page.get_by_label("An entry that is opened is read").uncheck()
        page.get_by_role("button", name="Save").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        expect(page.get_by_label("An entry that is opened is read")).not_to_be_checked()
        assert is_no_wider_than_its_window(page)

        page.goto("/settings/apps")
        page.get_by_label("Name of the app").fill("phone")
        page.get_by_label("The password of your account, again").fill(PASSWORD)
        page.get_by_role("button", name="Make a password").click()
        expect(page.get_by_role("heading", name="The password for")).to_be_visible()
        assert is_no_wider_than_its_window(page)
        page.get_by_role("button", name="Revoke the password for phone").click()
        expect(page.get_by_text("The app password is revoked.")).to_be_visible()
        if "opml" in INSTALLED:
            brings_a_list_and_takes_it_away(page, tmp_path)


def brings_a_list_and_takes_it_away(page: Page, folder: Path) -> None:
    page.goto("/settings/opml")
    wrong, right = folder / "wrong.opml", folder / "right.opml"
    wrong.write_text(OPML.format("gopher://a.example/"), "utf-8")
    right.write_text(OPML.format("https://new.example/feed"), "utf-8")
    page.get_by_label("File").set_input_files(wrong)
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("heading", name="the list has 1 mistake")).to_be_visible()
    assert is_no_wider_than_its_window(page)
    page.get_by_label("File").set_input_files(right)
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_text("1 feed added, 0 already subscribed to.")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Export").click()
    assert Path(download.value.path()).read_text("utf-8").count("xmlUrl") == 3


def test_another_password_logs_the_other_browser_out(browser: Browser, door: Reader) -> None:
    with opened(browser, door) as here, opened(browser, door, **PHONE) as there:
        begin(here)
        there.goto("/settings/sessions")
        expect(there).to_have_url("/login?next=/settings/sessions")
        there.get_by_label("Name").fill("ada")
        there.get_by_label("Password").fill(PASSWORD)
        there.get_by_role("button", name="Log in").click()
        expect(there).to_have_url("/settings/sessions")
        expect(there.get_by_role("button", name="End the session")).to_have_count(2)
        here.goto("/settings/sessions")
        here.get_by_label("Current password").fill(PASSWORD)
        here.get_by_label("New password").fill(ANOTHER)
        here.get_by_label("The new one again").fill(ANOTHER)
        here.get_by_role("button", name="Change the password").click()
        expect(here.get_by_text("The password is changed")).to_be_visible()
        there.reload()
        expect(there).to_have_url("/login?next=/settings/sessions")
