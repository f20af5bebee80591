"""Lists of feeds in and out, by HTTP."""

import httpx
import pytest

from rss_pipeline_tests.support.reader import Reader

IN, OUT = "/api/import/opml", "/api/export/opml"


def opml(*outlines: str) -> bytes:
    lines = "\n".join(outlines)
    return f'<opml version="2.0"><body>\n{lines}\n</body></opml>'.encode()


NO_MORE = {"merged": 0, "waiting": 0, "waits_until": None}


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
