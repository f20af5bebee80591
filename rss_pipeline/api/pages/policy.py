"""Headers of every page, above all the Content-Security-Policy: what a page may load and to whom it sends."""

from collections.abc import Mapping

from rss_pipeline.api.stores import Stores
from rss_pipeline.collector.sanitize.embeds import FRAME_HOSTS
from rss_pipeline.storage.objects import public_url


def page_headers(stores: Stores, *, publisher_images: bool = False) -> Mapping[str, str]:
    """The headers of a page of the reader on these stores, with or without images that publishers send.

    `no-store`, because a browser takes whatever it keeps when somebody goes back, also what has to be
    revalidated (RFC 9111 4.2.1 lets it): a list would show as unread what was read from it.

    `same-origin` says nothing to a publisher, and lets browsers send Origin with our own forms: with
    `no-referrer` they send `null` (https://fetch.spec.whatwg.org/#append-a-request-origin-header).
    """
    return {
        "Content-Security-Policy": content_policy(stores, publisher_images=publisher_images),
        "Referrer-Policy": "same-origin",
        "Cache-Control": "private, no-store",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        "Cross-Origin-Opener-Policy": "same-origin",
    }


def content_policy(stores: Stores, *, publisher_images: bool = False) -> str:
    """The policy. Images of publishers are allowed where bodies have them (pipeline/reading/page_html.py): by
    the user's preference. Their audio and video comes only once somebody plays it, and so do the frames of
    players, which the page's script makes then."""
    directives = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": " ".join(
            ["'self'", *(["https:", "http:"] if publisher_images else _public_images(stores))]
        ),
        "media-src": "'self' https: http:",
        "frame-src": " ".join(FRAME_HOSTS),
        "connect-src": "'self'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in directives.items())


def _public_images(stores: Stores) -> list[str]:
    url = public_url(stores.objects, "images/x")
    return [] if url is None else [url.removesuffix("x")]
