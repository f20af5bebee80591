"""The files of the pages: style sheets, scripts, an icon. Their address changes with their bytes."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from rss_pipeline import features
from rss_pipeline.api.answers import gzipped, takes_gzip
from rss_pipeline.api.problems import ApiError

router = APIRouter()

_FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class _File:
    url: str
    media_type: str
    body: bytes
    gzip: bytes


def _read() -> Mapping[str, _File]:
    found = {}
    folders = (_FOLDER, *(Path(features.__file__).parent / feature.name for feature in features.FEATURES))
    for path in sorted(path for folder in folders for path in folder.iterdir()):
        if path.suffix in _TYPES:
            body = path.read_bytes()
            digest = hashlib.sha256(body).hexdigest()[:16]
            url = f"/static/{digest}/{path.name}"
            found[path.name] = _File(url, _TYPES[path.suffix], body, gzipped(body, is_kept=True))
    return found


_FILES = _read()


def static_url(name: str) -> str:
    """The address of a file, which a browser may keep for ever. Raises KeyError for a name that is none."""
    return _FILES[name].url


@router.get("/static/{version}/{name}", include_in_schema=False)
async def read(request: Request, version: str, name: str) -> Response:
    """A file. A page of before an update requests an address of before: it gets what is there, for now."""
    file = _FILES.get(name)
    if file is None:
        raise ApiError("not_found", "The reader has no such file.")
    is_current = file.url == f"/static/{version}/{name}"
    headers = {"Cache-Control": _FOREVER if is_current else "no-cache", "Vary": "Accept-Encoding"}
    if takes_gzip(request.scope) and len(file.gzip) < len(file.body):
        headers["Content-Encoding"] = "gzip"
        return Response(file.gzip, headers=headers, media_type=file.media_type)
    return Response(file.body, headers=headers, media_type=file.media_type)
