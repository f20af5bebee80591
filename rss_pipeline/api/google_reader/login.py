"""The calls of the account: ClientLogin, the token T, and who the user is."""

import logging

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.google_reader.answers import Refused, as_json, text
from rss_pipeline.api.google_reader.call import Call, signed_in
from rss_pipeline.api.hosts import client_address
from rss_pipeline.reader.accounts.login import LoggedIn, log_in_with_app_password
from rss_pipeline.reader.accounts.users import user_name
from rss_pipeline.reader.query import NOTHING

_logger = logging.getLogger(__name__)


async def client_login(call: Call) -> Response:
    """POST accounts/ClientLogin: lines of `name=value`, or JSON where Read You wants it.

    The token has no `=`, at which NetNewsWire would split it. Name and password are taken from the body only:
    logs show addresses.
    """
    _no_password_in_address(call)
    names, passwords = call.form.all("Email"), call.form.all("Passwd")
    if not names or not passwords:
        raise Refused(400, "Error=BadAuthentication\nInfo=Send Email and Passwd as fields of a form.")
    outcome = await run_in_threadpool(
        log_in_with_app_password,
        call.service.stores.database,
        name=names[0].strip(),
        password=passwords[0],
        address=client_address(call.request.scope),
        client=call.request.headers.get("user-agent", ""),
        clock=call.service.clock,
    )
    if isinstance(outcome, LoggedIn):
        address = client_address(call.request.scope)
        _logger.info("login of an app: %s from %s", outcome.user_id, address)
        lines = {"SID": outcome.token, "LSID": "null", "Auth": outcome.token}
        if call.fields.first("output") == "json":
            return as_json(lines)
        return text("".join(f"{name}={value}\n" for name, value in lines.items()))
    address = client_address(call.request.scope)
    if outcome.retry_after is not None:
        _logger.warning("a login of an app from %s was refused: too many attempts", address)
        raise Refused(
            429,
            "Error=BadAuthentication\nInfo=Too many attempts. Wait as long as the header Retry-After says.",
            headers={"Retry-After": str(outcome.retry_after)},
        )
    _logger.warning("a login of an app from %s was refused: wrong name or app password", address)
    raise Refused(
        401,
        "Error=BadAuthentication\nInfo=Name or password is wrong. Apps log in with an app password; the"
        " password of the account opens no app. Make one in the settings of the reader.",
    )


async def refuse_login_by_address(call: Call) -> Response:
    """GET accounts/ClientLogin."""
    _no_password_in_address(call)
    raise Refused(405, "Log in by POST, with Email and Passwd in the body.", headers={"Allow": "POST"})


async def token(call: Call) -> Response:
    """GET token: the T of writes. It goes unencoded into forms, and newsboat sends it with its newline.

    The header alone opens all calls, so T is the same token; Liferea shows itself by it in one call.
    """
    session = signed_in(call)
    await session.ask(NOTHING)
    return text(session.token)


async def user_info(call: Call) -> Response:
    """GET user-info, by which RSS Guard, Read You and Fluent Reader test a login. All values are strings."""
    session = signed_in(call)
    name = await session.ask(user_name(session.user_id))
    return as_json(
        {
            "userId": session.user_id,
            "userName": name,
            "userProfileId": session.user_id,
            "userEmail": name,
        }
    )


def _no_password_in_address(call: Call) -> None:
    if "Passwd" in call.query or "Email" in call.query:
        raise Refused(
            400,
            "Name and password in an address are in the logs of every machine between. Send them in the"
            " body of a POST, and make a new app password.",
        )
