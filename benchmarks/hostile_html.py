"""Hostile HTML of public lists, sanitized and shown in Chromium: nothing runs and nothing is requested.

    python -m benchmarks.hostile_html FILE_OR_FOLDER ...

The lists are not ours, and none is in this repository; clone them first. Those of DOMPurify (fixtures and
suite), Sonar (mXSS), PortSwigger, OWASP, PayloadsAllTheThings, cyllective, RenwaX23 and terjanq were read. Of
JSON and JavaScript each string literal with a tag in it counts, of other texts each line; a page (.html,
.svg, .xml) and a block of code in Markdown count as a whole too.

Each string is sanitized as topics and apps get it and as the reader's pages show it, and parsed twice: as a
part of a page, and once more from what the browser made of it (mutation). No Content-Security-Policy helps.
With `--raw` nothing is sanitized: the number of findings says what this program sees.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from rss_pipeline.collector.sanitize.html import safe_html, with_link_rel
from rss_pipeline.reader.page_html import page_html
from rss_pipeline_tests.support.clients.chromium import CHROMIUM, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Route

PAGE = "https://reader.invalid/"
BASES = ("https://site.invalid/posts/1",)
AT_ONCE = 50
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'|`((?:[^`\\]|\\.)*)`', re.DOTALL)
_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_WHOLE = frozenset((".html", ".htm", ".svg", ".xml", ".xhtml"))
_MOST_BYTES = 3_000_000

_HARNESS = """<!doctype html><meta charset=utf-8><script>
window.ran = [];
for (const name of ['alert', 'confirm', 'prompt', 'print', 'open']) {
  window[name] = (...given) => { window.ran.push(`${name} ${given}`); };
}
</script><body>"""
_INSPECT = """() => {
  const FORBIDDEN = 'script,style,link,meta,base,iframe,frame,frameset,object,embed,applet,form,input,button,'
    + 'select,textarea,template,noscript,dialog,title,foreignObject,animate,set,animateTransform,'
    + 'animateMotion,feImage,image,annotation-xml,mglyph,portal,fencedframe';
  const inspect = (article) => {
    const wrong = [];
    for (const each of article.querySelectorAll('*')) {
      if (each.matches(FORBIDDEN)) wrong.push(`<${each.tagName}>`);
      if (each.shadowRoot) wrong.push('a shadow');
      const isDrawn = each.namespaceURI !== 'http://www.w3.org/1999/xhtml';
      for (const { name, value } of each.attributes) {
        if (/^on|^style$|^name$|^srcset$|^form|^ping$|^xlink:href$/i.test(name)) wrong.push(name);
        if (name === 'id' && !/^user-content-[0-9a-f]{8}-/.test(value)) wrong.push(`id ${value}`);
        if (/^(href|src|poster)$/.test(name)) {
          const fits = isDrawn ? /^#user-content-/ : /^(https?:|mailto:|#user-content-)/i;
          if (!fits.test(value.replace(/[\\t\\n\\r]/g, ''))) wrong.push(`${name} ${value}`);
        }
        if (isDrawn && /url|image-set/i.test(value) && !/^url\\(#user-content-[\\w.-]+\\)$/.test(value)
            && !/^(aria-label|title|alttext)$/.test(name)) wrong.push(`${name} ${value}`);
      }
    }
    return wrong;
  };
  const found = {};
  const articles = [...document.querySelectorAll('body > article')];
  for (const article of articles) {
    const wrong = inspect(article);
    article.innerHTML = article.innerHTML;
    wrong.push(...inspect(article).map((each) => `parsed again: ${each}`));
    if (wrong.length) found[article.title] = wrong;
  }
  const others = document.body.children.length - articles.length;
  return { found, articles: articles.length, others, ran: window.ran };
}"""


@dataclass(slots=True)
class Result:
    """What came of some strings."""

    strings: int = 0
    shown: int = 0
    """Those of which something is left."""
    findings: list[str] = field(default_factory=list)


def strings(paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Each string of the lists, once, with the name of its file."""
    known: set[str] = set()
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    for file in files:
        if not file.is_file() or file.stat().st_size > _MOST_BYTES:
            continue
        text = file.read_bytes().decode("utf-8", "replace")
        for each in _strings(text, file.suffix.lower()):
            for form in dict.fromkeys((each, unescape(each))):
                if "<" in form and form not in known:
                    known.add(form)
                    yield file.name, form


def _strings(text: str, suffix: str) -> Iterator[str]:
    if suffix in (".json", ".js", ".mjs", ".py"):
        for found in _LITERAL.finditer(text):
            try:
                yield str(json.loads(f'"{found[1]}"')) if found[1] is not None else found[2] or found[3] or ""
            except ValueError:
                yield found[0][1:-1]
        return
    if suffix in _WHOLE:
        yield text
    if suffix == ".md":
        yield from (block[1] for block in _BLOCK.finditer(text))
    yield from text.splitlines()


def for_apps(html: str) -> str:
    """As topics and apps get it."""
    return safe_html(html, bases=BASES) or ""


def for_pages(html: str) -> str:
    """As the reader's pages have it."""
    return page_html(
        with_link_rel(for_apps(html), "noopener noreferrer"),
        placed=lambda _: None,
        shows_publishers_images=False,
    )


def run(
    given: Sequence[tuple[str, str]], browser: "Browser", *, doors: Sequence[Callable[[str], str]]
) -> Result:
    """Show all strings in the browser, as each of the doors has them."""
    result = Result(strings=len(given))
    for shown in doors:
        loads = frozenset(("image", "media")) if shown is for_apps else frozenset[str]()
        for start in range(0, len(given), AT_ONCE):
            part = given[start : start + AT_ONCE]
            html = [shown(each) for _, each in part]
            if shown is doors[0]:
                result.shown += sum(map(bool, html))
            if _wrong(html, browser, loads):
                # One of them; each is shown alone, so that it is known which.
                for (name, each), one in zip(part, html, strict=True):
                    if wrong := _wrong([one], browser, loads):
                        result.findings.append(f"{name}: {each!r} -> {one!r}: {wrong}")
    return result


def _wrong(html: Sequence[str], browser: "Browser", loads: frozenset[str]) -> list[str]:
    wrong: list[str] = []
    document = _HARNESS + "".join(
        f'<article title="{number}">{each}</article>' for number, each in enumerate(html)
    )
    context = browser.new_context()
    try:
        context.route("**/*", _answers(document, loads, wrong.append))
        page = context.new_page()
        page.on("dialog", lambda each: _note_dialog(each, wrong))
        page.on("pageerror", lambda each: wrong.append(f"script {each}"))
        page.goto(PAGE, wait_until="load")
        found = page.evaluate(_INSPECT)
        wrong += [f"{number}: {each}" for number, each in found["found"].items()]
        wrong += [f"ran {each}" for each in found["ran"]]
        if (found["articles"], found["others"]) != (len(html), 0):
            wrong.append(
                f"{found['articles']} articles of {len(html)}, {found['others']} elements beside them"
            )
        if page.url != PAGE:
            wrong.append(f"the page has become {page.url}")
    finally:
        context.close()
    return wrong


def _note_dialog(dialog: "Dialog", wrong: list[str]) -> None:
    wrong.append(f"dialog {dialog.message}")
    dialog.dismiss()


def _answers(document: str, loads: frozenset[str], note: Callable[[str], None]) -> "Callable[[Route], None]":
    def answer(route: "Route") -> None:
        request = route.request
        if request.url == PAGE and request.is_navigation_request():
            route.fulfill(body=document, content_type="text/html; charset=utf-8")
            return
        if request.resource_type not in loads:
            note(f"{request.resource_type} {request.url}")
        route.abort()

    return answer


def main(arguments: Sequence[str]) -> int:
    """Print the number of strings and each finding; 1 if there is any."""
    if not arguments or CHROMIUM is None:
        print(__doc__ if CHROMIUM else "no Chromium on this machine", file=sys.stderr)
        return 2
    is_raw = "--raw" in arguments
    given = list(strings([Path(each) for each in arguments if each != "--raw"]))
    with chromium() as browser:
        result = run(given, browser, doors=[str] if is_raw else [for_pages, for_apps])
    files = len({name for name, _ in given})
    print(f"{result.strings} strings of {files} files; of {result.shown} something is left")
    for each in result.findings:
        print(each)
    print(f"{len(result.findings)} findings")
    return int(bool(result.findings))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
