"""The reader's server: its pages, its JSON API and the Google Reader API."""

import sys

# FastAPI asks of each model whether it is one of Pydantic 1, and loads that for the question: 1.4 MB and
# 13 ms of each start. Where there is none it says no, as we have none.
sys.modules.setdefault("pydantic.v1", None)  # type: ignore[arg-type]
