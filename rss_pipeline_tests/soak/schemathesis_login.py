"""The login of `schemathesis run`: loaded by its own process, with address and user from the environment.

No test is in here.
"""

import os
import threading
from typing import Any

import httpx
import schemathesis

from rss_pipeline_tests.support.waiting import PATIENCE

_LOCK = threading.Lock()
_TOKENS = ["none"]


@schemathesis.auth(refresh_interval=None)
class Login:
    """A token that opens the reader now: some of the requests end their session."""

    def get(self, case: Any, context: Any) -> str:
        with _LOCK, httpx.Client(base_url=os.environ["READER_URL"], timeout=PATIENCE) as client:
            known = client.get("/api/user/preferences", headers={"Authorization": f"Bearer {_TOKENS[-1]}"})
            if known.status_code == 401:
                given = {"name": os.environ["READER_NAME"], "password": os.environ["READER_PASSWORD"]}
                _TOKENS.append(client.post("/api/auth/login", json=given).raise_for_status().json()["token"])
            return _TOKENS[-1]

    def set(self, case: Any, data: str, context: Any) -> None:
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {data}"}
