"""Cases made at random, each with its time: 900 in CI, 50,000 by `make soak`.

No test is in here.
"""

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rss_pipeline_tests.support.examples import examples

SECONDS = 5.0
"""The most processor time that a case may take: they are small, and what takes long hangs."""
TIMES = pytest.mark.parametrize(
    "times",
    [
        pytest.param(1, id="short"),
        pytest.param(60, id="long", marks=[pytest.mark.soak, pytest.mark.timeout(3600)]),
    ],
)


def fuzz(cases: int, check: Callable[..., None], **strategies: st.SearchStrategy[Any]) -> None:
    """Run `check` on so many cases, or on the part of them that the profile wants. Each must end in time."""

    def timed(**values: Any) -> None:
        started = time.process_time()
        check(**values)
        assert time.process_time() - started < SECONDS

    wanted = settings(
        max_examples=examples(cases),
        deadline=None,
        # What a case is made of says enough: shrinking it is what takes the time, where one fails.
        phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    wanted(given(**strategies)(timed))()
