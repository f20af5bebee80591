"""Users with states of all kinds on a whole pipeline, and all that they see, to be compared after a restore.

No test is in here.
"""

import random
from collections.abc import Sequence
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

from rss_pipeline.pipeline.session.renew_html import renew
from rss_pipeline.reader.bodies import Bodies, Body
from rss_pipeline.reader.user_backups import UserBackups, back_up_users
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.feeds.subscribed import NewFeed, add_feeds
from rss_pipeline.storage.sql import number
from rss_pipeline.storage.subscriptions.chosen import Chosen, Scope, Shown
from rss_pipeline.storage.subscriptions.item_states import mark_items, mark_shown, note_reading, star_items
from rss_pipeline.storage.subscriptions.subscriptions import Wanted, add_folders, edit, subscribe, unsubscribe
from rss_pipeline_tests.reader.test_bodies import keys
from rss_pipeline_tests.storage.subscriptions import readers
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

USERS = ("ada", "ben", "cyd")
FEEDS = ("large", "listed", "alone")
MANY = [f"m{number}" for number in range(150)]


def serve(pipeline: Pipeline, server: FeedServer) -> None:
    """Three feeds with items of three visits; `alone` is in no feeds.yaml."""
    pipeline.set(allow_networks=(ip_network("127.0.0.0/8"),), allow_ports=frozenset({server.port}))
    pages = {
        "large": [rss(*MANY[:100]), rss(*MANY[50:]), rss(*MANY[40:], "late")],
        "listed": [rss("a", "b"), rss("b", "c", "d"), rss("d", "e")],
        "alone": [rss("x"), rss("x", "y", "z"), rss("z", "v", "w")],
    }
    for place, (id, bodies) in enumerate(pages.items(), start=2):
        url = server.route(f"127.0.0.{place}", "/feed", *(Answer(body=body) for body in bodies))
        if id != "alone":
            pipeline.register(url, id, shared=True)
    pipeline.sync()
    add_subscribed(pipeline, "alone", url)
    for id in USERS:
        readers.add_user(pipeline.database, id)
        subscribe_feeds(pipeline, id, *FEEDS)
    for _ in range(3):
        pipeline.poll(all_feeds=True)
        pipeline.clock.turn(hours=3)


def add_subscribed(pipeline: Pipeline, id: str, url: str) -> None:
    """A feed that only users know."""
    feed = NewFeed(id=id, url=url, host=urlsplit(url).hostname or "")
    pipeline.database.batch(add_feeds([feed], now=pipeline.clock()))


def change(pipeline: Pipeline, user: str, *statements: Statement) -> None:
    """The rows that a request writes, with the version that it raises."""
    raised = Statement("UPDATE users SET state_version = state_version + 1 WHERE id = ?", [user])
    pipeline.database.batch([raised, *statements])


def subscribe_feeds(pipeline: Pipeline, user: str, *ids: str) -> None:
    change(pipeline, user, *subscribe(user, [Wanted(feed_id=id) for id in ids], at=pipeline.clock()))


def item_ids(pipeline: Pipeline) -> list[str]:
    return [row["id"] for row in pipeline.rows("SELECT id FROM items ORDER BY id")]


def act(pipeline: Pipeline, user: str, chance: random.Random) -> None:
    """Something that a user does."""
    at = pipeline.clock()
    feed, ids = chance.choice(FEEDS), item_ids(pipeline)
    some = Chosen.by_ids(chance.sample(ids, chance.choice((1, 3, 60))))
    up_to = int(chance.choice(pipeline.rows("SELECT arrived FROM items"))["arrived"])
    title, folder = chance.choice((None, "Mine")), chance.choice((None, "News", "日本"))
    wish = chance.choice((None, 900, 7_200))
    options: Sequence[list[Statement]] = (
        [note_reading(user, some, at=at), *mark_items(user, some, is_read=True)],
        mark_items(user, some, is_read=False),
        mark_shown(user, Shown(scope=Scope(feed_id=feed), up_to=up_to)),
        star_items(user, some, at=at),
        edit(
            user,
            feed,
            {
                "title": title,
                "folder": folder,
                "wished_interval": wish,
                "full_text": chance.random() < 0.5,
                "position": chance.randint(0, 9),
            },
            at=at,
        ),
        [add_folders(user, [chance.choice(("Empty", "News"))])],
        [
            Statement(
                "UPDATE subscriptions SET leads = 1 - leads WHERE user_id = ? AND feed_id = ?", [user, feed]
            )
        ],
        unsubscribe(user, [feed], at=at),
        subscribe(user, [Wanted(feed_id=id) for id in FEEDS], at=at),
        [
            users.change_preferences(
                user, chance.choice(('{"order":"newest","theme":"dark"}', '{"order":"published"}'))
            )
        ],
    )
    change(pipeline, user, *chance.choice(options))


def back_up(pipeline: Pipeline) -> UserBackups:
    """Back up whoever has changes, as the daemon does."""
    changed = users.to_back_up(pipeline.database)
    return back_up_users(
        pipeline.database, pipeline.objects, changed, now=pipeline.clock(), is_over=lambda: False
    )


def seen(pipeline: Pipeline) -> dict[str, Any]:
    """All that users see, but for arrival numbers."""
    database = pipeline.database
    return {
        "users": pipeline.rows("SELECT id, name, preferences, created_at FROM users ORDER BY id"),
        "folders": pipeline.rows("SELECT * FROM folders ORDER BY 1, 2"),
        "subscriptions": pipeline.rows(
            """SELECT user_id, feed_id, url, s.title, s.folder, position, s.wished_interval, added_at,
              s.last_read_at, s.leads, registered, s.full_text_after IS NOT NULL AS full_text
            FROM subscriptions AS s JOIN feeds ON feeds.id = feed_id ORDER BY 1, 2"""
        ),
        "items": pipeline.rows(
            f"""SELECT s.user_id, i.id, coalesce(t.is_read, {number("i.arrived <= s.read_up_to")}) AS is_read,
              t.starred_at
            FROM subscriptions AS s JOIN items AS i ON i.feed_id = s.feed_id
            LEFT JOIN item_states AS t
              ON t.user_id = s.user_id AND t.feed_id = s.feed_id AND t.arrived = i.arrived
            ORDER BY 1, 2"""
        ),
        "texts": shown(pipeline),
        "counts": {
            row["id"]: readers.unread(database, row["id"]) for row in pipeline.rows("SELECT id FROM users")
        },
    }


def shown(pipeline: Pipeline) -> dict[str, Body]:
    """The texts of all items in the reader, by their ids. Where the database keeps HTML of items, it has it
    from then on."""
    database = pipeline.database
    bodies = Bodies(pipeline.objects, seconds=lambda: 0.0)
    found = bodies.all_of(database, keys(database, item_ids(pipeline)).values(), shown="reader")
    renew(database, is_over=lambda: False)
    kept = Bodies(pipeline.objects, seconds=lambda: 0.0)
    assert kept.all_of(database, keys(database, item_ids(pipeline)).values(), shown="reader") == found
    return dict(found)
