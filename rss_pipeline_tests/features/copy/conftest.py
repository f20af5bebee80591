"""A home and a server, empty, with a little in them, and full."""

from pathlib import Path

import pytest

from rss_pipeline_tests.features.copy.houses import House, fill, fill_a_little, on_cloudflare
from rss_pipeline_tests.support.services.cloudflare import Cloudflare


@pytest.fixture(params=["cloudflare", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> House:
    """A home without anything and an empty server."""
    home = tmp_path / "home"
    if request.param == "cloudflare":
        return on_cloudflare(home, request.getfixturevalue("cloudflare"))
    return House(home, "postgres+folder", {"DATABASE_URL": request.getfixturevalue("postgres_url")})


@pytest.fixture
def small(tmp_path: Path, cloudflare: Cloudflare) -> House:
    """A home with a few rows and objects, and an empty Cloudflare."""
    house = on_cloudflare(tmp_path / "home", cloudflare)
    with house.side("embedded") as side:
        fill_a_little(side)
    return house


@pytest.fixture
def house(empty: House) -> House:
    """A full home and an empty server."""
    with empty.side("embedded") as side:
        fill(side)
    return empty
