"""The page of preferences: every preference has a control, and what is saved counts."""

import re

import pytest

from rss_pipeline.reader.accounts.preferences import Preferences
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.support.reader import Reader


def form_of(html: str) -> dict[str, str]:
    """The fields that a browser would send of the form of preferences."""
    form = html.partition('action="/settings"')[2].partition("</form>")[0]
    found = {}
    for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="(\w+)"', form):
        found[name] = value
    for name, value in re.findall(r'<input type="checkbox" name="(\w+)" value="(\w+)" checked', form):
        found[name] = value
    for name, value in re.findall(r'<input type="number" name="(\w+)" value="(\d+)"', form):
        found[name] = value
    for name, options in re.findall(r'<select name="(\w+)">(.*?)</select>', form, re.DOTALL):
        [found[name]] = re.findall(r'value="(\w+)" selected', options)
    return found


def test_every_preference_has_a_control_and_a_form_that_is_sent_as_it_came_changes_nothing(
    reader: Reader,
) -> None:
    ada = reader.user("ada")
    client = browser(reader, ada)
    fields = form_of(client.get("/settings").text)
    assert fields.keys() == Preferences.model_fields.keys()
    saved = client.post("/settings", data=fields)
    assert (saved.status_code, saved.headers["location"]) == (303, "/settings?saved=yes")
    assert "Saved." in client.get("/settings?saved=yes").text
    assert ada.client.get("/api/user/preferences").json() == Preferences(stories=True).model_dump()


def test_what_is_saved_is_what_the_pages_are_shown_by(reader: Reader) -> None:
    ada, ben = reader.user("ada"), reader.user("ben")
    client = browser(reader, ada)
    changed = {
        "theme": "dark",
        "density": "compact",
        "entries_per_page": "20",
        "show_read": "yes",
        "mark_read_on_open": "no",
    }
    client.post("/settings", data={**form_of(client.get("/settings").text), **changed})
    found = ada.client.get("/api/user/preferences").json()
    assert found == {
        **Preferences(stories=True).model_dump(),
        "theme": "dark",
        "density": "compact",
        "entries_per_page": 20,
        "show_read": True,
        "mark_read_on_open": False,
    }
    page = client.get("/settings").text
    assert 'data-theme="dark" data-density="compact"' in page
    assert form_of(page)["mark_read_on_open"] == "no"
    assert ben.client.get("/api/user/preferences").json() == Preferences(stories=True).model_dump()


@pytest.mark.parametrize(
    ("name", "value", "label"),
    [
        ("entries_per_page", "5", "Entries on a page"),
        ("entries_per_page", "many", "Entries on a page"),
        ("entries_per_page", "9" * 5_000, "Entries on a page"),
        ("entries_per_page", "\N{SUPERSCRIPT TWO}\N{SUPERSCRIPT ZERO}", "Entries on a page"),
        ("theme", "pink", "Colours"),
        ("show_read", "perhaps", "Show entries that are read, too"),
    ],
)
def test_a_value_that_cannot_be_is_named_and_nothing_is_saved(
    reader: Reader, name: str, value: str, label: str
) -> None:
    ada = reader.user("ada")
    refused = browser(reader, ada).post("/settings", data={"dates": "absolute", name: value})
    assert refused.status_code == 422
    assert f"Nothing was saved. These values cannot be used: {label}." in refused.text
    assert ada.client.get("/api/user/preferences").json() == Preferences(stories=True).model_dump()


def test_a_field_that_is_no_preference_of_this_version_is_left_out(reader: Reader) -> None:
    ada = reader.user("ada")
    assert browser(reader, ada).post("/settings", data={"of_later": "1"}).status_code == 303
    assert ada.client.get("/api/user/preferences").json() == Preferences(stories=True).model_dump()
