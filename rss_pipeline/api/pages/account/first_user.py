"""The page on which the first user is made, while there is none: by whoever knows the code.

A browser on this machine needs no code.
"""

import logging
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.direct import is_direct
from rss_pipeline.api.hosts import client_address, is_of_own_page
from rss_pipeline.api.pages.account.login import begin_session
from rss_pipeline.api.pages.forms import form_fields, sentence
from rss_pipeline.api.pages.render import page, see_other
from rss_pipeline.api.problems import ApiError
from rss_pipeline.environment import MOST_CONTACT_CHARACTERS
from rss_pipeline.errors import CodeRefused, ContactRefused, HashingBusy, PasswordRefused, UserRefused
from rss_pipeline.reader.accounts.passwords import LEAST_CHARACTERS, MOST_CHARACTERS, check_new
from rss_pipeline.reader.accounts.users import check_new_name
from rss_pipeline.reader.first_user import add_first_user, check_code, has_users
from rss_pipeline.reader.subscribe import left_out

router = APIRouter(include_in_schema=False)

_MOST_NAME_CHARACTERS = 64
_BUSY_SECONDS = 2

_logger = logging.getLogger(__name__)


@router.get("/first-user")
async def form(request: Request) -> Response:
    """The form; from elsewhere than this machine it has a field for the code."""
    if await run_in_threadpool(has_users, request.app.state.stores.database):
        return see_other("/login")
    return await _form(request, needs_code=await _needs_code(request))


@router.post("/first-user")
async def make(request: Request) -> Response:
    """Make the user, subscribe to the feeds of feeds.yaml if that is wanted, and log in."""
    scope, state = request.scope, request.app.state
    # Without a cookie there is nothing that a page of another site would use; but it could choose the user.
    if not is_of_own_page(scope):
        raise ApiError("foreign_origin", "A page of another site sent this.")
    fields = await form_fields(request)
    name, password, again = (fields.get(each, "") for each in ("name", "password", "again"))
    contact = "" if state.stores.settings.has_contact else fields.get("contact", "").strip()
    subscribe, needs_code = "subscribe" in fields, await _needs_code(request)
    again_with: dict[str, Any] = {"name": name, "subscribe": subscribe, "contact": contact}
    if await run_in_threadpool(has_users, state.stores.database):
        return see_other("/login")
    try:
        check_new_name(name)
        check_new(password, name=name)
        if password != again:
            raise PasswordRefused("the two passwords are not the same; type them again")
        if needs_code:
            code = fields.get("code", "")
            await run_in_threadpool(check_code, state.stores.database, code, now=state.clock())
        stored = await run_in_threadpool(
            add_first_user,
            state.stores.database,
            name=name,
            password=password,
            with_listed=subscribe,
            clock=state.clock,
            settings=state.stores.settings,
            contact=contact,
        )
    except CodeRefused as refused:
        # For fail2ban and its like.
        _logger.warning("code for the first user refused: %s", client_address(scope))
        return await _form(request, needs_code=True, **again_with, code_refused=refused)
    except UserRefused as refused:
        return await _form(request, needs_code=needs_code, **again_with, name_error=sentence(refused))
    except PasswordRefused as refused:
        return await _form(request, needs_code=needs_code, **again_with, password_error=sentence(refused))
    except ContactRefused as refused:
        return await _form(request, needs_code=needs_code, **again_with, contact_error=sentence(refused))
    except HashingBusy as busy:
        raise ApiError("too_busy", sentence(busy), retry_after=_BUSY_SECONDS) from busy
    if stored is None:
        return see_other("/login")
    answer = see_other("/")
    # Refused by the throttle: somebody has tried this name before. The user is there all the same.
    await begin_session(request, answer, name=stored, password=password)
    return answer


async def _needs_code(request: Request) -> bool:
    state = request.app.state
    if not is_direct(request.scope, port=state.stores.settings.reader_port):
        return True
    return bool(await run_in_threadpool(state.is_passed_on, request.scope))


async def _form(
    request: Request,
    *,
    needs_code: bool,
    name: str = "",
    subscribe: bool = True,
    contact: str = "",
    name_error: str | None = None,
    password_error: str | None = None,
    contact_error: str | None = None,
    code_refused: CodeRefused | None = None,
) -> Response:
    status = 200 if name_error is None and password_error is None and contact_error is None else 422
    if code_refused is not None:
        status = 403
    return page(
        request,
        "first_user.html",
        title="Make the first user",
        status=status,
        user_name=name[:_MOST_NAME_CHARACTERS],
        subscribe=subscribe,
        asks_contact=not request.app.state.stores.settings.has_contact,
        contact=contact[:MOST_CONTACT_CHARACTERS],
        contact_error=contact_error,
        most_contact=MOST_CONTACT_CHARACTERS,
        needs_code=needs_code,
        # A stranger learns nothing of the file.
        left_out=None if needs_code else await run_in_threadpool(left_out, request.app.state.stores.database),
        name_error=name_error,
        password_error=password_error,
        code_error=None if code_refused is None else sentence(code_refused),
        least=LEAST_CHARACTERS,
        most=MOST_CHARACTERS,
        retry_after=None if code_refused is None else code_refused.retry_after,
    )
