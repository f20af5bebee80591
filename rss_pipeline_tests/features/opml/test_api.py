"""Lists of feeds in and out, by HTTP."""

from datetime import timedelta

import httpx
import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline_tests.api.google_reader.phone import API, Phone
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.test_change_address import NEW, OLD, A, brought
from rss_pipeline_tests.api.test_repeats_nothing import SENT, check
from rss_pipeline_tests.storage.values import feed_row, register, spec
from rss_pipeline_tests.support.reader import Reader

IN, OUT = "/api/import/opml", "/api/export/opml"


def opml(*outlines: str) -> bytes:
    lines = "\n".join(outlines)
    return f'<opml version="2.0"><body>\n{lines}\n</body></opml>'.encode()


NO_MORE: dict[str, object] = {"merged": 0, "waiting": 0, "waits_until": None, "pages": []}


def outline(url: str, title: str = "") -> str:
    return f'<outline type="rss" text="{title}" xmlUrl="{url}"/>'


def test_a_list_goes_in_and_comes_out_and_is_the_user_s_alone(reader: Reader) -> None:
    ada, ben = reader.user("ada").client, reader.user("ben").client
    body = opml(outline("https://a.example/1", "A &amp; B"), outline("https://b.example/2"))
    for added in (2, 0):
        answer = ada.post(IN, content=body, headers={"Content-Type": "text/x-opml"})
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"added": added, "known": 2 - added, **NO_MORE}
    written = ada.get(OUT)
    assert written.headers["content-type"].startswith("text/x-opml")
    assert written.headers["content-disposition"].startswith("attachment")
    assert 'title="A &amp; B"' in written.text
    assert "xmlUrl" not in ben.get(OUT).text
    # As `curl -F` sends it, whatever the field is called, and as a field that is no file.
    for added, form in ((2, {"feeds": ("a.opml", written.content)}), (0, {"list": (None, written.content)})):
        done = ben.post(IN, files=form)
        assert done.json() == {"added": added, "known": 2 - added, **NO_MORE}, done.text
    assert ben.post(IN, files={"": (None, b"")}).status_code in (400, 422)
    assert ben.get(OUT).text.count("xmlUrl") == 2


def test_pages_without_a_feed_are_named_and_not_subscribed(reader: Reader) -> None:
    ada = reader.user("ada").client
    page = '<outline text="A &lt;b&gt;" htmlUrl="https://p.example/blog"/>'
    done = ada.post(IN, content=opml(outline("https://a.example/1"), page, page)).json()
    named = {"url": "https://p.example/blog", "title": "A <b>", "folder": None}
    assert done == {"added": 1, "known": 0, **NO_MORE, "merged": 1, "pages": [named]}
    assert len(ada.get("/api/feeds").json()["feeds"]) == 1
    refused = ada.post(IN, content=opml('<outline htmlUrl="http://10.0.0.1/"/>'))
    assert "private network" in refused.text


@pytest.mark.slow
def test_five_hundred_feeds_in_folders_go_in_and_out_and_in_again(reader: Reader) -> None:
    # Ada was first, and is the owner: nothing of hers waits.
    ada = reader.user("ada").client
    reader.clock.pass_(seconds=1)
    ben = reader.user("ben").client
    folders = (
        f'<outline text="Folder {folder}">'
        + "".join(
            outline(f"https://h{n % 50}.example/{n}", f"Feed {n} &amp; Œuvres")
            for n in range(folder, 500, 10)
        )
        + "</outline>"
        for folder in range(10)
    )
    assert ada.post(IN, content=opml(*folders)).json() == {"added": 500, "known": 0, **NO_MORE}
    written = ada.get(OUT)
    assert written.text.count("xmlUrl") == 500
    assert ben.post(IN, content=written.content).json() == {"added": 500, "known": 0, **NO_MORE}
    assert ben.get(OUT).text.partition("<body>")[2] == written.text.partition("<body>")[2]

    def feeds(client: httpx.Client) -> list[tuple[str, str, str]]:
        found = client.get("/api/feeds").json()["feeds"]
        return [(feed["url"], feed["title"], feed["folder"]) for feed in found]

    assert feeds(ada) == feeds(ben)
    assert sorted(feeds(ada)) == sorted(
        (f"https://h{n % 50}.example/{n}", f"Feed {n} & Œuvres", f"Folder {n % 10}") for n in range(500)
    )
    assert ben.post(IN, content=written.content).json() == {"added": 0, "known": 500, **NO_MORE}


def test_every_mistake_is_in_the_answer_and_nothing_is_imported(reader: Reader) -> None:
    ada = reader.user("ada").client
    body = opml(outline("https://a.example/1"), outline("gopher://b.example/"), outline("http://10.0.0.1/"))
    answer = ada.post(IN, content=body)
    assert answer.status_code == 422
    assert [each["where"] for each in answer.json()["errors"]] == ["line 3", "line 4"]
    assert "xmlUrl" not in ada.get(OUT).text


def test_a_list_of_thousands_of_mistakes_has_a_short_answer(reader: Reader) -> None:
    ada = reader.user("ada").client
    answer = ada.post(IN, content=opml(*(outline(f"x:{number}") for number in range(9_000))))
    assert answer.status_code == 422
    assert len(answer.json()["errors"]) == 100
    assert "9000 mistakes" in answer.json()["detail"]


def test_a_list_of_more_than_a_megabyte_is_refused_by_its_size(reader: Reader) -> None:
    ada = reader.user("ada").client
    assert ada.post(IN, content=b" " * 1_000_001).status_code == 413
    assert ada.post(IN, content=b" " * 1_000_000).status_code == 422


def test_lists_need_a_login(reader: Reader) -> None:
    nobody = reader.client()
    assert nobody.get(OUT).status_code == 401
    assert nobody.post(IN, content=opml(outline("https://a.example/1"))).status_code == 401
    ada = reader.user("ada").client
    assert ada.post("/api/auth/logout").status_code == 204
    assert ada.post(IN, content=b"no list").status_code == 401
    assert reader.database.query("SELECT id FROM feeds").rows == []


def test_a_users_old_address_is_another_feed_for_everybody(reader: Reader) -> None:
    """Its id is made from the address that it had first."""
    register(reader.database, spec(A, url=OLD, host="a.example"))
    owner, bob = reader.user("owner"), reader.user("bob")
    brought(reader, bob, id=A)
    assert bob.client.patch(f"/api/feeds/{A}", json={"url": NEW}).status_code == 200
    body = opml(outline(OLD), outline(NEW))
    answer = owner.client.post(IN, content=body, headers={"Content-Type": "text/x-opml"})
    assert answer.json()["added"] == 2
    [first, second] = owner.client.get("/api/feeds").json()["feeds"]
    assert (first["id"], first["url"]) == (f"{A}-2", OLD)
    assert (second["id"], second["url"]) == (A, NEW)
    assert feed_row(reader.database, A)["url"] == NEW
    # Again, it is known by its address.
    assert owner.client.post("/api/feeds", json={"url": OLD}).json()["feed_id"] == f"{A}-2"


def test_a_list_shares_the_hour_of_new_addresses_and_what_waits_is_not_refreshed(reader: Reader) -> None:
    reader.user("owner")
    reader.clock.pass_(seconds=1)
    client = reader.user("bob").client
    for n in range(62):
        client.post("/api/feeds", json={"url": f"new.example/{n}"})
    turn = instant(reader.clock() + timedelta(hours=1))
    done = client.post(IN, content=opml(*(outline(f"https://h{n}.example/") for n in range(3)))).json()
    assert (done["added"], done["waiting"], done["waits_until"]) == (3, 5, turn)
    [feed, *_] = client.get("/api/feeds").json()["feeds"]
    held = client.post(f"/api/feeds/{feed['id']}/refresh")
    assert (held.status_code, held.json()["until"]) == (409, turn)
    assert held.json()["detail"] == "At most 60 new addresses of a user are visited within an hour."


LISTS_WITH_MISTAKES = (
    f'<opml><body><outline text="{SENT}" type="rss"/></body></opml>',
    f'<opml><body><outline text="{SENT}" type="{SENT}+DotNotation" xmlUrl="https://{SENT}.example/"/></body></opml>',
    f'<opml><body><outline text="{SENT}" xmlUrl="ftp://{SENT}/"/></body></opml>',
    f'<opml><body><outline text="x" xmlUrl="http://127.0.0.1/{SENT}"/></body></opml>',
    f'<opml><body><outline text="x" xmlUrl="https://me:{SENT}@x.example/"/></body></opml>',
    f'<opml><body><outline text="x" xmlUrl="https://{SENT}_{SENT}-.example/"/></body></opml>',
    f"<{SENT}/>",
    f"<opml {SENT}",
    f"{SENT} &{SENT};",
)


@pytest.mark.slow
@pytest.mark.parametrize("text", LISTS_WITH_MISTAKES)
def test_no_door_repeats_what_a_list_says(reader: Reader, text: str) -> None:
    reader.user("owner")
    reader.clock.pass_(seconds=1)
    user, phone = reader.user("ann"), Phone.of_new_user(reader, "phone")
    files = {"file": (f"{SENT}.opml", text.encode(), "text/x-opml")}
    assert check(user.client.post(IN, content=text, headers={"Content-Type": "text/x-opml"}), text)
    assert check(phone.client.post(f"{API}subscription/import", content=text), text)
    assert check(browser(reader, user).post("/settings/opml", files=files), text)
    assert not check(browser(reader).post("/settings/opml", files=files), text)
