"""The addresses of the Google Reader API and the function of each call.

What clients call and is not here is answered by 501 or 404, never by an empty list: half an API is worse for
a client than an error.
"""

import logging
import re
import time
from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from rss_pipeline.api.asgi import Scope
from rss_pipeline.api.google_reader import listings
from rss_pipeline.api.google_reader import subscription_calls as subscriptions
from rss_pipeline.api.google_reader import tag_edits as marks
from rss_pipeline.api.google_reader.call import Answer, Call, FeatureCall, NewestSeen, Service, signed_in
from rss_pipeline.api.google_reader.forms import MAX_BODY_BYTES, Fields, form_fields, query_fields
from rss_pipeline.api.google_reader.responses import RefusedCall, as_json, refusal, text
from rss_pipeline.api.gzip_member import PackedParts
from rss_pipeline.api.hosts import client_address
from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.features import FEATURES
from rss_pipeline.reader.accounts.login import LoggedIn, log_in_with_app_password
from rss_pipeline.reader.accounts.users import user_name
from rss_pipeline.reader.bodies import Bodies
from rss_pipeline.reader.query import NOTHING
from rss_pipeline.reader.stores import Stores

# The addresses of the calls: below the prefix that we document, and below those that people type.
#
# No user finds which URL to type into an app, so other servers' prefixes are taken too, also behind ours:
# some apps append them to what was typed (RSS Guard `/api/greader.php`). One may end with a slash, or with
# what the app appends itself.

PREFIX = "/greader"
"""The one that we document."""
_TYPED = ("", PREFIX, "/greader.php", "/api", "/api/greader", "/api/greader.php")
_APPENDED = ("", "/api/greader.php", "/api", "/api/greader")
PREFIXES = tuple(dict.fromkeys(f"{typed}{appended}" for appended in _APPENDED for typed in _TYPED))

_PREFIX = re.compile(r"(?:/+(?:greader\.php|greader|api)(?=/|$))*")
_DOUBLE = re.compile(r"(?:reader/+api/+0/+)+(?=accounts/|reader/)")
_SLASHES = re.compile(r"/+")
_WITH_STREAM = re.compile(r"(reader/+(?:api/+0/+stream/+contents|atom)/+)(.+)", re.DOTALL)
_OWN = ("accounts/", "reader/")


def call_of(path: str) -> str | None:
    """The call of an address, as `reader/api/0/token`; empty for a prefix alone, None for no call.

    Slashes before the call may be doubled; those behind it belong to a stream's id (`feed/http://...`).
    """
    match = _PREFIX.match(path)
    assert match is not None
    prefix = _SLASHES.sub("/", match[0])
    if prefix not in PREFIXES:
        return None
    rest = _DOUBLE.sub("", path[match.end() :].lstrip("/"), count=1)
    if rest.startswith(_OWN):
        return _plain(rest)
    if not rest and "greader" in prefix:
        return ""
    is_check = rest.rstrip("/") == "check/compatibility" and "greader" in prefix
    return "check/compatibility" if is_check else None


def addresses_of(call: str) -> list[str]:
    """All addresses of a call, for layers that go by the path."""
    prefixes = [*PREFIXES, *(f"{PREFIX}/{other}" for other in _APPENDED if other)]
    return [f"{prefix}{slash}{call}" for prefix in prefixes for slash in ("/", "//")]


def _plain(call: str) -> str:
    """The call with single slashes; a stream's id at its end stays as it is."""
    if match := _WITH_STREAM.fullmatch(call):
        return _SLASHES.sub("/", match[1]) + match[2]
    return _SLASHES.sub("/", call).rstrip("/")


_logger = logging.getLogger(__name__)


async def client_login(call: Call) -> Response:
    """POST accounts/ClientLogin: lines of `name=value`, or JSON where Read You wants it.

    The token has no `=`, at which NetNewsWire would split it. Name and password are taken from the body only:
    logs show addresses.
    """
    _no_password_in_address(call)
    names, passwords = call.form.all("Email"), call.form.all("Passwd")
    if not names or not passwords:
        raise RefusedCall(400, "Error=BadAuthentication\nInfo=Send Email and Passwd as fields of a form.")
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
        raise RefusedCall(
            429,
            "Error=BadAuthentication\nInfo=Too many attempts. Wait as long as the header Retry-After says.",
            headers={"Retry-After": str(outcome.retry_after)},
        )
    _logger.warning("a login of an app from %s was refused: wrong name or app password", address)
    raise RefusedCall(
        401,
        "Error=BadAuthentication\nInfo=Name or password is wrong. Apps log in with an app password; the"
        " password of the account opens no app. Make one in the settings of the reader.",
    )


async def refuse_login_by_address(call: Call) -> Response:
    """GET accounts/ClientLogin."""
    _no_password_in_address(call)
    raise RefusedCall(405, "Log in by POST, with Email and Passwd in the body.", headers={"Allow": "POST"})


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
        raise RefusedCall(
            400,
            "Name and password in an address are in the logs of every machine between. Send them in the"
            " body of a POST, and make a new app password.",
        )


_API = "reader/api/0/"
_OF_FEATURES: Mapping[str, FeatureCall] = {
    f"{_API}{name}": part.load() for feature in FEATURES for name, part in feature.reader_calls.items()
}

CALLS: Mapping[str, Mapping[str, Answer]] = {
    "accounts/ClientLogin": {"POST": client_login, "GET": refuse_login_by_address},
    f"{_API}token": {"GET": token},
    f"{_API}user-info": {"GET": user_info},
    f"{_API}stream/items/ids": {"GET": listings.stream_item_ids, "POST": listings.stream_item_ids},
    f"{_API}stream/items/contents": {"POST": listings.item_contents, "GET": listings.item_contents},
    f"{_API}stream/contents": {"GET": listings.stream_contents, "POST": listings.stream_contents},
    "reader/atom": {"GET": listings.atom},
    f"{_API}subscription/list": {"GET": subscriptions.subscription_list},
    f"{_API}subscription/edit": {"POST": subscriptions.subscription_edit},
    f"{_API}subscription/quickadd": {"POST": subscriptions.quickadd},
    f"{_API}tag/list": {"GET": subscriptions.tag_list},
    f"{_API}rename-tag": {"POST": subscriptions.rename_tag},
    f"{_API}disable-tag": {"POST": subscriptions.disable_tag},
    f"{_API}unread-count": {"GET": subscriptions.unread_count},
    f"{_API}edit-tag": {"POST": marks.edit_tag},
    f"{_API}mark-all-as-read": {"POST": marks.mark_all_as_read},
    **{name: call.by_method for name, call in _OF_FEATURES.items()},
}
"""The functions of each call by method."""
WITH_STREAM = (f"{_API}stream/contents", "reader/atom")
"""Calls with a stream's id at the end of the address."""
NOT_THERE = frozenset(
    f"{_API}{call}"
    for call in (
        "subscription/export",
        "subscription/import",
        "preference/list",
        "preference/set",
        "preference/stream/list",
        "preference/stream/set",
        "friend/list",
        "friend/edit",
        "friend/groups",
        "friend/acl",
        "recommendation/list",
        "recommendation/edit",
        "related/list",
        "stream/details",
        "stream/items/count",
        "search/items/ids",
        "feed-finder",
        "item/edit",
        "item/delete",
        "item/likers",
        "comment/edit",
        "list-friends-bundle",
        "bundles",
        "user-settings",
        "people/search",
    )
)
"""Calls of Google Reader that this server does not have, as far as no feature adds them."""
LARGER_BODIES: Mapping[str, int] = {
    address: size
    for call, size in (
        (f"{_API}edit-tag", MAX_BODY_BYTES),
        (f"{_API}stream/items/contents", MAX_BODY_BYTES),
        *((name, call.body_bytes) for name, call in _OF_FEATURES.items() if call.body_bytes is not None),
    )
    for address in addresses_of(call)
}
"""Bytes of bodies by path, for the calls that take more than others do."""

_BODIES_BYTES = 4_000_000
_PARTS_BYTES = 12_000_000


def service_on(stores: Stores, *, clock: Clock) -> Service:
    """The parts that the requests of one application share."""
    bodies = Bodies(stores.objects, seconds=time.monotonic, most_bytes=_BODIES_BYTES)
    parts = PackedParts(seconds=time.monotonic, most_bytes=_PARTS_BYTES)
    service = Service(stores=stores, clock=clock, seen=NewestSeen(), bodies=bodies, parts=parts)
    service.recall()
    return service


def routes(service: Service) -> list[BaseRoute]:
    """The route of all addresses. The prefix itself answers a person who looks whether it is right."""

    async def answer(request: Request) -> Response:
        try:
            return await _answer(service, request)
        except RefusedCall as refused:
            return refusal(refused)

    return [_Calls("/{rest:path}", answer, methods=_METHODS, include_in_schema=False)]


_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_ADDRESS = re.compile(
    "|".join(
        f"{re.escape(prefix)}(?:/.*)?"
        if "greader" in prefix
        else f"{re.escape(prefix)}/(?:accounts|reader)/.*"
        for prefix in PREFIXES
    )
)


class _Calls(Route):
    """The route of all addresses: one comparison in place of one for each prefix."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or _ADDRESS.fullmatch(scope["path"]) is None:
            return Match.NONE, {}
        is_taken = scope["method"] in (self.methods or ())
        return Match.FULL if is_taken else Match.PARTIAL, {"endpoint": self.endpoint, "path_params": {}}


async def _answer(service: Service, request: Request) -> Response:
    name = call_of(request.scope["path"])
    if name in ("", "check/compatibility"):
        return _welcome(name, request)
    if name is None:
        raise RefusedCall(404, _NO_CALL)
    name, rest = _split(name)
    by_method = CALLS.get(name)
    if by_method is None:
        raise RefusedCall(501, f"{name} is not there.") if name in NOT_THERE else RefusedCall(404, _NO_CALL)
    function = by_method.get(request.method)
    if function is None:
        allowed = ", ".join(by_method)
        raise RefusedCall(405, f"{name} takes {allowed}.", headers={"Allow": allowed})
    body = await request.body()
    call = Call(
        service=service,
        request=request,
        name=name,
        rest=rest,
        query=query_fields(request.scope["query_string"]),
        form=_form(name, request.headers.get("content-type"), body),
        body=body,
    )
    if name.startswith(_API) and call.fields.first("output") not in (None, "json"):
        raise RefusedCall(400, "The only output is json.")
    return await function(call)


_NO_CALL = f"There is no such call. The URL to type into an app is this server's, with {PREFIX} at its end."


def _welcome(name: str, request: Request) -> Response:
    if name == "check/compatibility":
        return text("PASS")
    if request.method != "GET":
        raise RefusedCall(
            405, "This is the address of the API; its calls are below it.", headers={"Allow": "GET"}
        )
    return text(
        "PASS: this is the Google Reader API of rss_pipeline.\n"
        f"Type the URL of this page into an app (kind: Google Reader, FreshRSS or FeedHQ), up to {PREFIX}.\n"
        "The name is that of your account. The password is an app password:\n"
        "the settings of the reader make one.\n"
    )


def _form(name: str, content_type: str | None, body: bytes) -> Fields:
    """The fields of a form."""
    added = _OF_FEATURES.get(name)
    is_form = (content_type or "").lower().startswith("multipart/")
    has_none = added is not None and added.takes_any_body and not is_form
    return Fields() if not body or has_none else form_fields(content_type, body)


def _split(name: str) -> tuple[str, str]:
    for call in WITH_STREAM:
        if name.startswith(f"{call}/"):
            return call, name[len(call) + 1 :]
    return name, ""
