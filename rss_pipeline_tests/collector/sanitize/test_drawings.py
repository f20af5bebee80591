"""Drawings: what stays of SVG, and how they read as text."""

import re

import pytest

from rss_pipeline.collector.sanitize import svg
from rss_pipeline_tests.collector.sanitize.as_shown import shown, texts
from rss_pipeline_tests.support.cost import costs_less_than

CHART = (
    '<svg viewBox="0 0 60 40" onload="alert(1)" class="chart"><title>Sales</title><desc>By year</desc>'
    "<style>rect{fill:red}</style><defs><linearGradient id='g'><stop offset='0' stop-color='#fff'/>"
    "</linearGradient><marker id='m'><path d='M0 0h1'/></marker></defs>"
    "<g transform='translate(1 2)' style='stroke: #000; stroke-width:2; position:fixed'>"
    "<rect x='1' y='2' width='3' height='4' fill='url(#g)'/><path d='M0 0L5 5' marker-end='url(#m)'/>"
    "<a xlink:href='https://x.example/'><text x='1'>2024 <tspan>12</tspan></text></a></g></svg>"
)


def test_a_drawing_stays_and_reads_as_its_title_and_texts() -> None:
    found = shown(f"<p>a</p>{CHART}<p>b</p>")
    assert '<svg viewBox="0 0 60 40" aria-label="Sales" role="img" width="60" height="40">' in found
    assert '<g transform="translate(1 2)" stroke="#000" stroke-width="2">' in found
    assert '<g><text x="1">2024 <tspan>12</tspan></text></g>' in found
    gradient, marker = re.findall(r'(?:fill|marker-end)="url\(#(user-content-[a-z0-9-]+)\)"', found)
    assert f'<linearGradient id="{gradient}">' in found
    assert f'<marker id="{marker}">' in found
    assert not re.search("title>|desc|style|onload|class|xlink|x.example|position", found)
    assert texts(f"<p>a</p>{CHART}<p>b</p>") == {"a Sales 2024 12 b"}


def test_lines_of_html_in_a_drawing_are_a_text() -> None:
    box = "<foreignObject x=10 y=20 width=40 height=10><div>Start <b>here</b></div></foreignObject>"
    assert shown(f"<svg><rect/>{box}</svg>") == (
        '<svg><rect></rect><text x="30" y="25" text-anchor="middle" dominant-baseline="central">Start here'
        "</text></svg>"
    )
    both = f"<svg><rect/><switch>{box}<text>Start here</text></switch></svg>"
    assert texts(both) == {"Start here"}
    assert shown(both).count("Start here") == 1


def test_a_drawing_of_a_symbol_that_is_elsewhere_leaves_nothing_but_its_name() -> None:
    assert shown('<svg><use xlink:href="#i"/></svg>') == ""
    assert shown('<p>a</p><svg class="icon"><g><use href="#i"></use></g></svg>') == "<p>a</p>"
    assert shown('<svg><title>Home</title><use href="#i"/></svg>') == "Home"
    assert shown('<svg><use href="/icons.svg#i"/></svg>') == ""
    assert "<rect" in (shown('<svg><use href="#i"/><rect width="3"/></svg>') or "")
    both = shown('<svg><use href="#i"/></svg><svg><symbol id="i"><path d="M0 0h9"/></symbol></svg>')
    assert both is not None
    assert "<use" in both


def test_a_picture_in_a_drawing_is_shown_behind_it() -> None:
    html = '<svg><title>A</title><rect/><image xlink:href="https://x.example/a.png"/></svg>'
    assert shown(html) == (
        '<svg aria-label="A" role="img"><rect></rect></svg><img src="https://x.example/a.png" alt="A">'
    )
    assert shown('<svg><image href="b.png"/></svg>') == '<img src="https://site.example/b.png" alt="">'


def test_a_drawing_that_draws_nothing_is_its_title() -> None:
    assert shown("<a href=/x><svg><title>Play</title><use href='/sprite.svg#p'/></svg></a>") == (
        '<a href="https://site.example/x">Play</a>'
    )
    assert shown("a<svg></svg>b") == "ab"


def test_symbols_of_another_drawing_of_the_text_are_used() -> None:
    html = (
        "<svg style='display:none'><symbol id=s viewBox='0 0 1 1'><path d='M0 0'/></symbol></svg>"
        "<p>x</p><svg width=10><use xlink:href='#s'/></svg>"
    )
    found = shown(html)
    assert '<svg display="none">' in found
    [id] = re.findall('<symbol viewBox="0 0 1 1" id="([^"]+)"|<symbol id="([^"]+)"', found)
    assert f'<use href="#{"".join(id)}"></use>' in found


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        ("viewBox='0 0 24 12'", 'width="24" height="12"'),
        ("viewBox='0 0 512 512' aria-hidden=true", 'width="1em" height="1em"'),
        ("width=100% viewBox='0 0 24 12'", 'width="100%"'),
        ("width=99999 height=99999 viewBox='0 0 99999 9'", None),
        ("style='width:1em'", 'width="1em"'),
    ],
)
def test_a_drawing_has_a_size(attributes: str, size: str | None) -> None:
    found = re.findall(' ((?:width|height)="[^"]*")', shown(f"<svg {attributes}><path d='M0 0'/></svg>"))
    assert " ".join(found) == (size or "")


@pytest.mark.parametrize(
    "attribute",
    [
        "fill=url(https://x.example/a.svg#g)", "fill='url(//x.example/#g)'", "fill='red url(#g)'",
        "fill='url( \"https://x.example/#g\" )'", "fill='u\\72l(https://x.example/)'", "fill='var(--x)'",
        "filter=url(#f)", "filter=url(https://x.example/#f)", "mask='image-set(\"https://x.example/\" 1x)'",
        "clip-path='URL(https://x.example/#c)'", "style='fill:url(https://x.example/#g)'",
        "style='background:url(https://x.example/)'", "marker-end='url(data:image/svg+xml,x#m)'",
        "cursor='url(https://x.example/c.cur),auto'", "mask='url(#a) url(https://x.example/#m)'",
        "mask='src(\"https://x.example/\")'", "fill='url(#a\\29 url(https://x.example/))'",
        "xml:base=https://x.example/", "href=https://x.example/", "xlink:href='https://x.example/#a'",
        "stroke='url/**/(https://x.example/)'", "fill='url(#nothing)'", "onclick=alert(1)",
        "begin=0s", "attributeName=href", "class=top", "name=body", "data-x=1", "requiredExtensions=x",
        "systemLanguage=de", "externalResourcesRequired=true", "pointer-events=all", "font-family='x;y'",
    ],
)  # fmt: skip
def test_nothing_of_a_drawing_is_loaded_or_leads_anywhere(attribute: str) -> None:
    assert shown(f"<svg><path d='M0 0' {attribute} /></svg>") == '<svg><path d="M0 0"></path></svg>'
    assert shown(f"<svg><use {attribute} /><path/></svg>") == "<svg><path></path></svg>"


def test_the_table_has_nothing_that_moves_runs_or_is_loaded() -> None:
    """Both stages of the sanitizer go by it."""
    moving = {"animate", "animateMotion", "animateTransform", "set", "mpath"}
    loading = {"a", "feImage", "filter", "foreignObject", "image", "script", "style"}
    assert svg.ELEMENTS.keys().isdisjoint(moving | loading)
    attributes = frozenset().union(*svg.ELEMENTS.values())
    assert attributes.isdisjoint({"filter", "src", "style", "xlink:href"})
    assert not [name for name in attributes if name.startswith("on")]


@pytest.mark.parametrize(
    "element",
    [
        "<script>x</script>", "<style>*{}</style>", "<animate attributeName=href to=javascript:x />",
        "<set attributeName=href to=javascript:x />", "<animateMotion/>", "<animateTransform/>",
        "<use href=https://x.example/#a />", "<use href='data:image/svg+xml,x#a' />", "<use xlink:href='' />",
        "<feImage href=https://x.example/ />", "<filter id=f><feImage href=//x.example/ /></filter>",
        "<metadata>x<rdf/></metadata>", "<handler>x</handler>", "<discard/>", "<mpath href=#a />",
        "<view id=v />", "<cursor href=//x.example/ />", "<font-face-uri href=//x.example/ />",
        "<iframe src=//x.example/></iframe>", "<audio src=//x.example/ />", "<foreignObject></foreignObject>",
        "<title></title>",
    ],
)  # fmt: skip
def test_of_a_drawing_only_what_the_table_has_stays(element: str) -> None:
    assert shown(f"<svg><path/>{element}</svg>").replace(' aria-label="x"', "") == "<svg><path></path></svg>"


@pytest.mark.parametrize(
    "html",
    [
        # Ten of ten of ten: a browser would draw a thousand million.
        "<svg>" + "<g id=a0><path/></g>" + "".join(
            f"<g id=a{n}>{f'<use href=#a{n - 1} />' * 10}</g>" for n in range(1, 10)
        ) + "</svg>",
        "<svg><g id=a><path/><use href=#b /></g><g id=b><use href=#a /></g></svg>",
        "<svg><pattern id=p><rect fill='url(#p)'/></pattern><rect fill='url(#p)'/></svg>",
        "<svg><g id=big>" + "<path/>" * 2_000 + "</g>" + "<use href=#big />" * 100 + "</svg>",
    ],
)  # fmt: skip
def test_references_that_would_keep_a_browser_busy_are_left_out(html: str) -> None:
    found = shown(html)
    assert "href=" not in found
    assert "url(" not in found
    assert found.startswith("<svg>")


def test_references_of_a_real_drawing_stay() -> None:
    """A formula of MathJax and a plot of matplotlib refer to each of their letters."""
    html = "<svg>" + "<defs><path id=a d='M0 0'/></defs>" + "<g><use xlink:href=#a /></g>" * 2_000 + "</svg>"
    assert shown(html).count('href="#user-content-') == 2_000


def test_an_article_with_a_drawing_of_too_many_elements_keeps_its_text() -> None:
    html = "<p>before</p><svg><title>Map</title>" + "<path d='M0 0'/>" * 10_500 + "</svg><p>after</p>"
    with costs_less_than(3):
        assert shown(html) == "<p>before</p>Map<p>after</p>"
    many = "<p>before</p><svg>" + "<path d='M0 0'/>" * 5_000 + "</svg><p>after</p>"
    assert shown(many).count("<path") == 5_000
