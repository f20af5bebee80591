"""Every registered feed is visited at least once in 24 hours, whatever its state; a week on a turned clock.

The rules by themselves are tests of collector.schedule.
"""

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from rss_pipeline.collector.fetch.holds import LONGEST_GAP
from rss_pipeline.collector.schedule import next_visit
from rss_pipeline_tests.support.pipeline import NOON, Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer, Request, Route

DAY = timedelta(hours=24)
TICK = timedelta(minutes=5)
"""Between two polls: the sensor lets a feed that is due wait so long for others."""
YEAR = 365 * 86_400

OLD = rss("a").replace(b"2026", b"2019")
ALL_HOURS = b"<skipHours>" + b"".join(b"<hour>%d</hour>" % hour for hour in range(24)) + b"</skipHours>"
WORKDAYS = b"".join(b"<day>%s</day>" % day for day in (b"Tuesday", b"Wednesday", b"Thursday", b"Friday"))


def with_(element: bytes) -> bytes:
    return OLD.replace(b"<channel>", b"<channel>" + element)


FINE = Answer(body=OLD, etag='"1"')
STATES: dict[str, tuple[Route, ...]] = {
    "silent-for-years": (FINE,),
    "registered-every-day": (FINE,),
    "max-age-a-year": (Answer(body=OLD, etag='"1"', headers={"Cache-Control": f"max-age={YEAR}"}),),
    "ttl-a-year": (Answer(body=with_(b"<ttl>525600</ttl>")),),
    "skips-every-hour": (Answer(body=with_(ALL_HOURS)),),
    "skips-four-days": (Answer(body=with_(b"<skipDays>" + WORKDAYS + b"</skipDays>")),),
    "retry-after-with-200": (Answer(body=OLD, headers={"Retry-After": str(YEAR)}),),
    "not-found": (Answer(status=404),),
    "gone": (Answer(status=410),),
    "gone-after-a-while": (FINE, Answer(status=410)),
    "forbidden": (Answer(status=403),),
    "broken-server": (Answer(status=500),),
    "busy-server": (Answer(status=503, headers={"Retry-After": str(YEAR)}),),
    "rate-limited": (Answer(status=429),),
    "rate-limited-for-a-year": (Answer(status=429, headers={"Retry-After": str(YEAR)}),),
    "challenge": (Answer(status=403, headers={"cf-mitigated": "challenge"}),),
    "web-page": (Answer(body=b"<!DOCTYPE html><html><body>Hello</body></html>"),),
    "not-a-feed": (Answer(body=b"hello"),),
    "empty": (Answer(body=b""),),
    "cut-off": (Answer(body=OLD, cut_after=10),),
    "hangs-up": (Answer(raw=b"nonsense"),),
    "loop": (Answer(status=302, headers={"Location": "/loop"}),),
}
"""The states that a registered feed can be in, each on a host of its own."""


class Requests:
    """The times of all requests, by the clock of the pipeline."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.at: dict[str, list[datetime]] = defaultdict(list)
        self._clock = pipeline.clock

    def noted(self, id: str, *routes: Route) -> Callable[[Request], Answer]:
        def answer(request: Request) -> Answer:
            asked = self.at[id]
            asked.append(self._clock())
            route = routes[min(len(asked), len(routes)) - 1]
            return route if isinstance(route, Answer) else route(request)

        return answer

    def longest_gap(self, id: str, *, until: datetime) -> timedelta:
        """The longest time without a request, up to this instant."""
        times = [*self.at[id], until]
        return max(later - earlier for earlier, later in pairwise(times))


def a_week(pipeline: Pipeline) -> datetime:
    """Poll for a week, every five minutes in which a feed is due; return the end."""
    end = NOON + timedelta(days=7)
    while pipeline.clock.now < end:
        pipeline.poll()
        (row,) = pipeline.rows("SELECT min(next_fetch_at) AS next FROM feeds WHERE registered AND enabled")
        pipeline.clock.now = max(pipeline.clock.now + TICK, datetime.fromisoformat(row["next"]))
    return end


@pytest.mark.slow
def test_no_registered_feed_is_unvisited_for_more_than_a_day(pipeline: Pipeline, server: FeedServer) -> None:
    requests = Requests(pipeline)
    for number, (id, routes) in enumerate(STATES.items(), start=2):
        options = {"interval": "24h"} if id == "registered-every-day" else {}
        url = server.route(f"127.0.0.{number}", f"/{id}", requests.noted(id, *routes))
        pipeline.register(url, id, **options)
    end = a_week(pipeline)
    assert {id for id in STATES if requests.longest_gap(id, until=end) > DAY + TICK} == set()


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 0.4])
def test_a_feed_that_is_always_refused_does_not_keep_its_neighbour_on_the_host_from_its_visits(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch, spread: float
) -> None:
    """Each refusal holds the host for a day. The feed that has waited longer is first when the hold ends, and
    the refused one comes a while after it: in the pace that the host is taken to want. Without a spread both
    are due at the same second."""
    monkeypatch.setattr(next_visit, "_spread_per_cent", lambda _: spread)
    requests = Requests(pipeline)
    refusal = Answer(status=429, headers={"Retry-After": str(YEAR)})
    for id, answer in {"refused": refusal, "fine": FINE}.items():
        pipeline.register(server.route("127.0.0.2", f"/{id}", requests.noted(id, answer)), id)
    end = a_week(pipeline)
    assert requests.longest_gap("fine", until=end) <= DAY + LONGEST_GAP + 2 * TICK
