"""Users of a reader that is killed again and again: each repeats a call until it is answered, and remembers
what was answered. Whatever they see is compared with that.

No test is in here.
"""

import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
import jwt

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.reader.accounts.tokens import sign_jwt
from rss_pipeline_tests.support.waiting import PATIENCE, times_as_long

OTHER_SECRET = b"another key, of thirty-two bytes and more"
_PAUSE = 0.2
"""Seconds between two tries, and between two actions at most."""


@dataclass
class Mine:
    """A subscription, as its user knows it."""

    up_to: int = 0
    marks: dict[str, bool] = field(default_factory=dict)
    """States of items that were marked themselves since the feed was marked."""
    stars: set[str] = field(default_factory=set)


class Client:
    """One user with one program, in a thread of its own; no one else writes what is this user's."""

    def __init__(self, url: str, name: str, password: str, feeds: Mapping[str, str], seed: int) -> None:
        self.name = name
        self.error: BaseException | None = None
        self.done = 0
        """Actions that were answered."""
        self.repeated = 0
        """Requests that were not answered."""
        self.tasks: dict[str, float] = {}
        """The instant of the answer to each task that is not done yet."""
        self.queued: set[str] = set()
        """Every task that was answered."""
        self.ended: list[float] = []
        """Seconds that each task took."""
        self.logins = 0
        """Requests for a session, answered or not."""
        self._password = password
        self._feeds = feeds
        self._chance = random.Random(seed)
        self._client = httpx.Client(base_url=url, timeout=PATIENCE)
        self._tokens: list[str] = []
        self._dead_tokens: list[str] = []
        self._mine: dict[str, Mine] = {}
        self._versions: dict[str, int] = {}
        self._seen: dict[str, dict[str, Any]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        self.check()

    def check(self) -> None:
        """Raise what the thread has found."""
        if self.error is not None:
            raise AssertionError(f"{self.name}, after {self.done} actions") from self.error

    def close(self) -> None:
        self._stop.set()
        self._client.close()

    def look_at_tasks(self) -> None:
        """Request those that are not done."""
        for id, since in list(self.tasks.items()):
            task = self._get(f"/api/tasks/{id}")
            if task["state"] == "done":
                assert task["result"] is not None
                del self.tasks[id]
                self.ended.append(time.monotonic() - since)

    def look_at_everything(self, *, nothing_comes: bool = False) -> None:
        """Compare all that is listed with what this client knows; the counts as well, where no item comes
        between two of its requests."""
        feeds = {feed["id"]: feed for feed in self._get("/api/feeds")["feeds"]}
        assert feeds.keys() == self._mine.keys()
        found: dict[str, dict[str, Any]] = {}
        cursor: int | None = None
        while True:
            page = self._get("/api/items", limit=30, **({} if cursor is None else {"cursor": cursor}))
            for item in page["items"]:
                assert item["id"] not in found, "listed twice"
                found[item["id"]] = item
            if (cursor := page["next_cursor"]) is None:
                break
        lost = [id for id, item in self._seen.items() if item["feed_id"] in feeds and id not in found]
        assert lost == []
        wrong = [item for item in found.values() if not self._is_as_known(item)]
        assert wrong == []
        if nothing_comes:
            for id, feed in feeds.items():
                unread = [each for each in found.values() if each["feed_id"] == id and not each["is_read"]]
                assert feed["unread"] == len(unread)
        self._versions = {id: feed["version"] for id, feed in feeds.items()}
        self._seen = found

    def look_at_sessions(self) -> None:
        """The tokens that are alive open the reader; ended and forged ones do not."""
        for token in self._tokens:
            assert self._call("GET", "/api/feeds", token=token).status_code == 200
        now = utc_now()
        claims = jwt.decode(self._tokens[-1], options={"verify_signature": False})
        user_id, session_id = claims["sub"], claims["jti"]
        forged = [
            sign_jwt(OTHER_SECRET, user_id=user_id, session_id=session_id, now=now)[0],
            sign_jwt(OTHER_SECRET, user_id=user_id, session_id="0" * 64, now=now + timedelta(minutes=1))[0],
            jwt.encode(claims, "", algorithm="none"),
        ]
        for token in (*self._dead_tokens[-3:], *forged):
            assert self._call("GET", "/api/feeds", token=token).status_code == 401

    def _run(self) -> None:
        try:
            while not self._tokens:
                self._log_in()
            actions = (
                (self._subscribe, 3),
                (self._unsubscribe, 1),
                (self._mark, 6),
                (self._star, 4),
                (self._mark_feed, 3),
                (self._refresh, 5),
                (self.look_at_tasks, 4),
                (self.look_at_everything, 4),
                (self.look_at_sessions, 2),
                (self._log_in, 1),
                (self._log_out, 1),
            )
            weights = [weight for _, weight in actions]
            while not self._stop.is_set():
                [(action, _)] = self._chance.choices(actions, weights)
                action()
                self.done += 1
                self._stop.wait(self._chance.uniform(0, _PAUSE))
        except BaseException as error:  # noqa: BLE001 - raised by `check`
            self.error = error

    def _subscribe(self) -> None:
        id = self._chance.choice(sorted(self._feeds))
        answer = self._call("POST", "/api/feeds", {"url": self._feeds[id]})
        assert answer.status_code in (200, 202), answer.text
        assert answer.json()["feed_id"] == id
        self._mine.setdefault(id, Mine())
        if task := answer.json()["task_id"]:
            self._follow(task)

    def _unsubscribe(self) -> None:
        if len(self._mine) > 2:
            id = self._chance.choice(sorted(self._mine))
            before = self.repeated
            answer = self._call("DELETE", f"/api/feeds/{id}")
            assert answer.status_code == 204 or (answer.status_code == 404 and self.repeated > before)
            del self._mine[id]

    def _some_items(self) -> list[dict[str, Any]]:
        found = [item for item in self._seen.values() if item["feed_id"] in self._mine]
        return self._chance.sample(found, min(len(found), self._chance.randint(1, 5)))

    def _mark(self) -> None:
        if items := self._some_items():
            is_read = self._chance.random() < 0.6
            self._post("/api/items/mark", {"ids": [item["id"] for item in items], "is_read": is_read})
            for item in items:
                self._mine[item["feed_id"]].marks[item["id"]] = is_read

    def _star(self) -> None:
        if items := self._some_items():
            is_starred = self._chance.random() < 0.6
            self._post("/api/items/mark", {"ids": [item["id"] for item in items], "is_starred": is_starred})
            for item in items:
                stars = self._mine[item["feed_id"]].stars
                (stars.add if is_starred else stars.discard)(item["id"])

    def _mark_feed(self) -> None:
        """Up to what was listed, which may be some time ago."""
        known = sorted(self._mine.keys() & self._versions.keys())
        if not known:
            return
        id = self._chance.choice(known)
        up_to, mine = self._versions[id], self._mine[id]
        self._post(f"/api/feeds/{id}/mark-read", {"up_to": up_to})
        mine.up_to = max(mine.up_to, up_to)
        mine.marks = {
            id: is_read
            for id, is_read in mine.marks.items()
            if id not in self._seen or self._seen[id]["cursor"] > up_to
        }

    def _refresh(self) -> None:
        if self._mine:
            id = self._chance.choice(sorted(self._mine))
            answer = self._call("POST", f"/api/feeds/{id}/refresh")
            # 409: refreshed very often.
            assert answer.status_code in (202, 409), answer.text
            if answer.status_code == 202:
                self._follow(answer.json()["task_id"])

    def _follow(self, task: str) -> None:
        self.queued.add(task)
        self.tasks.setdefault(task, time.monotonic())

    def _log_in(self) -> None:
        self.logins += 1
        given = {"name": self.name, "password": self._password}
        before = self.repeated
        answer = self._call("POST", "/api/auth/login", given, token="")
        self.logins += self.repeated - before
        # A login that was killed counts as a failed one.
        assert answer.status_code in (200, 429), answer.text
        if answer.status_code == 200:
            self._tokens.append(answer.json()["token"])

    def _log_out(self) -> None:
        if len(self._tokens) > 1:
            token = self._tokens.pop(self._chance.randrange(len(self._tokens)))
            before = self.repeated
            answer = self._call("POST", "/api/auth/logout", token=token)
            assert answer.status_code == 204 or (answer.status_code == 401 and self.repeated > before)
            self._dead_tokens.append(token)

    def _is_as_known(self, item: dict[str, Any]) -> bool:
        mine = self._mine[item["feed_id"]]
        is_read = mine.marks.get(item["id"], item["cursor"] <= mine.up_to)
        return bool(item["is_read"] == is_read and item["is_starred"] == (item["id"] in mine.stars))

    def _get(self, path: str, **params: int) -> Any:
        answer = self._call("GET", path, params=params)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    def _post(self, path: str, given: dict[str, Any]) -> None:
        answer = self._call("POST", path, given)
        assert answer.status_code == 200, f"{path} {given}: {answer.status_code} {answer.text}"

    def _call(
        self,
        method: str,
        path: str,
        given: dict[str, Any] | None = None,
        *,
        token: str | None = None,
        params: dict[str, int] | None = None,
    ) -> httpx.Response:
        """The answer; the request is repeated until there is one."""
        token = self._tokens[-1] if token is None else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        until = time.monotonic() + PATIENCE * times_as_long()
        while True:
            try:
                return self._client.request(method, path, json=given, headers=headers, params=params)
            except httpx.TransportError:
                self.repeated += 1
                assert time.monotonic() < until, "the reader does not come back"
                time.sleep(_PAUSE)
