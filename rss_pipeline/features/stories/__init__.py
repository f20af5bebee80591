"""Stories: what several feeds write of one event, found together, with the reasons.

No model is needed. model.py (an item, a decision), copies.py (the same article again), reissues.py (an item
that its feed brings again), words.py, vocabulary.py, paired.py (scripts without spaces), facts.py and
article.py (an item read), boilerplate.py (what a feed repeats), common.py, facts_compared.py and pair.py (two
articles compared), judge.py (the decision, with the weights), frequencies.py (which begins with common.txt,
the common words of news), segments.py, records.py and window.py (the stories of a week), window_file.py
(their files beside the search index). The same items in the same order give the same stories.

service.py decides new items at each poll and stores stories of two and more, by sql.py, under a lease
(lease.py), with the parts of them that each user has by their own feeds (views.py); moves.py has what an
operator says for all, dagster.py the asset, cli.py the command. What one user sees: reading.py (lists and
counts), person.py (a story, and why), acts.py (what they say of it), pages.py and api.py.
"""

from rss_pipeline.features.feature import Feature, Part, UserRows

FEATURE = Feature(
    name="stories",
    clean=Part("stories.moves:clean_moves"),
    commands={
        "stories": Part("stories.cli:stories"),
    },
    copied_tables={
        "story_members": ("item_id",),
        "story_choices": ("user_id", "item_id"),
        "story_acts": ("user_id", "act"),
        "story_views": ("user_id", "item_id"),
    },
    dagster=Part("stories.dagster:parts"),
    folding=Part("stories.reading:FOLDING"),
    follow_subscriptions=Part("stories.views:of_feeds"),
    forget=Part("stories.moves:forget_moves"),
    poll_events=Part("stories.dagster:poll_events"),
    poll_waits=Part("stories.sql:is_restoring"),
    reader_page_parts="stories/in_pages.html",
    reader_pages=(Part("stories.pages:router"),),
    reader_routers=(Part("stories.api:router"),),
    restored=Part("stories.moves:restored"),
    user_rows={
        "stories": UserRows(
            table="story_choices",
            columns={"item_id": r"[A-Za-z0-9_-]{1,80}", "story_id": r"[A-Za-z0-9_-]{1,80}~?"},
            restore=Part("stories.acts:restore_choices"),
        ),
    },
)
