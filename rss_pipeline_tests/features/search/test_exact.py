"""A search finds what a plain scan of the stored items finds, in the same order, whatever way it takes."""

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rss_pipeline.features.search import finding
from rss_pipeline.features.search.index_file import open_to_write
from rss_pipeline.storage.database import Row
from rss_pipeline_tests.features.search.conftest import Library
from rss_pipeline_tests.features.search.test_build import repair
from rss_pipeline_tests.storage.subscriptions.readers import add_user, subscribe
from rss_pipeline_tests.storage.values import change, item, register, spec, visit
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.examples import examples

FEEDS = [f"feed{n}" for n in range(8)]
USERS = {"one": FEEDS[6:7], "most": FEEDS[:7]}
FIRST_DAY = date(2025, 11, 20)
DAYS = 100
_WORDS = ["sun", "moon", "Sea", "sunny"]
_HAN = "东京都"


def made_up(chance: random.Random, most: int) -> str:
    """Words and runs of Chinese, with a space between each two."""
    pieces = chance.choices([*_WORDS, *_WORDS, "".join(chance.choices(_HAN, k=chance.randint(1, 4)))], k=most)
    return " ".join(pieces[: chance.randint(0, most)])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """300 items; some of them were rewritten or deleted after they were indexed."""
    folder = tmp_path_factory.mktemp("exact")
    chance = random.Random(7)
    with (
        open_to_write(folder / "search.sqlite") as file,
        closing(migrated(folder / "rss.sqlite")) as database,
    ):
        library = Library(database, file)
        register(database, *map(spec, FEEDS))
        for user, feeds in USERS.items():
            add_user(database, user)
            subscribe(database, user, *feeds)
        for document in range(60):
            some = [
                item(
                    f"{document}-{n}",
                    title=made_up(chance, 3),
                    authors=(made_up(chance, 2),),
                    content_html=f"<p>{made_up(chance, 6)}</p>",
                    pub_date=datetime.combine(
                        FIRST_DAY + timedelta(days=chance.randrange(DAYS)), time(chance.randrange(24)), UTC
                    ),
                )
                for n in range(5)
            ]
            feed = chance.choice(FEEDS)
            visit(database, some, id=feed)
            if document % 20 == 19:
                library.index()
                repair(library, feed, f"{document}-1", f"<p>{made_up(chance, 6)}</p>", minutes=document)
                change(database, "DELETE FROM items WHERE guid = ?", f"{document - 7}-2")
        library.index()
        yield library


@dataclass(frozen=True, slots=True)
class Word:
    """A word, phrase or Chinese word that is searched for."""

    text: str
    is_author: bool = False

    def __str__(self) -> str:
        return f'{"author:" if self.is_author else ""}"{self.text}"'

    def is_in(self, row: Row) -> bool:
        authors = json.loads(row["authors"])
        columns = authors if self.is_author else [row["title"], *authors, row["content_html"]]
        return any(map(self._is_in_text, columns))

    def _is_in_text(self, text: str) -> bool:
        pieces = text.removeprefix("<p>").removesuffix("</p>").lower().split()
        wanted = self.text.lower().split()
        if wanted[0][0] in _HAN:
            return any(wanted[0] in piece for piece in pieces)
        return any(pieces[at : at + len(wanted)] == wanted for at in range(len(pieces)))


_HAN_WORDS = st.text(_HAN, min_size=2, max_size=3)
_TEXTS = st.one_of(
    st.lists(st.sampled_from(_WORDS), min_size=1, max_size=2).map(" ".join), _HAN_WORDS, st.sampled_from(_HAN)
)
_DAYS = st.none() | st.integers(0, DAYS).map(lambda days: FIRST_DAY + timedelta(days=days))


@st.composite
def _words(draw: st.DrawFn) -> tuple[list[Word], list[Word]]:
    found = draw(st.lists(st.builds(Word, _TEXTS, st.booleans()), max_size=3, unique_by=str))
    # More words of one character are left out.
    singles = [word for word in found if word.text in _HAN]
    found = [word for word in found if word not in singles[2:]]
    wanted = draw(st.integers(0, len(found)))
    return found[:wanted], found[wanted:]


@pytest.mark.parametrize("marked_feeds", [finding.MARKED_FEEDS, 0], ids=["marked", "looked through"])
@given(
    words=_words(),
    feed=st.none() | st.sampled_from(FEEDS),
    after=_DAYS,
    before=_DAYS,
    user=st.sampled_from(sorted(USERS)),
    limit=st.sampled_from([7, 40, 500]),
)
@settings(max_examples=examples(50))
def test_a_search_finds_what_a_scan_finds(
    library: Library,
    marked_feeds: int,
    words: tuple[Sequence[Word], Sequence[Word]],
    feed: str | None,
    after: date | None,
    before: date | None,
    user: str,
    limit: int,
) -> None:
    wanted, unwanted = words
    query = " ".join(
        [
            *map(str, wanted),
            *(f"-{word}" for word in unwanted),
            *([f"feed:{feed}"] if feed else []),
            *([f"after:{after}"] if after else []),
            *([f"before:{before}"] if before else []),
        ]
    )
    stored = library.database.query("SELECT * FROM items ORDER BY arrived DESC").rows
    scanned = [
        row["guid"]
        for row in stored
        if query
        and row["feed_id"] in USERS[user]
        and feed in (None, row["feed_id"])
        and all(word.is_in(row) for word in wanted)
        and not any(word.is_in(row) for word in unwanted)
        and (after is None or row["pub_date"] >= after.isoformat())
        and (before is None or row["pub_date"] < before.isoformat())
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finding, "MARKED_FEEDS", marked_feeds)
        assert library.found(query, user=user, limit=limit) == scanned
        assert sorted(library.found(query, user=user, order="rank", limit=limit)) == sorted(scanned)
