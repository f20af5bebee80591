"""Parts that the tests of the registry share: a text as its feeds, or as its mistakes.

No test is in here.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.collector.registry.load import parse_registry
from rss_pipeline.errors import RegistryError

PATH = Path("feeds.yaml")
SECRET = "s3cr3t/with@signs#and%41"


def specs(text: str, **environ: str) -> list[FeedSpec]:
    return list(parse_registry(text, path=PATH, environ=environ).feeds)


def one(text: str, **environ: str) -> FeedSpec:
    (spec,) = specs(text, **environ)
    return spec


def mistakes(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(RegistryError) as caught:
        parse_registry(text, path=PATH, environ=environ or {})
    return caught.value.mistakes


def mistakes_or_none(text: str) -> list[str]:
    try:
        specs(text)
    except RegistryError as error:
        return error.mistakes or ["a refusal without a mistake"]
    return []
