"""Words of the languages of news that the guards know: function words, months, days, units, tolls.

Each list is of a language's common words. No list is of names, and none is complete: what is missing makes a
guard weaker, not wrong.
"""

from rss_pipeline.features.stories.words import bare, stem


def _bare(text: str) -> frozenset[str]:
    return frozenset(map(bare, text.split()))


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, text.split()))


FUNCTION_WORDS = _bare(
    # English
    "a about above after again against all almost along also although always am among an and another any are "
    "around as at away back be became because been before being below between both but by can could did "
    "do does "
    "down during each either else even ever every few first for from had has have he her here hers him "
    "his how i "
    "if in into is it its just last least less like made make many may me might more most much must my "
    "near never "
    "new next no nor not now of off on once one only onto or other our out over own per said same say "
    "says she "
    "should since so some still such than that the their them then there these they this those though "
    "through to "
    "today tomorrow too toward towards two under until up upon us very was we were what when where which "
    "while who "
    "whom whose why will with within without would yesterday yet you your according told mr mrs ms dr sir "
    # German
    "aber alle allem allen aller alles als also am an auch auf aus bei beim bis da damit dann das dass "
    "dem den denn "
    "der des die dies diese dieser dieses doch dort du durch ein eine einem einen einer eines er es etwa "
    "fur gegen "
    "gut haben hat hatte hier ich ihm ihn ihr ihre im in ins ist ja jetzt kann kein keine man mehr mit "
    "muss nach "
    "neu neue neuen neuer neues nicht noch nun nur ob oder ohne schon sehr seit sein seine sich sie sind "
    "so soll "
    "sollen uber um und uns unter vom von vor war waren warum was weil weiter wenn wer werden wie wieder "
    "will wir "
    "wird wo wurde wurden zu zum zur zwei zwischen "
    # French
    "a au aux avec ce ces cet cette comme dans de des dont du elle elles en entre est et etait ete etre "
    "eux fait il "
    "ils je la le les leur leurs lui mais mes meme moins mon ne nos notre nous on ont ou par pas plus "
    "pour pres "
    "quand que quel quelle qui sa sans sauf se ses si son sont sous sur ta tous tout toute toutes tres "
    "un une vers "
    "voici vont vos votre vous y apres avant ans selon deux "
    # Spanish, Portuguese, Italian, Dutch
    "al algo ante antes aqui asi aun cada como con contra cual cuando de del desde donde dos el ella "
    "ellos en entre "
    "era eran es esa ese eso esta este esto fue fueron ha han hasta hay hoy la las le les lo los mas me "
    "mi muy nada "
    "ni no nos o otra otro para pero por porque que se sea segun ser si sin sobre son su sus tambien "
    "tras tu un una "
    "unas uno unos y ya ao aos as com da das do dos e em ela foi mais na nas nao no nos os ou pela pelo "
    "pois por nesta neste desta deste apos "
    "que sao sem seu sua uma che chi con cui da dal dalla dei del della delle di e ed gli ha hanno il in "
    "la le lo "
    "ma nel nella non o per piu sono su sul sulla tra un una de een en het in is met na niet of om ook "
    "op te tot "
    "uit van voor zijn wordt heeft "
    # Polish, Swedish
    "jest nie się na do od za przez przy dla jako oraz ale czy już także tylko może był była było były "
    "będzie został została zostało który która które tym tego jego ich "
    "och att det som för med av till inte har ett den från efter vid kan ska när vi han hon man alla också "
    # Turkish, Russian
    "ve bir bu için daha çok gibi kadar sonra önce olan olarak veya değil diye üzere tüm bazı ancak çünkü "
    "karşı arasında üzerinde altında içinde dışında kendi olduğu "
    "из для что как его она они был была было были это этот эти при над под без или также более после перед "
    "между который которые которая которого когда уже еще лишь только если все всех свой своей того чтобы "
    "около через до от об за не но то же ли бы на по со во ко "
)

BEFORE_PLACES = {
    "en": frozenset({"in", "near", "at", "off", "outside", "from"}),
    "de": frozenset({"in", "bei", "aus", "nach", "vor", "nahe", "von", "gegen"}),
    "fr": frozenset({"a", "en", "pres", "dans", "au", "de"}),
    "es": frozenset({"en", "de", "cerca", "desde", "junto"}),
    "it": frozenset({"a", "in", "di", "nel", "presso"}),
    "pt": frozenset({"em", "no", "na", "de"}),
    "nl": frozenset({"in", "bij", "uit", "naar", "van", "te"}),
}
"""Words before the name of a place."""
BEFORE_ANY_PLACE = frozenset[str]().union(*BEFORE_PLACES.values())
SPELLED = {
    word: number
    for number, words in enumerate(
        (
            "zero null zero cero", "one eins", "two zwei deux dos due dois duas twee iki два две двое двух",
            "three drei trois tres tre drie uc три трое трех",
            "four vier quatre cuatro quattro quatro dort четыре четверо четырех",
            "five funf cinq cinco cinque vijf bes пять пятеро", "six sechs seis zes altı шесть",
            "seven sieben sept siete sette sete zeven yedi семь",
            "eight acht huit ocho otto oito sekiz восемь",
            "nine neun neuf nueve nove negen dokuz девять", "ten zehn dix diez dieci dez tien десять",
            "eleven elf onze once undici", "twelve zwolf douze doce dodici doze twaalf",
            "thirteen dreizehn treize trece", "fourteen vierzehn quatorze catorce",
            "fifteen funfzehn quinze quince", "sixteen sechzehn seize", "seventeen siebzehn",
            "eighteen achtzehn", "nineteen neunzehn", "twenty zwanzig vingt veinte venti vinte",
        )
    )
    for word in words.split()
}  # fmt: skip
"""Numbers up to twenty that are words of nothing else in these languages."""
SPELLED.pop("once")
SPELLED.pop("elf")
ROUND_NUMBERS = _bare(
    "thirty forty fifty sixty seventy eighty ninety hundred thousand dozen dozens dreissig vierzig "
    "funfzig hundert "
    "tausend trente quarante cinquante cent cents mille douzaine treinta cuarenta cincuenta cien mil decenas"
)
ORDINALS = {
    word: number
    for number, words in enumerate(
        (
            "first erste ersten erster erstes premier premiere primer primera 1st",
            "second zweite zweiten zweiter zweites deuxieme segundo segunda 2nd",
            "third dritte dritten dritter drittes troisieme tercer tercera 3rd",
            "fourth vierte vierten vierter viertes quatrieme cuarto cuarta 4th",
            "fifth funfte funften funfter cinquieme quinto quinta 5th",
            "sixth sechste sechsten sixieme sexto sexta",
            "seventh siebte siebten septieme septimo septima",
            "eighth achte achten huitieme octavo octava",
            "ninth neunte neunten neuvieme noveno novena",
            "tenth zehnte zehnten dixieme decimo decima",
        ),
        1,
    )
    for word in words.split()
}
MONTHS = {
    word: number
    for number, words in enumerate(
        (
            "january ocak января январь январе jan januar janner janvier enero janeiro gennaio januari",
            "february subat февраля февраль феврале feb februar fevrier febrero fevereiro febbraio februari",
            "march марта март марте marz mars marzo marco maart",
            "april nisan апреля апрель апреле apr avril abril aprile",
            "may mayıs мая мае mai mayo maio maggio mei",
            "june haziran июня июнь июне jun juni juin junio junho giugno",
            "july temmuz июля июль июле jul juli juillet julio julho luglio",
            "august agustos августа август августе aug aout agosto augustus",
            "september eylul сентября сентябрь сентябре sept sep septembre septiembre setembro settembre",
            "october ekim октября октябрь октябре oct oktober okt octobre octubre outubro ottobre",
            "november kasım ноября ноябрь ноябре nov novembre noviembre novembro",
            "december aralık декабря декабрь декабре dec dezember dez decembre diciembre dezembro dicembre",
        ),
        1,
    )
    for word in words.split()
}
DOUBTFUL_MONTHS = frozenset(
    {"may", "march", "mars", "mai", "mei", "marco", "augustus", "juli", "sep", "jun", "jan"}
)
"""Words that are also others: months only beside a number or after a word for "in"."""
BEFORE_MONTHS = frozenset(
    [
        "in",
        "of",
        "since",
        "until",
        "from",
        "for",
        "im",
        "seit",
        "bis",
        "en",
        "de",
        "du",
        "fin",
        "debut",
        "mid",
        "since",
        "through",
        "and",
        "to",
    ]
)
WEEKDAYS = {
    word: number
    for number, words in enumerate(
        (
            "monday pazartesi понедельник понедельника montag lundi lunes segunda-feira lunedi maandag",
            "tuesday salı вторник вторника terca-feira dienstag mardi martes martedi dinsdag",
            "wednesday carsamba среда среду quarta-feira mittwoch mercredi miercoles mercoledi woensdag",
            "thursday persembe четверг четверга quinta-feira donnerstag jeudi jueves giovedi donderdag",
            "friday cuma пятница пятницу пятницы sexta-feira freitag vendredi viernes venerdi vrijdag",
            "saturday cumartesi суббота субботу субботы samstag sonnabend samedi sabado sabato zaterdag",
            "sunday pazar воскресенье воскресенья sonntag dimanche domingo domenica zondag",
        )
    )
    for word in words.split()
}
# "am Montagabend": German writes the part of the day in one word with it.
WEEKDAYS.update(
    {
        day + part: number
        for day, number in WEEKDAYS.items()
        if day.endswith(("tag", "mittwoch", "sonnabend"))
        for part in ("fruh", "morgen", "vormittag", "mittag", "nachmittag", "abend", "nacht")
    }
)
OTHER_WEEKDAYS = _bare(
    "segunda terça quarta quinta sexta feira günü środę piątek sobotę niedzielę poniedziałek wtorek czwartek"
)
"""Words of Portuguese and Turkish weekdays, which are two, and Polish ones."""
COUNTED = {
    word: kind
    for kind, words in {
        "part": "part parts teil teile partie parte deel pt",
        "day": "day tag jour dia giorno dag",
        "stage": "stage etappe etape etapa tappa",
        "round": "round matchday gameweek runde spieltag journee jornada giornata ronda leg",
        "episode": "episode ep folge epis capitulo puntata aflevering",
        "chapter": "chapter kapitel chapitre lesson lektion lecon leccion module",
        "quarter": "quarter quartal quartals trimestre kwartaal",
        "issue": "issue edition ausgabe numero nummer nr no ausgabe newsletter digest",
        "volume": "volume vol band tome volumen tomo",
        "week": "week woche semaine semana settimana kw",
        "season": "season staffel saison temporada stagione seizoen",
        "beta": "beta alpha rc milestone preview build snapshot",
        "game": "game match spiel partido gara heat race lauf",
        "phase": "phase fase session sitzung test group gruppe groupe grupo",
        "flight": "flight flug vol vuelo",
        "lot": "lot charge lote batch case fall",
    }.items()
    for word in words.split()
}
"""Words that number the pieces of a series. `vol` is a flight in French: both are told apart by numbers."""
VERSION_WORDS = frozenset(
    [
        "version",
        "versions",
        "v",
        "release",
        "ver",
        "versione",
        "versie",
        "versionen",
        "firmware",
        "kernel",
        "ios",
        "android",
        "update",
    ]
)
TOLLS = _stems(
    "dead died dies deaths death die killed kill kills hurt injured injuries injury wounded missing toll "
    "victims "
    "casualties bodies people persons passengers homes houses buildings evacuated displaced hectares "
    "acres arrested "
    "arrests customers cases infected patients rescued survivors residents households troops protesters "
    "tote toten todesopfer verletzte verletzten vermisste vermissten opfer menschen personen leichen "
    "hauser hektar "
    "verletzt ums evakuiert festnahmen falle infizierte "
    "morts mort blesses blesse disparus victimes personnes habitants hectares maisons evacues cas corps "
    "deces "
    "muertos muerto heridos herido desaparecidos victimas personas casas hectareas evacuados casos "
    "fallecidos "
    "mortos feridos pessoas morti feriti dispersi persone doden gewonden vermisten mensen "
    "tue tues tuee uccisi zabitych rannych ofiar osob doda skadade saknade "
    "погибли погиб погибших пострадали пострадавших ранены раненых жертв человек "
    "kişi kişinin kişiden kişiyi ölü yaralı kayıp şüpheli şüpheliden gözaltı işçi asker"
)
"""Stems beside a number that may rise: it never makes two events of one."""
UNIT_WORDS = {
    word: unit
    for unit, words in {
        "%": "% percent pct prozent procent percento punkte",
        "km": "km kilometer kilometers kilometre kilometres kilometern kilometro kilometros",
        "m": "m metre metres meter meters metern metro metros",
        "mile": "mile miles meilen",
        "mph": "mph",
        "kmh": "kmh",
        "mm": "mm millimeter millimetre millimetres",
        "cm": "cm zentimeter centimetre centimetres centimetros",
        "inch": "inch inches zoll pouces pulgadas",
        "degree": "° degree degrees grad degres grados",
        "hour": "hour hours stunde stunden heure heures hora horas",
        "minute": "minute minutes minuten minuto minutos",
        "year": "year years jahr jahre jahren an ans ano anos anni jaar",
        "month": "months monate monaten mois meses",
        "week": "weeks wochen semaines semanas",
        "day": "days tage tagen jours dias",
        "point": "point points punkt puntos",
        "vote": "vote votes stimmen voix votos",
        "kg": "kg kilo kilos kilogramm",
        "ton": "ton tons tonnes tonnen toneladas",
        "gb": "gb gigabyte", "tb": "tb", "mb": "mb", "ghz": "ghz", "mw": "mw megawatt",
    }.items()
    for word in words.split()
}  # fmt: skip
SCALES = {
    "thousand": 1e3, "tausend": 1e3, "mille": 1e3, "mil": 1e3, "k": 1e3,
    "million": 1e6, "millions": 1e6, "millionen": 1e6, "mio": 1e6, "millones": 1e6, "m": 1e6, "mn": 1e6,
    "milhoes": 1e6,
    "milioni": 1e6, "miljoen": 1e6,
    "billion": 1e9, "billions": 1e9, "bn": 1e9, "b": 1e9, "milliarden": 1e9, "mrd": 1e9, "milliard": 1e9,
    "milliards": 1e9, "miliardi": 1e9, "miljard": 1e9, "trillion": 1e12, "billionen": 1e12,
}  # fmt: skip
CURRENCIES = {
    "$": "$", "€": "€", "£": "£", "¥": "¥", "₩": "₩", "dollar": "$", "dollars": "$", "usd": "$", "euro": "€",
    "euros": "€", "eur": "€", "pound": "£", "pounds": "£", "gbp": "£", "pfund": "£", "yen": "¥", "yuan": "元",
    "franken": "chf", "chf": "chf", "francs": "chf", "dolares": "$", "pesos": "peso", "rupees": "inr",
    "crore": "inr",
}  # fmt: skip
PRICE_CUTS = _stems(
    "discount discounted cheaper clearance markdown bargain slashed coupon rabatt reduziert gunstiger "
    "schnappchen "
    "promo promotion soldes remise rebaja rebajado descuento oferta sconto korting"
)
PRICE_FALLS = _bare(
    "drop drops dropped fall falls down off low lowest save cut cuts reduced only just deal deals sale "
    "price-cut "
    "sinkt fallt nur statt billiger baisse chute baja cae cuesta menos solo"
)
"""Words that speak of a cut where a title has a price."""
RUMOURS = _stems(
    "rumor rumors rumour rumours rumored rumoured tipped leaked tipster reportedly geruchte gerucht "
    "angeblich "
    "rumeur rumeurs rumores rumor filtrado filtra presunto voci geleakt"
)
MAGNITUDE_WORDS = frozenset(["magnitude", "magnitud", "starke", "magnitudo"])
CLOCKS = frozenset(["am", "pm", "uhr", "gmt", "utc", "est", "edt", "cet", "h", "a", "p", "local"])
COMMON_GERMAN = _bare(
    "Mann Frau Kind Kinder Leute Mensch Menschen Jahr Jahre Jahren Tag Tage Woche Monat Stunde Stunden "
    "Zeit Ende "
    "Anfang Land Stadt Ort Haus Strasse Weg Platz Welt Leben Tod Tote Opfer Geld Preis Euro Prozent Million "
    "Millionen Milliarden Polizei Feuerwehr Gericht Urteil Prozess Haft Anklage Regierung Minister "
    "Ministerin "
    "Partei Gesetz Wahl Firma Unternehmen Konzern Chef Chefin Markt Umsatz Gewinn Verlust Brand Feuer Unfall "
    "Auto Fahrer Zug Bahn Flughafen Schule Klinik Krankenhaus Arzt Spiel Sieg Niederlage Tor Tore "
    "Trainer Liga "
    "Mannschaft Team Verein Wetter Regen Sturm Schnee Hilfe Problem Grund Folge Folgen Nacht Morgen "
    "Abend Mittag "
    "Kampf Streit Streik Angriff Fall Frage Antwort Teil Zahl Zahlen Quartal Version Update Fehler Suche "
    "Einsatz "
    "Schaden Verletzte Tote Fund Plan Neues Neue Warnung Ruckruf Tour Etappe Spieltag Punkt Punkte Protest "
    "Uhr Angaben Jährige Jährigen Jähriger Vormittag Nachmittag"
)
GERMAN_ENDINGS = (
    "ung", "ungen", "heit", "keit", "keiten", "schaft", "tion", "tionen", "ismus", "tat", "nis", "ling",
    "brand",
    "unfall", "preis", "preise", "zahl", "zahlen", "haft", "strafe", "fall", "wahl", "gericht", "amt",
    "werk", "zeit",
    "feuer", "tag", "jahr", "schaden", "opfer", "verbot", "gesetz",
)  # fmt: skip
