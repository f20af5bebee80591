"""HTML as it is shown, and all texts that are made of it."""

from rss_pipeline.collector.sanitize.html import plain_text, safe_html, text_of
from rss_pipeline.pipeline.read.terminal_text import item_text


def shown(html: str) -> str:
    return safe_html(html, bases=("https://site.example/1",)) or ""


def texts(html: str) -> set[str]:
    found = (
        " ".join(block.text for block in item_text(html, bases=()).blocks),
        text_of(html, limit=1_000),
        plain_text(html),
    )
    return {" ".join(text.split()) for text in found}
