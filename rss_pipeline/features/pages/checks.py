"""The health check of pages: those without the list that a person has to confirm."""

from rss_pipeline.features.health.model import Look, listed
from rss_pipeline.features.health.sql import Concerned
from rss_pipeline.features.pages.sql import pages_to_confirm


def _to_confirm(look: Look) -> Concerned | None:
    found = pages_to_confirm(look.database)
    return None if found is None else Concerned(len(found), found)


CHECKS = (
    listed(
        "page_lists_known",
        _to_confirm,
        doctor="pages",
        right="each page shows its list",
        wrong="no list that is certain, or not the one that it had",
        fix=lambda rows: (
            f"Look what would be collected now, and confirm it: `rss-pipeline add {rows[0]['url']}`; for a"
            " page of a user, on its own page in the reader."
        ),
        things=("page", "pages"),
    ),
)
