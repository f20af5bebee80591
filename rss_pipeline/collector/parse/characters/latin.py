"""The letters beyond ASCII of languages in Latin script, and the codec that they point to.

charset-normalizer ranks the Latin codecs by little: most bytes are letters in each of them. The languages of
one codec share letters that the languages of another do not have together.
"""

import re
from collections.abc import Mapping

_LANGUAGES = (
    ("cp1252", "àáâãçéêíóôõúü"),  # Portuguese
    ("cp1252", "àâæçèéêëîïôùûüÿœ"),  # French
    ("cp1252", "áéíñóúü"),  # Spanish
    ("cp1252", "àáçèéíïòóúü"),  # Catalan
    ("cp1252", "äöüß"),  # German
    ("cp1252", "àèéìíîòóùú"),  # Italian
    ("cp1252", "áèéëíïóöúü"),  # Dutch
    ("cp1252", "åäöé"),  # Swedish, Finnish
    ("cp1252", "æøåéèêóòâôü"),  # Danish, Norwegian
    ("cp1250", "áčďéěíňóřšťúůýž"),  # Czech
    ("cp1250", "áäčďéíĺľňóôŕšťúýž"),  # Slovak
    ("cp1250", "ąćęłńóśźż"),  # Polish
    ("cp1250", "áéíóöőúüű"),  # Hungarian
    ("cp1250", "ăâîşţ"),  # Romanian
    ("cp1250", "čćđšž"),  # Croatian, Slovenian
    ("cp1254", "çğıİöşüâî"),  # Turkish
    ("cp1257", "ąčęėįšųūž"),  # Lithuanian
    ("cp1257", "āčēģīķļņšūž"),  # Latvian
    ("cp1257", "äõöüšž"),  # Estonian
    ("cp1252", "áðéíóúýþæö"),  # Icelandic: last, for Turkish without ç and ü reads like it
)
_FAMILY: Mapping[str, str] = {"iso8859-2": "cp1250"}
_LETTERS = tuple(
    (codec, frozenset(letters + letters.upper().replace("SS", ""))) for codec, letters in _LANGUAGES
)
_MARKS = frozenset("«»„“”‚‘’‹›–—…•·§©®°€£¿¡ºª\u00a0")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def likeliest_latin(texts: Mapping[str, str]) -> str:
    """The codec, of those that decoded `texts`, in which most letters belong to one language.

    The order of `texts` decides nothing; between equals the more usual language wins, then the first codec.
    """

    def likelihood(codec: str) -> tuple[float, int]:
        letters = [letter for letter in _BEYOND_ASCII.findall(texts[codec]) if letter not in _MARKS]
        family = _FAMILY.get(codec, codec)
        shares = [
            (sum(map(own.__contains__, letters)) / max(1, len(letters)), -place)
            for place, (name, own) in enumerate(_LETTERS)
            if name == family
        ]
        return max(shares, default=(0.0, -len(_LETTERS)))

    return max(sorted(texts), key=likelihood)
