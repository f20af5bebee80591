"""Formulas: what stays of MathML, and how they read as text."""

import re

import pytest

from rss_pipeline_tests.collector.sanitize.as_shown import shown, texts

ROOT = "<msqrt><mn>2</mn></msqrt>"
TEX = r'<annotation encoding="application/x-tex">\sqrt{2}</annotation>'
KATEX = (
    '<span class="katex"><span class="katex-mathml"><math xmlns="http://www.w3.org/1998/Math/MathML">'
    f"<semantics><mrow>{ROOT}</mrow>{TEX}</semantics></math></span>"
    '<span class="katex-html" aria-hidden="true"><span><span>√</span><span>2</span></span></span>'
    "</span>"
)
WIKIPEDIA = (
    '<span class="mwe-math-element"><span style="display: none;">'
    '<math alttext="{\\displaystyle {\\sqrt {2}}}">'
    f"<semantics>{ROOT}{TEX}</semantics></math></span>"
    '<img src="/render/svg/1" aria-hidden="true" alt="{\\displaystyle {\\sqrt {2}}}"></span>'
)
MATHJAX = (
    '<mjx-container><svg aria-hidden="true"><path d="M0 0h9"/></svg>'
    f"<mjx-assistive-mml><math>{ROOT}</math></mjx-assistive-mml></mjx-container>"
)


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (f'<math alttext="\\sqrt{{2}}"><semantics>{ROOT}{TEX}</semantics></math>', r"\sqrt{2}"),
        (f"<math><semantics>{ROOT}{TEX}</semantics></math>", r"\sqrt{2}"),
        (f"<math>{ROOT}</math>", "√2"),
        (f"<m:math xmlns:m='x'>{ROOT.replace('<', '<m:').replace('<m:/', '</m:')}</m:math>", "√2"),
        (KATEX, r"\sqrt{2}"),
        (WIKIPEDIA, r"{\sqrt {2}}"),
        (MATHJAX, "√2"),
    ],
)
def test_a_formula_stays_once_and_reads_once(formula: str, text: str) -> None:
    html = f"<p>Take {formula} of it.</p>"
    found = shown(html)
    assert found.count("<msqrt><mn>2</mn></msqrt>") == found.count("2</mn>") == 1
    assert re.sub("<[^<>]*>", "", found) == "Take 2 of it."
    assert texts(html) == {f"Take {text} of it."}


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("<mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo><mn>1</mn></mrow></mfrac>", "a/(b+1)"),
        ("<msup><mi>x</mi><mn>2</mn></msup>", "x^2"),
        ("<msubsup><mi>x</mi><mi>i</mi><mrow><mi>n</mi><mo>-</mo><mn>1</mn></mrow></msubsup>", "x_i^(n-1)"),
        ("<mroot><mi>x</mi><mn>3</mn></mroot>", "x^(1/3)"),
        ("<mi>f</mi><mo>&#x2061;</mo><mfenced><mi>x</mi><mi>y</mi></mfenced>", "f(x,y)"),
        ('<mfenced open="[" close="&gt;" separators=";"><mi>x</mi><mi>y</mi></mfenced>', "[x;y>"),
        ("<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr><mtr><mtd><mn>3</mn></mtd></mtr></mtable>",
         "1, 2; 3"),
        ("<maction actiontype=toggle selection=2><mi>a</mi><mi>b</mi></maction>", "a"),
        ("<mi>a</mi><mphantom><mi>b</mi></mphantom>", "a"),
        ("<mtext>if <b>so</b></mtext>", "if so"),
    ],
)  # fmt: skip
def test_a_formula_without_a_text_reads_as_one_would_type_it(formula: str, text: str) -> None:
    assert texts(f"<math>{formula}</math>") == {text}


def test_the_operators_of_fences_stay() -> None:
    assert shown("<math><mfenced open='['><mi>a</mi><mi>b</mi></mfenced></math>") == (
        "<math><mrow><mo>[</mo><mi>a</mi><mo>,</mo><mi>b</mi><mo>)</mo></mrow></math>"
    )


def test_a_formula_that_has_only_a_text_is_that_text() -> None:
    assert shown('<math alttext="a&lt;b"></math>') == "a&lt;b"
    assert shown(f"<math><semantics>{TEX}</semantics></math>") == r"\sqrt{2}"


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ('<script type="math/tex">a<b</script>', r"\(a<b\)"),
        ("<script type='math/tex; mode=display'>x^2</script>", r"\(x^2\)"),
        ("<script type=math/mml><math><mi>x</mi></math></script>", "x"),
    ],
)
def test_a_formula_in_a_script_that_no_one_runs_is_its_source(script: str, text: str) -> None:
    assert texts(f"<p>Take {script} of it.</p>") == {f"Take {text} of it."}
    assert "script" not in shown(script)
    assert shown(script)


@pytest.mark.parametrize(
    ("html", "gone"),
    [
        ("<math href=https://x.example/ xlink:href=//x.example><mi href=javascript:x>a</mi></math>", "href"),
        ("<math><mi style='color:red' class=a id=b onclick=x() name=c>a</mi></math>", "style|cl|id|on|me="),
        ("<math><mi mathcolor='url(//x)'>a</mi></math>", "url"),
        ("<math><mtext><img src=//x.example/a.png></mtext><mi>a</mi></math>", "<img"),
        ("<math><annotation-xml encoding='text/html'><p>x</p></annotation-xml><mi>a</mi></math>", "ation|<p"),
        ("<math><mglyph src=//x.example/a.png alt=q /><mi>a</mi></math>", "mglyph|src"),
        ("<math><mi>a</mi><maction actiontype='statusline#http://x'><mi>b</mi></maction></math>", "action"),
    ],
)  # fmt: skip
def test_nothing_of_a_formula_leads_anywhere_or_is_loaded(html: str, gone: str) -> None:
    found = shown(html)
    assert "<mi>a</mi>" in found
    assert not re.search(gone, found), found
