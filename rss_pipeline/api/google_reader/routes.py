"""The addresses of the Google Reader API and the function of each call.

What clients call and is not here is answered by 501 or 404, never by an empty list: half an API is worse for
a client than an error.
"""

import re
import time
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from rss_pipeline.api.asgi import Scope
from rss_pipeline.api.google_reader import listings, login, marks
from rss_pipeline.api.google_reader.addresses import PREFIX, PREFIXES, addresses_of, call_of
from rss_pipeline.api.google_reader.answers import Refused, refusal, text
from rss_pipeline.api.google_reader.call import Answer, Call, FeatureCall, Seen, Service
from rss_pipeline.api.google_reader.forms import MAX_BODY_BYTES, Fields, form_fields, query_fields
from rss_pipeline.api.google_reader.subscriptions import calls as subscriptions
from rss_pipeline.api.gzip_member import PackedParts
from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.features import FEATURES
from rss_pipeline.reader.bodies import Bodies
from rss_pipeline.reader.stores import Stores

_API = "reader/api/0/"
_OF_FEATURES: Mapping[str, FeatureCall] = {
    f"{_API}{name}": part.load() for feature in FEATURES for name, part in feature.reader_calls.items()
}

CALLS: Mapping[str, Mapping[str, Answer]] = {
    "accounts/ClientLogin": {"POST": login.client_login, "GET": login.refuse_login_by_address},
    f"{_API}token": {"GET": login.token},
    f"{_API}user-info": {"GET": login.user_info},
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
    return Service(stores=stores, clock=clock, seen=Seen(), bodies=bodies, parts=parts)


def routes(service: Service) -> list[BaseRoute]:
    """The route of all addresses. The prefix itself answers a person who looks whether it is right."""

    async def answer(request: Request) -> Response:
        try:
            return await _answer(service, request)
        except Refused as refused:
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
        raise Refused(404, _NO_CALL)
    name, rest = _split(name)
    by_method = CALLS.get(name)
    if by_method is None:
        raise Refused(501, f"{name} is not there.") if name in NOT_THERE else Refused(404, _NO_CALL)
    function = by_method.get(request.method)
    if function is None:
        allowed = ", ".join(by_method)
        raise Refused(405, f"{name} takes {allowed}.", headers={"Allow": allowed})
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
        raise Refused(400, "The only output is json.")
    return await function(call)


_NO_CALL = f"There is no such call. The URL to type into an app is this server's, with {PREFIX} at its end."


def _welcome(name: str, request: Request) -> Response:
    if name == "check/compatibility":
        return text("PASS")
    if request.method != "GET":
        raise Refused(
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
