"""The OpenAPI document, completed by what FastAPI does not know: problems, how to sign in."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI

from rss_pipeline.api.problems import MEDIA_TYPE, SCHEMA
from rss_pipeline.api.request_values import LINE_PATTERN

PUBLIC: dict[str, Any] = {"security": []}
"""`openapi_extra` of a route that needs no login."""

_SCHEMES: Mapping[str, Any] = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "The token of `POST /api/auth/login`: for programs.",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "rss_session",
        "description": "The cookie of `POST /api/auth/login` with `cookie: true`: for browsers, only from"
        " pages of this server. On https its name is `__Host-rss_session`.",
    },
}
_PROBLEM: Mapping[str, Any] = {
    "description": "Every other error.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


def complete(app: FastAPI) -> None:
    """Let `app.openapi()` give the completed document."""
    plain = app.openapi
    done: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not done:
            done.update(_completed(plain()))
        return done

    app.openapi = openapi  # type: ignore[method-assign]


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    components = document.setdefault("components", {})
    schemas: dict[str, Any] = components.setdefault("schemas", {})
    schemas["Problem"] = SCHEMA
    components["securitySchemes"] = _SCHEMES
    document["security"] = [{name: []} for name in _SCHEMES]
    for operations in document["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    parameter["schema"].setdefault("pattern", LINE_PATTERN)
            responses = operation["responses"]
            # FastAPI's own, which no answer of ours has.
            if _is_fastapi_s(responses.get("422", {})):
                responses["422"] = {**_PROBLEM, "description": "A value cannot be used"}
            responses.setdefault("default", _PROBLEM)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return document


def _is_fastapi_s(response: Mapping[str, Any]) -> bool:
    return bool(response.get("description") == "Validation Error")
