"""HTML that is shown as it is written: what a sanitizer would read and write again without a change.

Most short items are such HTML: paragraphs, headings, lists, links and pictures, each tag closed where it
should be. To see that takes a tenth of the time that it takes to sanitize them. So the grammar below has only
what the HTML standard's parser reads without any correction, what its serializer writes in the same way, and
what nothing of this package changes; for it, both ways give the same. All else is sanitized.
"""

import re

from rss_pipeline.collector.sanitize.embeds import POST_SIGNS

_MOST_TAGS = 500
"""Fewer than those at which HTML is not read (html.py)."""
_MOST_CHARACTERS = 100_000

_TEXT = r"(?:[^<>&=\"\0-\x08\x0b-\x1f\x7f-\xa0\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]++|&(?:amp|lt|gt);|\")*+"
"""No `=`: it could be that of an `id`, which a link may lead to. A no-break space is written `&nbsp;`."""
_VALUE = r"(?:[^<>&=\"\0-\x1f\x7f-\xa0\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]++|&amp;)*+"
_HOST = r"https?://(?:[a-z0-9]++(?:-[a-z0-9]++)*+\.){1,9}[a-z]{2,20}+"
"""No address, no port, no `xn--`: each parser of URLs takes it."""
_HREF = rf"{_HOST}(?:[/?#](?:[!#$%'()*+,/0-9:;=?@A-Z_a-z~.-]++|&amp;)*+)?+"
_WORD = "[0-9A-Za-z_.~%-]"
_SRC = rf"{_HOST}(?:/[0-9A-Za-z_-]{_WORD}*+)++(?:\?(?:[0-9A-Za-z_.~%=-]++|&amp;)++)?+"
_IMAGE = rf'<img src="{_SRC}"(?: alt="{_VALUE}")?+(?: width="[0-9]++")?+(?: height="[0-9]++")?+ ?+/?+>'
_VOID = rf"(?:{_IMAGE}|<br ?+/?+>)"
_FORMATTED = f"<(?:em|strong|b|i|code)>{_TEXT}</(?:em|strong|b|i|code)>"
_LINK = rf'<a href="{_HREF}">{_TEXT}(?:(?:{_FORMATTED}|{_VOID}){_TEXT})*+</a>'
_LINE = rf"{_TEXT}(?:(?:{_LINK}|{_FORMATTED}|{_VOID}){_TEXT})*+"
_PARAGRAPH = rf"<(?:p|h[1-6])>{_LINE}</(?:p|h[1-6])>"
_SPACE = r"[ \n]*+"
_LIST = rf"<[ou]l>{_SPACE}(?:<li>{_LINE}</li>{_SPACE})*+</[ou]l>"
_QUOTE = rf"<blockquote>{_SPACE}(?:{_PARAGRAPH}{_SPACE})*+</blockquote>"
_SIMPLE = re.compile(rf"(?!\ufeff){_LINE}(?:(?:{_PARAGRAPH}|{_LIST}|{_QUOTE}|<hr ?+/?+>){_LINE})*+")
_CROSSED = re.compile(
    r"<(?:(em|strong|b|i|code)>[^<]*+</(?!\1>)"
    r"|(p|h[1-6])>[^<]*+(?:<(?!/p>|/h[1-6])[^<]*+)*+</(?!\2)"
    r"|([ou]l)>[^<]*+(?:<(?!/[ou]l)[^<]*+)*+</(?!\3))"
)
"""An element in what `_SIMPLE` takes that the end of another name closes. With a grammar for each name, that
expression would be five times as long and take 4 MB in each parser process."""
_POST = re.compile("-(?:" + "|".join(sign.partition("-")[2] for sign in POST_SIGNS) + ")", re.IGNORECASE)


def simple_html(html: str) -> str | None:
    """`html` as `html.safe_html` gives it, if nothing in it has to be changed; None for all other."""
    if len(html) > _MOST_CHARACTERS or html.count("<") > _MOST_TAGS:
        return None
    if not _SIMPLE.fullmatch(html) or _CROSSED.search(html) or _POST.search(html):
        return None
    # Text has neither bracket: these are the ends of tags.
    return html.replace(" />", ">").replace("/>", ">").replace(" >", ">").strip()
