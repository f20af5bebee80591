"""A deployment in which all is well, for tests of `rss-pipeline doctor`: each makes one thing wrong in it."""

from pathlib import Path

from rss_pipeline.storage.backends.d1.database import D1Database
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline_tests.support.databases import migrated

KEY = "backups/news/2026-03-02T08:00:00Z.xml"


def healthy_home(folder: Path) -> Path:
    """One feed with an item, its backup, Dagster's home, in the folder `home`; feeds.yaml is beside it."""
    home = folder / "home"
    database = migrated(home / "rss.sqlite")
    fill(database)
    database.close()
    FolderStore(home / "objects").put(KEY, b"<rss/>", content_type="application/xml")
    (home / "dagster").mkdir()
    (home / "dagster" / "dagster.yaml").write_text("telemetry: {enabled: false}\n", "utf-8")
    (folder / "feeds.yaml").write_text(
        "- url: https://127.0.0.1/\n  id: news\n  allow_private: true\n", "utf-8"
    )
    home.chmod(0o700)
    return home


def fill(database: SqliteDatabase | D1Database) -> None:
    """The rows of the feed and its item."""
    at = "'2026-03-02T08:00:00Z'"
    database.query(
        "INSERT INTO feeds (id, url, host, next_fetch_at, created_at, last_body_at)"
        f" VALUES ('news', 'https://news.example/', 'news.example', '2100-01-01T00:00:00Z', {at}, {at})"
    )
    database.query(
        "INSERT INTO items"
        " (id, feed_id, guid, pub_date, created_at, guid_source, pub_date_source, backup_key)"
        f" VALUES ('i', 'news', 'g', {at}, {at}, 'guid', 'feed', '{KEY}')"
    )
