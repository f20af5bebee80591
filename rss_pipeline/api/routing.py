"""Routes of the JSON API, whose parameters are looked at once.

FastAPI asks each parameter for its type, its aliases and its default in every request, which takes longer
than some requests do otherwise.
"""

from collections.abc import Callable, Coroutine
from inspect import signature
from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from rss_pipeline.api.auth import signed_in


def api_router(tag: str, prefix: str = "") -> APIRouter:
    """A router below /api. The name of its function is an operation's id."""
    return APIRouter(
        prefix=f"/api{prefix}",
        tags=[tag],
        route_class=_Route,
        generate_unique_id_function=lambda route: route.name,
    )


class _Route(APIRoute):
    """A route with a caller, text in its path, single values in its query and JSON as its body, that makes
    its answer itself. FastAPI does what else there is, and says what is wrong with a value."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        by_fastapi, endpoint, found = super().get_route_handler(), self.endpoint, self.dependant
        requests = [] if found.request_param_name is None else [found.request_param_name]
        callers = [each.name for each in found.dependencies if each.name and each.call is signed_in]
        paths = [each.name for each in found.path_params if each.field_info.annotation is str]
        queries = {each.name: each for each in found.query_params if not each.field_info.is_required()}
        bodies = {each.name: each for each in found.body_params if each is self.body_field}
        declared = signature(endpoint)
        is_known = set(declared.parameters) == {*requests, *callers, *paths, *queries, *bodies}
        if not is_known or declared.return_annotation is not Response:
            return by_fastapi

        async def handle(request: Request) -> Response:
            values, errors, sent = dict(request.path_params), list[Any](), None
            if bodies:
                if request.headers.get("content-type") != "application/json":
                    return await by_fastapi(request)
                try:
                    sent = await request.json()
                except (ValueError, RecursionError):
                    return await by_fastapi(request)
            for name in requests:
                values[name] = request
            for name in callers:
                values[name] = await signed_in(request)
            given = request.query_params if queries else {}
            for name, field in queries.items():
                if field.alias in given:
                    values[name], errors = field.validate(given[field.alias])
                else:
                    values[name] = field.default
                if errors:
                    return await by_fastapi(request)
            for name, field in bodies.items():
                values[name], errors = field.validate(sent)
                if errors:
                    return await by_fastapi(request)
            response: Response = await endpoint(**values)
            return response

        return handle
