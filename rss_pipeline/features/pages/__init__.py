"""Pages: the entries of a web page without a feed, collected as items of a feed.

```
model.py       an entry, and what was found of a page: certain, a candidate to confirm, or none
page.py        a page as rows: elements, text, links; menus and margins
lists.py       the groups of links of one structure, and the box of each entry
titles.py      titles of the boxes; dates.py finds dates, entries.py the rest; structured.py reads JSON-LD
judged.py      how much each group looks like entries; doubts.py what is against the best
detect.py      the list of a page, of all these: a pure function
links.py       the identity of an entry; addresses.py: words of addresses, of news and of sections
known.py       marks of the entries that a page had; with them detect.py knows a list again
selectors.py   the list by selectors of feeds.yaml, in a child of the parser process
document.py    the document of a page as that of a feed, in the parser process
entry.py       the key `page` of a feed in feeds.yaml
permission.py  robots.txt before each request of a page; robots.py has its rules
sql.py         statements; replay.py is for a database that was lost
service.py     the look at an address
checks.py      the health check
cli.py         the command `page`
```
"""

from datetime import timedelta

from rss_pipeline.features.feature import Feature, FeedKey, Part, Replaying

AUTO, CONFIRMED = "auto", "confirmed"
"""Values of the key `page`: a list that is certain, and one that a person has confirmed."""

MAY_ACCEPT = f"""(consecutive_failures > 0 AND last_error_kind IN ('html', 'no_list', 'list_lost')
  AND (page IN ('{AUTO}', '{CONFIRMED}') OR page IS NULL AND listed = 0))"""

FEATURE = Feature(
    name="pages",
    needs=("streams",),
    checks=(Part("pages.checks:CHECKS"),),
    commands={"page": Part("pages.cli:page")},
    feed_keys={
        "page": FeedKey(
            read=Part("pages.entry:read_page_key"),
            register=Part("pages.sql:register_pages"),
            stays=True,
            in_lists=(AUTO, CONFIRMED),
            memory="page_known",
            remembers=Part("pages.document:first_memory"),
            accept=Part("pages.sql:accept_page"),
            may_accept=MAY_ACCEPT,
            reads=Part("pages.document:read_document"),
            # A page is made for people.
            least_interval=timedelta(hours=1),
            before_request=Part("pages.permission:Permission"),
            parse=Part("pages.document:part_of"),
            at_close=Part("pages.sql:note_page"),
        ),
    },
    reader_page_parts="pages/in_pages.html",
    without_feed=Part("pages.service:offer"),
    replaying=Replaying(of_feed=Part("pages.replay:PageInReplay")),
)
