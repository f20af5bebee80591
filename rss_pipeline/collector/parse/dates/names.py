"""Names of months and weekdays in the languages of feeds, without accents and in lower case.

Only names; dates are read in `read.py`. Servers write them by their locale, in full and cut to two, three or
four letters, and leave accents out.
"""

import unicodedata
from collections.abc import Mapping

_TO_BASE = str.maketrans({"ı": "i", "ł": "l"})
"""Letters that Unicode does not decompose."""


def folded(text: str) -> str:
    """`text` in lower case and without accents: `Févr` and `FEVR` are the same name.

    >>> folded("Şubat"), folded("środa"), folded("Ιανουάριος")
    ('subat', 'sroda', 'ιανουαριοσ')
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold().translate(_TO_BASE))
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


# A line a language: English, German, Dutch, French, Spanish, Portuguese, Italian, Polish, Russian, Greek,
# Hungarian, Turkish. Slavic and Greek months are in the genitive, too: "3 января".
_MONTHS = """
jan january | feb february | mar march | apr april | may | jun june | jul july | aug august
  | sep sept september | oct october | nov november | dec december
jänner januar | febr februar | mär märz mrz | | mai | juni | juli | | | okt oktober | | dez dezember
januari | februari | mrt maart | | mei | | | augustus | | | |
janv janvier | fév févr février | mars | avr avril | | juin | juil juill juillet | août aoû | septembre
  | octobre | novembre | déc décembre
ene enero | febrero | marzo | abr abril | mayo | junio | julio | ago agosto | set septiembre setiembre
  | octubre | noviembre | dic diciembre
janeiro | fev fevereiro | março | | maio | junho | julho | | setembro | out outubro | novembro | dezembro
gen gennaio | febbraio | | aprile | mag maggio | giu giugno | lug luglio | | sett settembre | ott ottobre | |
  dicembre
sty styczeń stycznia | lut luty lutego | marzec marca | kwi kwiecień kwietnia | maj maja
  | cze czerwiec czerwca | lip lipiec lipca | sie sierpień sierpnia | wrz wrzesień września
  | paź październik października | lis listopad listopada | gru grudzień grudnia
янв январь января | фев февр февраль февраля | мар март марта | апр апрель апреля | май мая | июн июнь июня
  | июл июль июля | авг август августа | сен сент сентябрь сентября | окт октябрь октября
  | ноя нояб ноябрь ноября | дек декабрь декабря
ιαν ιανουάριος ιανουαρίου | φεβ φεβρ φεβρουάριος φεβρουαρίου | μαρ μάρτιος μαρτίου | απρ απρίλιος απριλίου
  | μαι μάιος μαΐου | ιουν ιούνιος ιουνίου | ιουλ ιούλιος ιουλίου | αυγ αύγουστος αυγούστου
  | σεπ σεπτ σεπτέμβριος σεπτεμβρίου | οκτ οκτώβριος οκτωβρίου | νοε νοέμβριος νοεμβρίου
  | δεκ δεκέμβριος δεκεμβρίου
január | február | márc március | ápr április | máj május | jún június | júl július | augusztus
  | szept szeptember | október | | december
oca ocak | şub şubat | mart | nis nisan | mayıs | haz haziran | tem temmuz | ağu ağustos | eyl eylül
  | eki ekim | kas kasım | ara aralık
"""

_WEEKDAYS = """
mon monday tue tues tuesday we wed wes wednesday thu thur thurs thursday fri friday sat saturday sun sunday
mo montag di die dienstag mi mit mittwoch do don donnerstag fr fre freitag sa sam samstag
sonnabend so son sonntag
ma maa maandag din dinsdag wo woe woensdag donderdag vr vri vrijdag za zat zaterdag zo zon zondag
lun lundi mar mardi mer mercredi jeu jeudi ven vendredi samedi dim dimanche
lunes martes mié miércoles jue jueves vie viernes sáb sábado dom domingo
seg segunda ter terça qua quarta qui quinta sex sexta
lunedì martedì mercoledì gio giovedì venerdì sabato domenica
pn pon poniedziałek wt wto wtorek śr śro środa czw czwartek pt pią piątek sob sobota nd nie niedz niedziela
пн пнд понедельник вт втр вторник ср срд среда чт чтв четверг пт птн пятница
сб сбт суб суббота вс вск воскресенье
δευ δευτέρα τρί τρίτη τετ τετάρτη πέμ πέμπτη παρ παρασκευή σάβ σάββατο κυρ κυριακή
h hét hétfő k ked kedd sze szer szerda cs csü csüt csütörtök p pén pént péntek szo szom szombat v vas vasárnap
pts pzt pazartesi sal salı çar çarşamba per perşembe cum cuma cts cmt cumartesi paz pazar
"""


def named_months() -> list[tuple[str, int]]:
    """Each name, and the number of its month."""
    return [
        (folded(name), number)
        for line in _MONTHS.strip().replace("\n  ", " ").split("\n")
        for number, names in enumerate(line.split("|"), start=1)
        for name in names.split()
    ]


MONTHS: Mapping[str, int] = dict(named_months())
"""Numbers of months by name."""

WEEKDAYS: frozenset[str] = frozenset(map(folded, _WEEKDAYS.split()))
