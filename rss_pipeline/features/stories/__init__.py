"""Stories: what several feeds write of one event, found together, with the reasons.

No model is needed. model.py (an item, a decision), copies.py (the same article again), words.py,
vocabulary.py, paired.py (scripts without spaces), facts.py and article.py (an item read), boilerplate.py
(what a feed repeats), common.py and pair.py (two articles compared), judge.py (the decision, with the
weights), frequencies.py (which begins with common.txt, the common words of news), segments.py, records.py and
window.py (the stories of a week), window_file.py (their files beside the search index). The same items in the
same order give the same stories.

service.py decides new items at each poll and stores stories of two and more, by sql.py; dagster.py has the
asset, cli.py the command. What one user sees: reading.py (lists and counts), person.py (a story, and why),
acts.py (what they say of it), pages.py and api.py.
"""

from rss_pipeline.features.feature import Feature, Part

FEATURE = Feature(
    name="stories",
    commands={
        "stories": Part("stories.cli:stories"),
    },
    dagster=Part("stories.dagster:parts"),
    folding=Part("stories.reading:FOLDING"),
    poll_events=Part("stories.dagster:poll_events"),
    reader_page_parts="stories/in_pages.html",
    reader_pages=(Part("stories.pages:router"),),
    reader_routers=(Part("stories.api:router"),),
)
