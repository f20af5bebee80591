"""Which tests of a whole pipeline run in which places.

Others run at home, and in Cloudflare by `make soak`: the statements themselves run in all databases in other
tests.
"""

import pytest

EVERYWHERE = pytest.mark.parametrize("place", ["embedded", "cloudflare", "postgres"], indirect=True)
"""For a few tests that together walk through everything."""
ELSEWHERE = pytest.mark.parametrize("place", ["cloudflare", "postgres"], indirect=True)
"""For tests that compare with a pipeline at home."""
