"""HTML whose names and scripts mean something to browsers only, brought into a form that both parsers read.

It is text for text, before any tree is made; what a tree shows is replaced in replace.py.
"""

import re
from collections.abc import Collection
from html import escape

from rss_pipeline.collector.sanitize import mathml
from rss_pipeline.collector.sanitize.markup import names

DRAWN = frozenset(("svg", "math"))
MATHJAX = frozenset(("mjx-container", "mjx-assistive-mml", "mjx-math", "nobr"))
PREFIXED_ROOTS = frozenset(("svg:svg", "math:math", "mml:math", "m:math"))
FOREIGN = names(
    """abs and animate animatemotion apply approx arg bind bvar card ceiling ci circle clippath cn codomain
    complexes compose condition conjugate cos cosh cot coth cs csc csch curl declare defs degree desc
    determinant diff discard divergence divide domain ellipse emptyset eq equivalent eulergamma exists
    exp factorial factorof false filter floor fn forall g gcd geq grad gt ident imaginary implies in
    infinity int integers intersect interval inverse lambda laplacian lcm leq limit line list ln log
    logbase lowlimit lt marker mask matrix matrixrow max mean median metadata min minus mode moment
    mpath neq none not notin or otherwise outerproduct path pattern pi piece piecewise plus polygon
    polyline power primes product quotient rationals real reals rect reln rem root scalarproduct sdev
    sec sech selector semantics sep set setdiff share sin sinh stop subset sum switch symbol tan tanh
    tendsto text times transpose true tspan union uplimit use variance vector vectorproduct view xor"""
) | ((mathml.ELEMENTS.keys() | mathml.KNOWN) - {"math"})
"""Names of SVG and MathML that a publisher may give to elements of HTML too. With its content, nh3 removes an
element of such a name that is not in SVG or MathML."""
_TAG_REST = r"""[^>"']*+(?:"[^"]*+(?:"|\Z)[^>"']*+|'[^']*+(?:'|\Z)[^>"']*+)*+(?:>|\Z)"""
_ANY_TAG = re.compile(rf"<(/?)([a-zA-Z][a-zA-Z0-9]*+)(?=[\s/>])({_TAG_REST})")
_IS_CLOSED = re.compile(r"""(?<![^\s"'])/>\Z""")
_PREFIXED = re.compile("<(/?)(?:svg|math|mml|m):(?=[a-zA-Z])", re.IGNORECASE)
_SCRIPT = re.compile(r"<script\b([^<>]*+)>(.*?)(?:</script\s*+>|\Z)", re.DOTALL | re.IGNORECASE)
_CODE_HOSTS = ("gist.github.com/", "asciinema.org/a/")
_CODE_SOURCE = re.compile(
    r"""\ssrc=["']?(?:https?:)?//(gist\.github\.com/[\w/-]{1,100}|asciinema\.org/a/\w{1,40})\.js(?=["'?\s]|\Z)""",
    re.IGNORECASE,
)
"""A script that writes code, or a terminal, where it is."""


def readable(html: str, tags: Collection[str]) -> str:
    """HTML in which html5ever and nh3 find what the publisher means. `tags` are the names of its elements, in
    lower case.

    Prefixes of SVG and MathML go; HTML elements with a name of these leave their content; MathJax's scripts
    that no browser has run leave their formula, those that would write code here a link to it.
    """
    if not PREFIXED_ROOTS.isdisjoint(tags):
        html = _PREFIXED.sub(r"<\1", html)
    if not FOREIGN.isdisjoint(tags):
        html = _without_foreign_names(html)
    if "script" in tags and any(host in html for host in _CODE_HOSTS):
        html = _SCRIPT.sub(_link_of_script, html)
    if "script" in tags and "math/" in html and MATHJAX.isdisjoint(tags) and "MathJax_" not in html:
        html = _SCRIPT.sub(_formula_of_script, html)
    return html


def _without_foreign_names(html: str) -> str:
    depth = 0

    def renamed(tag: re.Match[str]) -> str:
        nonlocal depth
        end, name, rest = tag[1], tag[2].lower(), tag[3]
        if name in DRAWN:
            depth = max(depth + (-1 if end else _IS_CLOSED.search(rest) is None), 0)
        elif not depth and name in FOREIGN:
            return f"<{end}x-{name}{rest}"
        return tag[0]

    return _ANY_TAG.sub(renamed, html)


def _link_of_script(script: re.Match[str]) -> str:
    source = _CODE_SOURCE.search(script[1])
    if source is None:
        return script[0]
    url, site = escape(f"https://{source[1]}"), source[1].partition("/")[0]
    return f' <a href="{url}">Embedded page at {site}</a> '


def _formula_of_script(script: re.Match[str]) -> str:
    kind, text = script[1].lower(), script[2].strip()
    if "math/mml" in kind:
        return text
    if "math/tex" in kind:
        return f"\\({escape(text, quote=False)}\\)"
    return f"`{escape(text, quote=False)}`" if "math/asciimath" in kind else script[0]
