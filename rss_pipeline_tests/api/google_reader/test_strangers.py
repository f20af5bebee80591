"""No one reads or changes what is another's by the calls of Google Reader clients: each call, two users.

The JSON API's own table is in rss_pipeline_tests/api/test_strangers.py.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from rss_pipeline.api.auth import COOKIE, HOST_COOKIE
from rss_pipeline.api.google_reader.routes import CALLS
from rss_pipeline.reader.accounts.tokens import new_opaque
from rss_pipeline.storage.accounts import sessions
from rss_pipeline_tests.api.google_reader.conftest import Two
from rss_pipeline_tests.api.google_reader.phone import Phone
from rss_pipeline_tests.support.reader import Reader

pytestmark = pytest.mark.slow

STATE = "user/-/state/com.google"
OPML = b'<opml version="2.0"><body><outline text="x" xmlUrl="https://x.example/feed"/></body></opml>'
FIELDS: dict[str, dict[str, Any]] = {
    "stream/items/ids": {"s": "feed/a"},
    "stream/items/contents": {"i": "1"},
    "stream/contents": {"s": "feed/a"},
    "atom": {"s": "feed/a"},
    "subscription/edit": {"ac": "unsubscribe", "s": "feed/a"},
    "subscription/quickadd": {"quickadd": "http://10.0.0.1/"},
    "rename-tag": {"s": "user/-/label/News", "dest": "user/-/label/Theirs"},
    "disable-tag": {"s": "user/-/label/News"},
    "edit-tag": {"i": "1", "a": f"{STATE}/starred"},
    "mark-all-as-read": {"s": "feed/a"},
}
"""The parameters of each call, by its last part."""
OPERATIONS = [
    (call, method)
    for call, by_method in CALLS.items()
    if call != "accounts/ClientLogin"
    for method in by_method
]


def login_token(phone: Phone) -> str:
    """The opaque token of a browser's session of this user."""
    opaque, database = new_opaque(), phone.reader.database
    [row] = database.query("SELECT password_hash FROM users WHERE id = ?", [phone.user_id]).rows
    begun = sessions.begin_by_password(
        opaque.session_id,
        phone.user_id,
        password_hash=row["password_hash"],
        client="a browser",
        now=phone.reader.clock(),
    )
    assert database.batch([begun])[0].changes == 1
    return opaque.of(phone.user_id)


def ended(phone: Phone) -> str:
    """The token of an app with a revoked password."""
    app = phone.another()
    app.revoke()
    return app.auth


CREDENTIALS: dict[str, Callable[[Two], dict[str, str]]] = {
    "none": lambda _: {},
    "a cookie": lambda two: {
        "cookie": f"{COOKIE}={login_token(two.ann)}",
        "origin": "http://127.0.0.1:3001",
        "sec-fetch-site": "same-origin",
    },
    "a cookie with the app's token": lambda two: {"cookie": f"{HOST_COOKIE}={two.ann.auth}"},
    "a JWT": lambda two: {"authorization": f"Bearer {two.ann.jwt()}"},
    "a JWT as auth": lambda two: {"authorization": f"GoogleLogin auth={two.ann.jwt()}"},
    "a browser's token": lambda two: {"authorization": f"GoogleLogin auth={login_token(two.ann)}"},
    "an app's token as a bearer": lambda two: {"authorization": f"Bearer {two.ann.auth}"},
    "another's secret": lambda two: {
        "authorization": f"GoogleLogin auth={two.ann.user_id}/{two.bob.auth.partition('/')[2]}"
    },
    "a revoked app": lambda two: {"authorization": f"GoogleLogin auth={ended(two.ann)}"},
}


def seen(phone: Phone) -> list[str]:
    """The view of a user, as far as anyone could change it."""
    calls: tuple[tuple[str, dict[str, str]], ...] = (
        ("subscription/list", {}),
        ("tag/list", {}),
        ("unread-count", {}),
        ("stream/items/ids", {"s": f"{STATE}/starred", "n": "100"}),
    )
    return [phone.get(call, output="json", **params).text for call, params in calls]


@pytest.mark.parametrize(("call", "method"), OPERATIONS)
def test_only_an_apps_own_session_opens_a_call(two: Two, call: str, method: str) -> None:
    before = seen(two.ann)
    fields = FIELDS.get(call.removeprefix("reader/").removeprefix("api/0/"), {})
    for name, headers in CREDENTIALS.items():
        with two.ann.reader.client(**headers(two)) as client:
            if call.endswith("import"):
                answer = client.request(method, f"/greader/{call}", content=OPML)
            elif method == "GET":
                answer = client.get(f"/greader/{call}", params=fields)
            else:
                answer = client.request(method, f"/greader/{call}", data=fields)
        assert answer.status_code == 401, (name, answer.text)
        assert "set-cookie" not in answer.headers
    assert seen(two.ann) == before


def without(answer: httpx.Response, *names: str) -> tuple[int, str]:
    text = answer.text
    for name in names:
        text = text.replace(name, "...")
    return answer.status_code, text


@pytest.mark.parametrize("call", ["stream/items/ids", "stream/contents", "atom", "mark-all-as-read", "edit"])
def test_a_foreign_stream_is_answered_as_an_unknown_one(two: Two, call: str) -> None:
    two.bob.post("edit-tag", {"a": "user/-/label/Bobs"})
    before = seen(two.bob)

    def ask(stream: str) -> httpx.Response:
        match call:
            case "atom":
                return two.ann.client.get(f"/greader/reader/atom/{stream}")
            case "edit":
                return two.ann.post("subscription/edit", {"ac": "edit", "s": stream, "t": "Mine"})
            case "mark-all-as-read":
                return two.ann.post(call, {"s": stream})
        return two.ann.get(call, s=stream, output="json")

    for foreign, unknown in (
        ("feed/b", "feed/q"),
        ("feed/https://b.example/b", "feed/https://q.example/q"),
        ("user/-/label/Bobs", "user/-/label/Nobodys"),
        (f"user/{two.bob.user_id}/label/Bobs", f"user/{two.bob.user_id}/label/Nobodys"),
    ):
        answers = [without(ask(stream), stream, "Bobs", "Nobodys") for stream in (foreign, unknown)]
        assert answers[0] == answers[1]
        assert answers[0][0] in (200, 400, 404)
        assert "b1" not in answers[0][1]
    assert seen(two.bob) == before


def test_another_users_name_in_a_stream_names_the_callers_own(two: Two) -> None:
    assert two.ann.ids(f"user/{two.bob.user_id}/state/com.google/reading-list") == two.ann.ids()
    assert not set(two.b) & set(two.ann.ids())


def test_foreign_items_are_left_out_of_contents_and_marks_as_unknown_ones_are(two: Two) -> None:
    before = seen(two.bob)
    for numbers in (two.b, [1, 2]):
        answer = two.ann.post("stream/items/contents", {"i": [str(each) for each in numbers]})
        assert answer.json()["items"] == []
        for state in ("starred", "read", "kept-unread"):
            assert two.ann.mark(numbers, a=state).content == b"OK"
    assert two.ann.ids(f"{STATE}/starred") == []
    two.ann.subscribe("b")
    assert two.ann.ids(f"{STATE}/starred") == []
    assert set(two.b) <= two.ann.unread()
    assert seen(two.bob) == before


def test_what_one_marks_of_a_shared_feed_is_not_seen_by_the_other(two: Two) -> None:
    before = seen(two.bob)
    two.ann.mark(two.shared, a="starred")
    two.ann.mark(two.shared, a="read")
    two.ann.post("mark-all-as-read", {"s": f"{STATE}/reading-list"})
    two.ann.post("subscription/edit", {"ac": "edit", "s": "feed/shared", "t": "Mine", "a": "user/-/label/X"})
    two.ann.post("subscription/edit", {"ac": "unsubscribe", "s": "feed/shared"})
    assert seen(two.bob) == before


def test_who_ended_the_session_learns_nothing_of_addresses(two: Two) -> None:
    with two.ann.reader.client(authorization=f"GoogleLogin auth={ended(two.ann)}") as client:
        for address in ("http://10.0.0.1/", "https://b.example/b", "https://q.example/q"):
            path = "/greader/reader/api/0/subscription/quickadd"
            assert client.post(path, data={"quickadd": address}).status_code == 401


def test_a_thousand_logins_of_an_app_leave_fifty_sessions(two: Two, reader: Reader) -> None:
    """Fluent Reader and Liferea log in at each start."""
    form = {"Email": "ann", "Passwd": two.ann.password}

    def sessions_of_ann() -> int:
        found = reader.database.query(
            "SELECT count(*) AS n FROM sessions WHERE user_id = ?", [two.ann.user_id]
        )
        return int(found.rows[0]["n"])

    # All but sixty of them as rows: each login costs what a password costs.
    reader.database.query(
        """INSERT INTO sessions
          (id, user_id, kind, app_password_id, client, created_at, expires_at, last_used_at)
        WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 940)
        SELECT 'login ' || n, user_id, kind, app_password_id, client, created_at, expires_at, last_used_at
        FROM sessions CROSS JOIN n WHERE user_id = ? AND kind = 'google_reader'""",
        [two.ann.user_id],
    )
    assert sessions_of_ann() > 940
    with reader.client() as anybody:
        for _ in range(60):
            assert anybody.post("/greader/accounts/ClientLogin", data=form).status_code == 200
            assert sessions_of_ann() <= 51
    assert two.bob.get("user-info").status_code == 200


def test_hundreds_of_wrong_logins_have_to_wait_and_lock_no_one_else_out(two: Two, reader: Reader) -> None:
    statuses: Counter[int] = Counter()
    with reader.client(address="192.0.2.7") as stranger:
        for n in range(200):
            form = {"Email": "ann", "Passwd": f"guess {n}"}
            statuses[stranger.post("/greader/accounts/ClientLogin", data=form).status_code] += 1
    assert set(statuses) == {401, 429}
    assert statuses[401] < 100
    form = {"Email": "ann", "Passwd": two.ann.password}
    for address in ("192.0.2.7", "198.51.100.1"):
        with reader.client(address=address) as own:
            assert own.post("/greader/accounts/ClientLogin", data=form).status_code == 200


def test_one_makes_no_thousand_folders_at_once_and_none_with_control_characters(two: Two) -> None:
    many = [f"user/-/label/F{n}" for n in range(101)]
    assert two.ann.post("edit-tag", {"a": many}).status_code == 400
    assert two.ann.post("edit-tag", {"a": "user/-/label/" + "x" * 501}).status_code == 400
    assert two.ann.post("edit-tag", {"a": "user/-/label/a\x1bb"}).status_code == 400
    assert two.ann.post("disable-tag", {"s": [f"user/-/label/F{n}" for n in range(501)]}).status_code == 400
    for start in range(0, 1_100, 100):
        folders = [f"user/-/label/F{n}" for n in range(start, start + 100)]
        assert two.ann.post("edit-tag", {"a": folders}).status_code == 200
    assert len(two.ann.get("tag/list", output="json").json()["tags"]) <= 1_002
