"""The fields of a form that one of our pages has sent."""

from collections.abc import Mapping
from urllib.parse import parse_qsl

from fastapi import Request

from rss_pipeline.api.problems import ApiError
from rss_pipeline.api.request_values import has_controls
from rss_pipeline.errors import RssPipelineError

_MOST_FIELDS = 100
_URLENCODED = "application/x-www-form-urlencoded"


async def form_fields(request: Request) -> Mapping[str, str]:
    """The fields by name, the last of several; each is one line of text. Their number and size are bounded.

    Raises:
        ApiError: the body is no form of a page, or a value has control characters.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if body and kind != _URLENCODED:
        raise ApiError("unsupported_media_type", "The body is not the form of a page.")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise ApiError("malformed_request", "The form cannot be read.") from None
    if any(has_controls(value) for _, value in pairs):
        raise ApiError("value_refused", "A value has line breaks or control characters.")
    return dict(pairs)


# Messages of errors as sentences of a page.


def sentence(error: RssPipelineError) -> str:
    """The error's text with a capital and a full stop: a terminal shows it without."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
