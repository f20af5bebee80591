"""The contract with code of uvicorn and FastAPI that is overridden: it is what it was when ours was written.

With another release this test fails before a user's installation does. Then
`python -m rss_pipeline_tests.api.test_server_private` prints what has changed, and with `--write` it writes
the tables anew.
"""

import fastapi.routing
import uvicorn.protocols.http.httptools_impl
import uvicorn.server
from fastapi.dependencies.models import Dependant

from rss_pipeline_tests.support.read_code import ReadCode

USED: dict[str, object] = {
    # api/server.py: the states of a connection, and its limits.
    "HttpToolsProtocol": uvicorn.protocols.http.httptools_impl.HttpToolsProtocol,
    "RequestResponseCycle": uvicorn.protocols.http.httptools_impl.RequestResponseCycle,
    # web/on_demand.py: clients that came before the server was there, and its end when it is idle.
    "Server": uvicorn.server.Server,
    "ServerState": uvicorn.server.ServerState,
    # api/routing.py: the parameters of a route, so that it makes its answer itself.
    "APIRoute": fastapi.routing.APIRoute,
    "Dependant": Dependant,
}
READ_IN = {
    "fastapi": "0.165.0",
    "uvicorn": "0.54.0",
}
DIGESTS = {
    "APIRoute": "022b86b01668",
    "Dependant": "9f6d0dba138b",
    "HttpToolsProtocol": "18fdf324b11b",
    "RequestResponseCycle": "e67d470d435d",
    "Server": "06e799f7c58f",
    "ServerState": "f2260fbf1015",
}
CODE = ReadCode(module="rss_pipeline_tests.api.test_server_private", used=USED, read_in=READ_IN)


def test_the_servers_are_those_of_which_the_overridden_code_was_read() -> None:
    changed = {name for name, digest in CODE.digests().items() if DIGESTS.get(name) != digest}
    assert (CODE.releases(), changed) == (READ_IN, set())


if __name__ == "__main__":
    CODE.main()
