"""The elements of HTML that are shown, with their attributes; those of formulas and drawings have tables of
their own (mathml.py, svg.py)."""


def names(text: str) -> frozenset[str]:
    """The names in a list of them."""
    return frozenset(text.split())


TAGS = names(
    """a abbr acronym address article aside audio b bdi bdo big blockquote br caption center cite code col
    colgroup
    dd del details dfn div dl dt em figcaption figure footer h1 h2 h3 h4 h5 h6 header hgroup hr i img ins kbd
    li main mark nav ol p picture pre q rp rt rtc ruby s samp section small source span strike strong sub
    summary sup table tbody td tfoot th thead time tr track tt u ul var video wbr"""
)
ATTRIBUTES = {
    "*": {"dir", "lang", "title"},
    "a": {"href", "hreflang"},
    "audio": {"src", "controls"},
    "col": {"span"},
    "colgroup": {"span"},
    "data": {"value"},
    "del": {"datetime"},
    "details": {"open"},
    "img": {"src", "alt", "width", "height"},
    "ins": {"datetime"},
    "li": {"value"},
    "ol": {"start", "type", "reversed"},
    "source": {"src", "type"},
    "td": {"colspan", "rowspan", "headers", "align"},
    "th": {"colspan", "rowspan", "headers", "align", "scope"},
    "time": {"datetime"},
    "track": {"src", "kind", "srclang", "label"},
    "video": {"src", "poster", "controls", "width", "height"},
}
DROPPED_WITH_CONTENT = names("script style noscript template title object svg math iframe noembed noframes")
"""Elements of which not even the text is shown, if nothing was put in their place (replace.py)."""
