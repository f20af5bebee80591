"""Lists of feeds as OPML: of feeds.yaml at the command line, of a user on the page and in both APIs.

outlines.py reads and writes OPML; service.py brings it into and out of feeds.yaml and a user's subscriptions.
cli.py, api.py (both APIs) and pages.py are its doors.
"""

from rss_pipeline.features.feature import Feature, Part

UPLOAD_BYTES = 1_000_000
"""The most of a list that a user brings."""
_FORM_BYTES = 10_000
"""The most of a form around it: names, boundaries, its head."""

FEATURE = Feature(
    name="opml",
    commands={
        "import": Part("opml.cli:import_"),
        "export-opml": Part("opml.cli:export_opml"),
    },
    reader_calls={
        "subscription/export": Part("opml.api:EXPORT_CALL"),
        "subscription/import": Part("opml.api:IMPORT_CALL"),
    },
    reader_larger_bodies={
        "/api/import/opml": UPLOAD_BYTES,
        "/settings/opml": UPLOAD_BYTES + _FORM_BYTES,
    },
    reader_page_parts="opml/in_pages.html",
    reader_pages=(Part("opml.pages:router"),),
    reader_routers=(Part("opml.api:router"),),
    reader_settings={"/settings/opml": "Feed lists"},
)
