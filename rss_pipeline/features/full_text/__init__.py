"""Full text: the article of the page behind an item whose feed has a teaser only.

```
model.py       what is read of a page: an article, or the reason why there is none
extract.py     the article of a page, by trafilatura: a pure function
comments.py    the readers' comments of a page, removed
pictures.py    the pictures of a page as a browser shows them
walls.py       pages in place of an article: walls, lists, stubs, pages made by scripts
auto.py        whether a feed is truncated, by five of its items: a pure function
entry.py       the key `full_text` of a feed in feeds.yaml
sql.py         which items get their article, what was fetched, what is shown
service.py     articles fetched: one guarded and paced request for each item, ever
kept_pages.py  the pages in the object store: what expires
read_again.py  the pages read again, without a request
about.py       all of it for people: shown by api.py (JSON), pages.py (a feed's page) and cli.py
cli.py         the command `full-text`
dagster.py     the jobs that fetch what is due and what users wait for, and their sensors
```
"""

from rss_pipeline.extras import ARTICLES
from rss_pipeline.features.feature import (
    Feature,
    FeedKey,
    NeededPackages,
    Part,
    UserRows,
    UserText,
    UserWork,
)

FEATURE = Feature(
    name="full_text",
    needs=("pages",),
    automations=lambda _: ["fetch_articles_when_due", "fetch_requested_articles_when_due"],
    clean=Part("full_text.kept_pages:clean_pages"),
    commands={"full-text": Part("full_text.cli:full_text")},
    copied_tables={"articles": ("item_id",), "article_readers": ("user_id", "item_id")},
    dagster=Part("full_text.dagster:parts"),
    feed_keys={
        "full_text": FeedKey(
            read=Part("full_text.entry:read_full_text"),
            register=Part("full_text.entry:register_full_text"),
            leave=Part("full_text.entry:leave_full_text"),
        ),
    },
    forget=Part("full_text.kept_pages:forget_pages"),
    item_note=Part("full_text.about:note_of_item"),
    item_text="SELECT a.html FROM articles AS a WHERE a.item_id = {item} AND a.for_all = 1",
    item_text_of_user=UserText(
        version="""SELECT coalesce(a.requested_at, '') || ' ' || a.page_characters
          FROM article_readers AS r CROSS JOIN articles AS a ON a.item_id = r.item_id
          WHERE r.user_id = {user} AND r.item_id = {item} AND a.for_all = 0 AND a.html IS NOT NULL""",
        html="SELECT a.html FROM articles AS a WHERE a.item_id = {item} AND a.for_all = 0",
    ),
    packages=NeededPackages(ARTICLES, Part("full_text.sql:is_wanted")),
    read_again=Part("full_text.read_again:read_pages_again"),
    reader_page_parts="full_text/in_pages.html",
    reader_pages=(Part("full_text.pages:router"),),
    reader_routers=(Part("full_text.api:router"),),
    status=(Part("full_text.cli:status_section"),),
    user_rows={
        "articles": UserRows(
            table="article_readers",
            columns={"item_id": r"[A-Za-z0-9_-]{1,80}"},
            restore=Part("full_text.sql:restore_readers"),
        ),
    },
    user_work=UserWork(
        next_at=Part("full_text.sql:next_requested"),
        job=Part("full_text.dagster:fetch_requested_articles_job"),
        reason="A user waits for an article.",
    ),
)
