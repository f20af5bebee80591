"""Which tests of a whole pipeline run in which places.

Others run at home, and in Cloudflare by `make soak`: each statement is tested in all databases in storage/.
"""

import pytest

EVERYWHERE = pytest.mark.parametrize("place", ["embedded", "cloudflare", "postgres"], indirect=True)
"""For a few tests that together walk through everything."""
ELSEWHERE = pytest.mark.parametrize("place", ["cloudflare", "postgres"], indirect=True)
"""For tests that compare with a pipeline at home."""
