"""Statistics of a user's feeds: what comes, what is read, what it takes in the stores.

sql.py counts, service.py makes figures of it, plots.py draws SVG, pages.py shows both.
"""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="statistics",
    reader_objects=(Part("statistics.pages:kept_figures"),),
    reader_page_parts="statistics/in_pages.html",
    reader_pages=(Part("statistics.pages:router"),),
)
