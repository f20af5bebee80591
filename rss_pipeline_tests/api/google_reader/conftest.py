"""Two feeds with items, and two users who subscribe one of them each and one both."""

from dataclasses import dataclass

import pytest

from rss_pipeline.storage.database import Database
from rss_pipeline_tests.api.google_reader.phone import Phone, arrive
from rss_pipeline_tests.storage.values import register, spec
from rss_pipeline_tests.support.reader import Reader


@dataclass(frozen=True, slots=True)
class Two:
    """Ann subscribes `a` (folder News) and `shared`, Bob subscribes `b` and `shared`."""

    ann: Phone
    bob: Phone
    database: Database
    a: list[int]
    """The numbers of three items of `a`, of two of `shared`, and of two of `b`."""
    shared: list[int]
    b: list[int]


@pytest.fixture
def two(reader: Reader) -> Two:
    database = reader.database
    register(database, spec("a"), spec("b"), spec("shared"))
    ann, bob = Phone.of_new_user(reader, "ann"), Phone.of_new_user(reader, "bob")
    ann.subscribe("a", folder="News")
    ann.subscribe("shared")
    bob.subscribe("b", "shared")
    return Two(
        ann,
        bob,
        database,
        a=arrive(database, "a", "a1", "a2", "a3"),
        shared=arrive(database, "shared", "s1", "s2"),
        b=arrive(database, "b", "b1", "b2"),
    )
