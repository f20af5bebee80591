"""Which tests of a whole pipeline run in which places, and which in Cloudflare by `make soak` only."""

import pytest

EMBEDDED_IN_CI = pytest.mark.parametrize(
    "place", ["embedded", pytest.param("cloudflare", marks=pytest.mark.soak)], indirect=True
)
"""For tests that take one passage for each place of a fault, and for those whose statements another test runs
on D1."""

EVERYWHERE = pytest.mark.parametrize("place", ["embedded", "cloudflare", "postgres"], indirect=True)
"""For a few tests that together walk through everything: each statement is tested on Postgres in storage/."""
ELSEWHERE = pytest.mark.parametrize("place", ["cloudflare", "postgres"], indirect=True)
"""For tests that compare with a pipeline at home."""
