"""Copies of an installation from one pair of stores to another, compared byte by byte.

service.py  the copy, the marker in the target, and the objects
sql.py      the tables, page by page, and their fingerprints
cli.py      the command `copy`
"""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="copy",
    commands={"copy": Part("copy.cli:copy")},
)
