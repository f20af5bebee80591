"""Search in all that a user reads: an index in a file of its own, brought up to date while items come.

The index: index_file.py (the file, its tables), writing.py (rows into it), finding.py (numbers of items out
of it), index_build.py (kept current, by a process that runs while the reader does), words.py (texts as
words). A search: search_query.py (a user's text), service.py (what it finds), sql.py (items from the
database), api.py and pages.py. The command, and the process: cli.py.
"""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="search",
    commands={
        "search-index": Part("search.cli:search_index"),
    },
    # 10 KB of text in any script. What is too much for a search is left out by it.
    reader_longer_addresses={"/api/search": 36_000, "/search": 36_000},
    reader_objects=(Part("search.api:index_readers"),),
    reader_page_parts="search/in_pages.html",
    reader_pages=(Part("search.pages:router"),),
    reader_problems={
        "search_unavailable": (
            503,
            "Search does not work now",
            "Try again in a minute; the operator's log has the reason.",
        ),
    },
    reader_processes=(Part("search.cli:index_process"),),
    reader_routers=(Part("search.api:router"),),
)
