"""The recognition of pages in place of an article: walls, lists, stubs, error pages, pages made by scripts.

Words are a hint on a short page only: an article may be about cookies, logins and subscriptions.
"""

import re
from dataclasses import dataclass

from lxml import etree

from rss_pipeline.features.full_text.model import Verdict
from rss_pipeline.features.pages.detect import detect

LEAST_CHARACTERS = 250
"""A shorter text is no article: a line on an image, the first words before a wall."""
_SHORT, _MIDDLE = 1_500, 4_000
"""Characters up to which a text with the words of a wall is one: of many such words, or of one."""
_LIST_SHARE, _DUMP_SHARE = 0.45, 0.3
"""Shares of the text that is links of the page: more is a list; the second for a page taken as one
paragraph."""
_SHORT_LINK = 10
"""Characters of a link that may stand in any text."""
_MOST_EVIDENCE = 2
_BEGIN = 40
"""Characters by which the text of an entry is known again."""
_FEW_LINKS = 4
_NEARLY_NOTHING = 100
"""Characters of a page that its scripts fill."""
_DENSE = 0.02
"""Words on cookies and consent among all words."""
_LEAST_KNOWN = 0.25
"""Words of the item's title or text that its page has."""

_SAID = 1_000
"""Characters of the feed's text that are compared with a page."""
_LEAST_SAID = 5
"""Words of a title and a text of which an article has at least one."""
_SIGNIFICANT = 4
"""Letters of a word that says something."""

_WORD = re.compile(r"\w+")
_PAIRED = r"(?![\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65])" + (
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0003ffff]"
)
"""A letter of a script that is written without spaces: Thai, Lao, Burmese, Khmer, Chinese, Japanese; and of
Korean, whose words have endings."""
_WITHOUT_SPACES = re.compile(_PAIRED)
_RUN = re.compile(rf"(?:{_PAIRED})+|(?:(?!{_PAIRED})\w)+")
_PHRASES: tuple[tuple[Verdict, re.Pattern[str]], ...] = (
    (
        "robot_check",
        re.compile(
            r"verify(?:ing)? (?:that )?you are (?:a )?human"
            r"|checking (?:your browser|if the site connection)"
            r"|are you a robot"
            r"|not a robot"
            r"|unusual (?:traffic|activity)"
            r"|captcha"
            r"|attention required"
            r"|just a moment"
            r"|access (?:to this page has been )?denied"
            r"|(?:you have been|request) blocked"
            r"|too many requests"
            r"|ddos protection",
            re.IGNORECASE,
        ),
    ),
    (
        "error_page",
        re.compile(
            r"\b404\b"
            r"|(?:page|article|content|story) (?:was |is |could |can ?)?not (?:be )?(?:found|available)"
            r"|no longer (?:available|exists)"
            r"|does(?:n[’']t| not) exist"
            r"|can[’']t find (?:that|the|this) page"
            r"|seite (?:wurde )?nicht gefunden"
            r"|page (?:est )?introuvable"
            r"|página no encontrada"
            r"|temporarily unavailable|under maintenance|service unavailable|internal server error"
            r"|something went wrong",
            re.IGNORECASE,
        ),
    ),
    (
        "paywall",
        re.compile(
            r"subscribe (?:now |today )?(?:to|for) (?:continue|read|keep|unlock|full|unlimited|access)"
            r"|to (?:continue|keep) reading"
            r"|(?:for|to) subscribers|subscribers? only|subscriber[- ]exclusive|members?[- ]only"
            r"|already (?:a )?(?:subscriber|member)"
            r"|(?:start|begin) your (?:free )?(?:trial|subscription)"
            r"|(?:free|remaining) articles? (?:this month|left|remaining|limit)"
            r"|you have (?:read|reached) (?:your|all|the)"
            r"|unlock (?:this|the|full|unlimited)"
            r"|premium (?:content|article|subscribers?|members?)"
            r"|weiterlesen mit|jetzt abonnieren|nur für abonnenten|im abo|f\+ |s\+ "
            r"|réservé aux abonnés|abonnez-vous|pour lire la suite"
            r"|suscríbete|solo para suscriptores|para seguir leyendo"
            r"|abbonati|per continuare a leggere"
            r"|support (?:our|independent) journalism",
            re.IGNORECASE,
        ),
    ),
    (
        "login",
        re.compile(
            r"(?:log|sign) ?in to (?:your|continue|read|view|see|access)"
            r"|(?:please|must|need to) (?:log|sign) ?in"
            r"|(?:log|sign) ?in required"
            r"|(?:create|register) (?:an? |your )?(?:free )?account"
            r"|(?:forgot|reset) (?:your )?password"
            r"|bitte (?:melden sie sich|einloggen|anmelden)"
            r"|connectez-vous|identifiez-vous|inicia sesión|accedi per",
            re.IGNORECASE,
        ),
    ),
    (
        "consent",
        re.compile(
            r"before you continue"
            r"|we (?:value|respect|care about) your privacy"
            r"|(?:accept|allow|reject|manage) (?:all|cookies|preferences|settings)"
            r"|use (?:of )?cookies"
            r"|our partners (?:store|process|use)"
            r"|your (?:cookie|consent|privacy) (?:choices|preferences|settings)"
            r"|cookies? (?:zu|akzeptieren|policy|richtlinie)|zustimmung|einwilligung"
            r"|accepter (?:les|tous)|politique de confidentialité|aceptar (?:todas|cookies)"
            r"|utilizziamo i cookie"
            r"|\b(?:gdpr|dsgvo|rgpd)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "scripts",
        re.compile(
            r"(?:enable|requires?|turn on|need|without|activate) (?:java ?script|js\b)"
            r"|java ?script (?:is )?(?:disabled|required|needed|must be|not enabled|aktivieren)"
            r"|browser (?:is )?(?:not supported|unsupported|out of date|outdated)",
            re.IGNORECASE,
        ),
    ),
)
_CONSENT_WORDS = frozenset(
    [
        "cookie",
        "cookies",
        "consent",
        "privacy",
        "partners",
        "vendors",
        "gdpr",
        "purposes",
        "legitimate",
        "preferences",
        "advertising",
        "datenschutz",
        "einwilligung",
        "zustimmung",
        "confidentialité",
        "consentement",
        "partenaires",
        "privacidad",
        "consentimiento",
        "personal",
        "data",
        "tracking",
    ]
)
_OWN_CONSENT_WORDS = frozenset(
    ("cookie", "cookies", "consent", "einwilligung", "consentement", "consentimiento")
)
_SILENT = ("script", "style", "noscript", "template", "svg", "head")


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutItem:
    """The words that a feed has of an item, as plain text."""

    title: str = ""
    text: str = ""


def verdict_of_page(page: etree._Element, text: str) -> Verdict | None:
    """The verdict on a page as a whole, by the text of the article that was found in it; None if it may be
    an article."""
    if len(text) >= LEAST_CHARACTERS:
        return None
    shown = " ".join(_shown_text(page).split())
    said = " ".join(map(_text, page.iter("noscript")))[:_SHORT]
    if len(shown) <= _SHORT and (wall := _wall(f"{_title(page)} {shown} {said}")) is not None:
        return wall
    if _has_password(page):
        return "login"
    if len(shown) < LEAST_CHARACTERS:
        if len(shown) < _NEARLY_NOTHING and page.find(".//script") is not None:
            return "scripts"
        return "stub" if shown else "empty"
    return "stub" if text else "empty"


def verdict_of(page: etree._Element, text: str, *, html: str, url: str, about: AboutItem | None) -> Verdict:
    """The verdict on the text that was found in a page, its HTML, at an address."""
    if (wall := _wall_around(page, text)) is not None:
        return wall
    if _is_list(page, text, html, url):
        return "list"
    if about is not None and (_shares_nothing(about, text) or not _is_about(about, f"{_title(page)} {text}")):
        return "other_page"
    return "article"


def _wall_around(page: etree._Element, text: str) -> Verdict | None:
    words = [each.lower() for each in _WORD.findall(text)]
    own = sum(each in _OWN_CONSENT_WORDS for each in words)
    if own >= 3 and own + sum(each in _CONSENT_WORDS for each in words) > 2 * _DENSE * len(words):
        return "consent"
    kinds = [verdict for verdict, phrase in _PHRASES if phrase.search(text)]
    counts = {verdict: len(set(map(str.lower, phrase.findall(text)))) for verdict, phrase in _PHRASES}
    if kinds and len(text) <= _SHORT:
        return kinds[0]
    if len(text) <= _MIDDLE:
        many = [verdict for verdict in kinds if counts[verdict] >= 3]
        if many:
            return many[0]
    end = text[-400:]
    if len(text) <= _MIDDLE and (wall := _phrase_of("paywall", end)):
        return wall
    is_cut = text.endswith(("...", "…")) or len(text) <= _SHORT
    if is_cut and (_is_paid(page) or (len(text) <= _MIDDLE and _wall_outside(page))):
        return "paywall"
    if len(text) <= _SHORT and _has_password(page) and len(list(page.iter("p"))) < _FEW_LINKS:
        return "login"
    return None


def _phrase_of(wanted: Verdict, text: str) -> Verdict | None:
    return next((verdict for verdict, phrase in _PHRASES if verdict == wanted and phrase.search(text)), None)


def _wall(text: str) -> Verdict | None:
    return next((verdict for verdict, phrase in _PHRASES if phrase.search(text)), None)


_PAID = re.compile(r'"isAccessibleForFree"\s{0,9}:\s{0,9}"?false', re.IGNORECASE)
_WALL_NAME = re.compile(
    r"(?:\b|_)(?:paywall|regwall|piano-?offer|tp-container|subscription-wall)", re.IGNORECASE
)


def _is_paid(page: etree._Element) -> bool:
    return any(
        each.get("type") == "application/ld+json" and _PAID.search(each.text or "")
        for each in page.iter("script")
    )


def _wall_outside(page: etree._Element) -> bool:
    """True if an element is named as a wall and says so."""
    for each in page.iter("div", "section", "aside"):
        names = f"{each.get('class') or ''} {each.get('id') or ''}"
        if len(names) > 3 and _WALL_NAME.search(names) and _phrase_of("paywall", _text(each)[:2_000]):
            return True
    return False


def _is_list(page: etree._Element, text: str, html: str, url: str) -> bool:
    """True if much of the text is the page's links, or the texts of the entries of the page's list."""
    words = f" {' '.join(_WORD.findall(text))} "
    links = {" ".join(_WORD.findall(_text(each))) for each in page.iter("a")}
    linked = [each for each in links if len(each) > _SHORT_LINK and f" {each} " in words]
    share = sum(map(len, linked)) / len(words)
    if len(linked) >= _FEW_LINKS and share > (_LIST_SHARE if "\n" in text else _DUMP_SHARE):
        return True
    found = detect(html, url)
    # Sentences on what was seen, and on doubts: one may be whether these are news.
    if found.verdict == "none" or len(found.evidence) > _MOST_EVIDENCE:
        return False
    lines = text.split("\n")
    begins = tuple(entry.text[:_BEGIN] for entry in found.entries if entry.text)
    return bool(begins) and sum(line.startswith(begins) for line in lines) * 2 > len(lines)


def _shares_nothing(about: AboutItem, text: str) -> bool:
    """True if the text has no word of what the feed says of the item, where that has enough. The title of a
    page is the item's also where its text is another one, such as that of comments."""
    said = f"{about.title} {about.text[:_SAID]}"
    known = set(_words(said))
    return len(known) >= _LEAST_SAID and known.isdisjoint(_words(text))


def _is_about(about: AboutItem, text: str) -> bool:
    """True if a page has some of the words of an item's title or of its text; also where it has few words."""
    on_page = set(_words(text, least=_SIGNIFICANT))
    for said in (about.title, about.text[:_SAID]):
        words = set(_words(said, least=_SIGNIFICANT))
        if len(words) >= 3 and len(words & on_page) >= max(2, _LEAST_KNOWN * len(words)):
            return True
    return len(set(_words(f"{about.title} {about.text}", least=_SIGNIFICANT))) < 3


def _words(text: str, *, least: int = 1) -> list[str]:
    """Words of so many letters and more; of writing without spaces pairs of characters."""
    found = []
    for each in _RUN.findall(text.lower()):
        if _WITHOUT_SPACES.match(each):
            found += [each[at : at + 2] for at in range(max(len(each) - 1, 1))]
        elif len(each) >= least:
            found.append(each)
    return found


def _has_password(page: etree._Element) -> bool:
    return any((each.get("type") or "").lower() == "password" for each in page.iter("input"))


def _title(page: etree._Element) -> str:
    return " ".join((each.text or "") for each in page.iter("title"))[:300]


def _text(element: etree._Element) -> str:
    return "".join(map(str, element.itertext()))


def _shown_text(page: etree._Element) -> str:
    """The text of a page but for scripts, styles and its head."""
    pieces: list[str] = []
    silent = 0
    for event, each in etree.iterwalk(page, events=("start", "end")):
        if event == "start":
            silent += each.tag in _SILENT
            pieces.append("" if silent else f" {each.text or ''}")
        else:
            silent -= each.tag in _SILENT
            pieces.append("" if silent else f" {each.tail or ''}")
    return "".join(pieces)
