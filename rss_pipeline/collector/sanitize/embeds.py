"""Sites with players that publishers embed: the page that a frame is of, and the frame of a page.

One table for all doors. Where HTML is shown, a frame is a link to its page (`replace.py`); the reader's own
pages load the frame once somebody clicks, and name its hosts in their policy (api/pages/render.py). A site
that is not in this table has no frame anywhere, only the link. Posts of other sites, which scripts would
show, are links too.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal
from urllib.parse import parse_qsl, quote, urlsplit

from rss_pipeline.collector.parse.links import is_web

Kind = Literal["video", "audio"]


@dataclass(frozen=True, slots=True)
class _Address:
    """One form of a site's addresses. The group `id` of its path, or of a parameter's value, is `{id}`."""

    host: str
    path: str
    """A regular expression of the whole path."""
    parameter: str = ""
    """The parameter of the query that has the id, if the path has none."""
    value: str = "(?P<id>.+)"
    """A regular expression of its whole value."""


@dataclass(frozen=True, slots=True)
class _Site:
    """A site: its addresses in frames and links, and what is made of them."""

    name: str
    kind: Kind
    addresses: tuple[_Address, ...]
    page: str
    """The page for people, which must be one of `addresses`, so that its frame is found again."""
    frame: str
    further: tuple[tuple[str, str, str], ...] = ()
    """Parameters that may be there: their name, and what they add to `page` and `frame`."""
    needs_origin: bool = False
    """It plays nothing for a page that does not say where it is."""


@dataclass(frozen=True, slots=True)
class Player:
    """A player of a site, at the address of its page and at that of its frame."""

    site: str
    kind: Kind
    page: str
    frame: str
    needs_origin: bool


_ID = r"(?P<id>[A-Za-z0-9_-]{1,64})"
_NUMBER = r"(?P<id>[0-9]{1,20})"
_SLUG = r"(?P<id>[A-Za-z0-9_.%-]{1,200})"
_YOUTUBE = r"(?:(?:www|m|music)\.)?youtube(?:-nocookie)?\.com"
_VIDEO = r"(?P<id>(?!videoseries|live_stream)[A-Za-z0-9_-]{11})"
_STARTS = (("start", "&t={value}s", "&start={value}"), ("t", "&t={value}s", "&start={value}"))

_SITES = (
    _Site(
        "YouTube",
        "video",
        (
            # The plug-in of old had its parameters behind `&`.
            _Address(_YOUTUBE, rf"/(?:embed|v|e|shorts|live)/{_VIDEO}(?:&.*)?"),
            _Address(_YOUTUBE, "/watch", "v", _VIDEO),
            _Address(r"youtu\.be", f"/{_VIDEO}"),
        ),
        page="https://www.youtube.com/watch?v={id}",
        frame="https://www.youtube-nocookie.com/embed/{id}?autoplay=1",
        further=_STARTS,
        needs_origin=True,
    ),
    _Site(
        "YouTube",
        "video",
        (_Address(_YOUTUBE, "/(?:embed/videoseries|playlist)", "list", _ID),),
        page="https://www.youtube.com/playlist?list={id}",
        frame="https://www.youtube-nocookie.com/embed/videoseries?list={id}",
        needs_origin=True,
    ),
    _Site(
        "Vimeo",
        "video",
        (
            _Address(r"player\.vimeo\.com", f"/video/{_NUMBER}"),
            _Address(r"(?:www\.)?vimeo\.com", f"/(?:channels/[A-Za-z0-9_-]+/)?{_NUMBER}"),
        ),
        page="https://vimeo.com/{id}",
        frame="https://player.vimeo.com/video/{id}?autoplay=1",
        # The key of a video that is not listed.
        further=(("h", "?h={value}", "&h={value}"),),
        needs_origin=True,
    ),
    _Site(
        "Dailymotion",
        "video",
        (
            _Address(r"(?:www\.)?dailymotion\.com", f"/(?:embed/)?video/{_ID}"),
            _Address(r"geo\.dailymotion\.com", r"/player(?:/[a-z0-9]+)?\.html", "video", _ID),
            _Address(r"dai\.ly", f"/{_ID}"),
        ),
        page="https://www.dailymotion.com/video/{id}",
        frame="https://geo.dailymotion.com/player.html?video={id}",
    ),
    _Site(
        "Twitch",
        "video",
        (
            _Address(r"player\.twitch\.tv", "/", "video", f"v?{_NUMBER}"),
            _Address(r"www\.twitch\.tv", f"/videos/{_NUMBER}"),
        ),
        page="https://www.twitch.tv/videos/{id}",
        # The script of the page adds its own host, without which Twitch plays nothing.
        frame="https://player.twitch.tv/?video={id}&parent=",
    ),
    _Site(
        "Twitch",
        "video",
        (
            _Address(r"player\.twitch\.tv", "/", "channel", _ID),
            _Address(r"www\.twitch\.tv", f"/{_ID}"),
        ),
        page="https://www.twitch.tv/{id}",
        frame="https://player.twitch.tv/?channel={id}&parent=",
    ),
    _Site(
        "Twitch",
        "video",
        (
            _Address(r"clips\.twitch\.tv", "/embed", "clip", _ID),
            _Address(r"clips\.twitch\.tv", f"/{_ID}"),
        ),
        page="https://clips.twitch.tv/{id}",
        frame="https://clips.twitch.tv/embed?clip={id}&parent=",
    ),
    _Site(
        "TED",
        "video",
        (_Address(r"(?:embed(?:-ssl)?|www)\.ted\.com", rf"/talks/(?:lang/[a-z-]+/)?{_SLUG}"),),
        page="https://www.ted.com/talks/{id}",
        frame="https://embed.ted.com/talks/{id}",
    ),
    _Site(
        "the Internet Archive",
        "video",
        (_Address(r"(?:www\.)?archive\.org", f"/(?:embed|details)/{_SLUG}"),),
        page="https://archive.org/details/{id}",
        frame="https://archive.org/embed/{id}",
    ),
    _Site(
        "Bilibili",
        "video",
        (
            _Address(r"player\.bilibili\.com", r"/player\.html", "bvid", _ID),
            _Address(r"www\.bilibili\.com", f"/video/{_ID}/?"),
        ),
        page="https://www.bilibili.com/video/{id}",
        frame="https://player.bilibili.com/player.html?bvid={id}",
    ),
    _Site(
        "Rutube",
        "video",
        (_Address(r"rutube\.ru", f"/(?:play/embed|video)/{_ID}/?"),),
        page="https://rutube.ru/video/{id}/",
        frame="https://rutube.ru/play/embed/{id}",
    ),
    _Site(
        "Streamable",
        "video",
        (_Address(r"streamable\.com", f"/(?:[eos]/)?{_ID}"),),
        page="https://streamable.com/{id}",
        frame="https://streamable.com/e/{id}",
    ),
    _Site(
        "SoundCloud",
        "audio",
        (_Address(r"w\.soundcloud\.com", "/player/?", "url"),),
        page="https://w.soundcloud.com/player/?url={id}",
        frame="https://w.soundcloud.com/player/?url={id}",
    ),
    _Site(
        "Spotify",
        "audio",
        (
            _Address(
                r"open\.spotify\.com",
                "(?:/intl-[a-z]+)?/(?:embed(?:-podcast)?/)?"
                "(?P<id>(?:episode|show|track|album|playlist|artist)/[A-Za-z0-9]{1,40})",
            ),
        ),
        page="https://open.spotify.com/{id}",
        frame="https://open.spotify.com/embed/{id}",
    ),
    _Site(
        "Bandcamp",
        "audio",
        (_Address(r"bandcamp\.com", "/EmbeddedPlayer/(?P<id>[A-Za-z0-9_=/.-]{1,300})"),),
        page="https://bandcamp.com/EmbeddedPlayer/{id}",
        frame="https://bandcamp.com/EmbeddedPlayer/{id}",
    ),
    _Site(
        "Mixcloud",
        "audio",
        (_Address(r"(?:www|player-widget)\.mixcloud\.com", "/widget/iframe/", "feed"),),
        page="https://player-widget.mixcloud.com/widget/iframe/?feed={id}",
        frame="https://player-widget.mixcloud.com/widget/iframe/?feed={id}",
    ),
    _Site(
        "Apple Podcasts",
        "audio",
        (
            _Address(
                r"(?:embed\.)?podcasts\.apple\.com",
                "/(?P<id>[a-z]{2}/podcast/(?:[A-Za-z0-9%_-]{1,300}/)?id[0-9]{1,20})",
            ),
        ),
        page="https://podcasts.apple.com/{id}",
        frame="https://embed.podcasts.apple.com/{id}",
        further=(("i", "?i={value}", "?i={value}"),),
    ),
    _Site(
        "Deezer",
        "audio",
        (
            _Address(
                r"(?:widget|www)\.deezer\.com",
                "/(?:widget/(?:auto|dark|light)/)?(?P<id>(?:track|album|playlist|show|episode)/[0-9]{1,20})",
            ),
        ),
        page="https://www.deezer.com/{id}",
        frame="https://widget.deezer.com/widget/auto/{id}",
    ),
)
_POSTS = {
    "amp-twitter": (("data-tweetid", "https://x.com/i/status/"),),
    "amp-instagram": (("data-shortcode", "https://www.instagram.com/p/"),),
    "amp-tiktok": (("data-src", ""),),
    "amp-facebook": (("data-href", ""),),
    "amp-reddit": (("data-src", ""),),
    "amp-pinterest": (("data-url", ""),),
    "amp-gist": (("data-gistid", "https://gist.github.com/"),),
    "amp-soundcloud": (
        ("data-trackid", "https://w.soundcloud.com/player/?url=https%3A//api.soundcloud.com/tracks/"),
        ("data-playlistid", "https://w.soundcloud.com/player/?url=https%3A//api.soundcloud.com/playlists/"),
    ),
    # What scripts fill on a page.
    "blockquote": (("data-instgrm-permalink", ""), ("cite", "")),
    "div": (("data-href", ""),),
}
"""Elements that stand for a post at another site, the attributes that name it, and what is before its id."""
POST_TAGS = frozenset(name for name in _POSTS if name.startswith("amp-"))
"""The elements among them that stand for nothing else."""
POST_SIGNS = ("instagram-media", "tiktok-embed", "fb-post", "fb-video")
"""Classes of the others, which stand for no post without."""
_VALUE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SECONDS = re.compile(r"([0-9]{1,6})s?")
_MOST_CHARACTERS = 1_000

FRAME_HOSTS = tuple(dict.fromkeys(f"https://{urlsplit(site.frame).netloc}" for site in _SITES))
"""The sources of frames of this table, for the policy of a page."""


@cache
def _forms() -> tuple[tuple[re.Pattern[str], re.Pattern[str], str, re.Pattern[str], _Site], ...]:
    """The forms of addresses, for the first frame: most HTML has none."""
    return tuple(
        (
            re.compile(address.host),
            re.compile(address.path),
            address.parameter,
            re.compile(address.value),
            site,
        )
        for site in _SITES
        for address in site.addresses
    )


def player(url: str) -> Player | None:
    """The player at this absolute address of a frame or a page; None if no site of the table has it."""
    if len(url) > _MOST_CHARACTERS:
        return None
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return None
    if parts.scheme not in ("http", "https"):
        return None
    for hosts, paths, parameter, values, site in _forms():
        if not hosts.fullmatch(host):
            continue
        found = paths.fullmatch(parts.path)
        query = dict(reversed(parse_qsl(parts.query)))
        if found is not None and parameter:
            found = values.fullmatch(query.get(parameter, ""))
        if found is not None:
            id = quote(found["id"], safe="") if parameter else found["id"]
            page, frame = next(_further(site, query), ("", ""))
            return Player(
                site=site.name,
                kind=site.kind,
                page=site.page.format(id=id) + page,
                frame=site.frame.format(id=id) + frame,
                needs_origin=site.needs_origin,
            )
    return None


def post(name: str, attributes: Mapping[str, str]) -> str | None:
    """The address of the post that an element with these attributes stands for; None if it is none."""
    if name not in POST_TAGS and not any(sign in attributes.get("class", "") for sign in POST_SIGNS):
        return None
    for attribute, start in _POSTS.get(name, ()):
        value = attributes.get(attribute, "").strip()
        if _VALUE.fullmatch(value) if start else is_web(value):
            return start + value
    return None


def _further(site: _Site, query: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name, page, frame in site.further:
        value = query.get(name, "")
        seconds = _SECONDS.fullmatch(value) if name in ("start", "t") else _VALUE.fullmatch(value)
        if seconds is not None:
            value = seconds[1] if name in ("start", "t") else value
            yield page.format(value=value), frame.format(value=value)
