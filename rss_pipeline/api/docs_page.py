"""The page that lists the API and explains its problems, made of the OpenAPI document; no script is in it."""

import hashlib
from base64 import b64encode
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from rss_pipeline.api.conditional import bytes_answer
from rss_pipeline.api.problems import KINDS

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid #8884; }
code { white-space: nowrap; }
"""
_POLICY = (
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-{}'"
)


def docs_page(request: Request, document: dict[str, Any]) -> Response:
    """The page as an answer."""
    answer = bytes_answer(request, _page(document).encode(), "text/html")
    digest = b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    answer.headers["Content-Security-Policy"] = _POLICY.format(digest)
    return answer


def _page(document: dict[str, Any]) -> str:
    title = escape(document["info"]["title"])
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
        '<p>Every address with its parameters is in <a href="/api/openapi.json">/api/openapi.json</a>, an'
        " OpenAPI document.</p>"
        f"{_paragraphs(document['info']['description'])}"
        "<h2>Addresses</h2><table><tr><th>address</th><th>what it does</th></tr>"
        f"{''.join(_operations(document))}</table>"
        "<h2>Problems</h2><table><tr><th>kind</th><th>status</th><th>meaning</th><th>what to do</th></tr>"
        f"{''.join(_problems())}</table></body></html>\n"
    )


def _operations(document: dict[str, Any]) -> list[str]:
    return [
        f"<tr><td><code>{method.upper()} {escape(path)}</code></td>"
        f"<td>{_paragraphs(operation.get('description') or operation['summary'])}</td></tr>"
        for path, operations in sorted(document["paths"].items())
        for method, operation in operations.items()
    ]


def _problems() -> list[str]:
    return [
        f'<tr id="{escape(name)}"><td><code>{escape(name)}</code></td><td>{kind.status}</td>'
        f"<td>{escape(kind.title)}</td><td>{escape(kind.what_to_do)}</td></tr>"
        for name, kind in KINDS.items()
    ]


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(part)}</p>" for part in text.strip().split("\n\n"))
