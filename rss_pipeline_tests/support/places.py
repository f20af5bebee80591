"""Which tests of a whole pipeline run in both places, and which in Cloudflare by `make soak` only."""

import pytest

EMBEDDED_IN_CI = pytest.mark.parametrize(
    "place", ["embedded", pytest.param("cloudflare", marks=pytest.mark.soak)], indirect=True
)
"""For tests that take one passage for each place of a fault, and for those whose statements another test runs
on D1."""
