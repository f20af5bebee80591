"""Words of addresses: of lists of news, of things for sale and services, of entries.

The identity of an address is links.py's.
"""

import re
from urllib.parse import unquote, urlsplit

LIST_WORDS = frozenset(
    # A list of forty strings is read by nobody.
    """announcements archiv archive archives article articles artikel aktuelles blog blogs career careers
    changelog entries episodes events jobs journal log nachrichten news newsroom notes noticias notizie
    nouvelles podcast post posts press presse publications release releases stellen termine updates
    vacancies veranstaltungen weblog writing""".split()  # noqa: SIM905
)
"""Last words of the addresses of lists, in a few languages."""
_OFFER_WORDS = frozenset(
    """catalog catalogue collection collections feature features kategorie kategorien leistungen prodotti
    product producto productos products produit produits produkt produkte rubric rubrik section sections
    service services shop solution solutions store topic topics use-cases""".split()  # noqa: SIM905
)
"""Words in the addresses of what a site offers, and of its sections."""
_ENTRY_WORDS = 3
"""Words or numbers at the end of an address that name an entry; a section has one or two."""
_WORDS = re.compile(r"[a-z0-9]+")
_NAME = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d\d")


def segments(url: str) -> list[str]:
    """The parts of an address's path in lower case, without numbers and endings."""
    found = [each.partition(".")[0] for each in _parts(url)]
    while found and (found[-1].isdigit() or found[-1] in ("index", "page")):
        found.pop()
    return [word for each in found for word in (_WORDS.findall(each) if len(each) < 20 else [each])]


def is_below_list(url: str) -> bool:
    """True for an address below that of a list of news: `/news/a-bridge`."""
    return bool(LIST_WORDS.intersection(_parts(url)[:-1]))


def is_of_offer(url: str) -> bool:
    """True for the address of a product, a service or a section."""
    return bool(_OFFER_WORDS.intersection(_parts(url)[:-1]))


def is_named_as_entry(url: str) -> bool:
    """True for an address that ends as those of entries do: with three words or more, or with a number."""
    last = next(reversed(_parts(url)), "")
    return len(_NAME.findall(last)) >= _ENTRY_WORDS or bool(_NUMBER.search(last + urlsplit(url).query))


def _parts(url: str) -> list[str]:
    try:
        path = unquote(urlsplit(url).path).lower()
    except ValueError:
        return []
    return [each for each in path.split("/") if each]
