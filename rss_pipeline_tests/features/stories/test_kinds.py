"""Pairs of two items by kind: what looks alike and is no event, and what is one in other clothes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rss_pipeline.features.stories.model import WINDOW, Entry
from rss_pipeline.features.stories.window import Window
from rss_pipeline.features.stories.window_file import load, save

DAY = 86_400.0
NOW = 1_788_000_000.0
Said = tuple[str, str]
"""A title and a text."""


def item(id: str, said: Said, *, feed: str = "", language: str | None = None, hours: float = 0.0) -> Entry:
    time = NOW + hours * 3_600
    title, text = said
    return Entry(
        id=id,
        feed=feed or f"feed of {id}",
        title=title,
        text=text,
        link=f"https://{id}.example/{hours}",
        time=time,
        published=time,
        language=language,
        seen=time,
    )


def of_two_feeds(said: Sequence[Said], language: str) -> list[Entry]:
    return [item(f"{at}", each, language=language, hours=at) for at, each in enumerate(said)]


def count(entries: Sequence[Entry]) -> int:
    window = Window()
    return len({window.decide(entry).story for entry in entries})


STANDING: dict[str, list[Said]] = {
    "en": [
        (
            "Weekly Giveaway Winner",
            "Ada of Perth gets the teapot. Leave a comment below before Sunday night.",
        ),
        (
            "Weekly Giveaway Winner",
            "Tom of Leeds gets the bicycle. Leave a comment below before Sunday night.",
        ),
    ],
    "de": [
        ("Leserbriefe", "Der Steg am See fehlt vielen. Leserbriefe geben die Meinung der Verfasser wieder."),
        ("Leserbriefe", "Zu laute Glocken ärgern. Leserbriefe geben die Meinung der Verfasser wieder."),
    ],
    "es": [
        ("El tiempo hoy", "Cielo despejado en la costa, con levante flojo y máximas de 29 grados."),
        ("El tiempo hoy", "Heladas en el altiplano y nevadas débiles en los pasos de montaña."),
    ],
    "tr": [
        ("Günlük burç yorumları (1 Temmuz)", "Koç: Bugün sabırlı olun. Boğa: Harcamalara dikkat."),
        ("Günlük burç yorumları (1 Temmuz)", "Koç: İş yerinde yıldızınız parlıyor. Boğa: Yürüyüşe çıkın."),
    ],
    "zh": [
        ("读者来信", "柳林小区的读者反映，快递车整夜充电，声音很大。来信请注明姓名和电话。"),
        ("读者来信", "有读者建议在渔港码头设立公共厕所，夜里多开路灯。来信请注明姓名和电话。"),
    ],
    "ja": [
        ("今日の運勢", "おひつじ座は思わぬ出費に注意。おうし座は夕方に良い知らせが届きそうです。"),
        ("今日の運勢", "おひつじ座は早起きが吉。おうし座は掃除をすると探し物が見つかります。"),
    ],
    "fr": [("La recette du jour", ""), ("La recette du jour", "")],
}


@pytest.mark.parametrize("language", STANDING)
def test_a_standing_title_is_no_event(language: str) -> None:
    assert count(of_two_feeds(STANDING[language], language)) == 2


def test_a_title_that_the_texts_say_is_an_event() -> None:
    said = (
        "Lynx escapes from Chambray zoo",
        "A lynx has escaped from the zoo of Chambray, where a tree fell on its pen. Stay away.",
    )
    other = (
        said[0],
        "The lynx that escaped from Chambray zoo on Sunday was seen near the mill; a tree had fallen.",
    )
    assert count(of_two_feeds([said, other], "en")) == 1


def test_items_of_a_title_alone_join_by_one_that_neither_feed_had_in_a_month(tmp_path: Path) -> None:
    title = ("Minister resigns after court stops harbour loans", "")
    assert count(of_two_feeds([title, title], "en")) == 1
    assert count(of_two_feeds([(title[0], ""), (title[0], "The loans were for three quays.")], "en")) == 2
    for days, stories in ((8, 2), (31, 1)):
        window = Window()
        window.decide(item("old", title, feed="a", hours=-24 * days))
        window.forget(NOW - WINDOW)
        save(window, tmp_path / "window", database="x")
        kept = load(tmp_path / "window", database="x")
        assert kept is not None
        found = {kept.decide(item(feed, title, feed=feed)).story for feed in ("a", "b")}
        assert len(found) == stories, days


FAMOUS: dict[str, list[Said]] = {
    "en": [
        (
            "Quantrel shares slide after chip delay",
            "Shares in Quantrel fell 7 percent in San Mirado on Wednesday after the phone maker said that "
            "its next processor would be late.",
        ),
        (
            "Fire breaks out at Quantrel warehouse",
            "About 90 firefighters fought a blaze at a Quantrel warehouse in San Mirado on Wednesday. Nobody "
            "was hurt.",
        ),
    ],
    "an office": [
        (
            "Transport minister Hale scraps rail link",
            "Transport minister Oona Hale said on Tuesday in Kingsbury that the line will not come.",
        ),
        (
            "Transport minister Hale marries cellist",
            "Transport minister Oona Hale married Piet Rausch on Tuesday at the town hall of Kingsbury.",
        ),
    ],
    "it": [
        (
            "La premier Salvani annuncia il bonus asili",
            "La premier Giulia Salvani ha annunciato giovedì a Roma un bonus di 200 euro per gli asili nido.",
        ),
        (
            "La premier Salvani si sposa a Roma",
            "La premier Giulia Salvani ha sposato giovedì a Roma un cardiologo con una cerimonia civile.",
        ),
    ],
    "de": [
        (
            "Bundespräsident fordert Pflichtjahr",
            "Der Bundespräsident hat sich am Mittwoch bei einer Tagung in Dresden für ein soziales "
            "Pflichtjahr ausgesprochen. Wer sich kümmere, lerne das Land.",
        ),
        (
            "Bundespräsident ehrt Dresdner Helfer",
            "Für ihren Einsatz beim Hochwasser hat der Bundespräsident am Mittwoch in Dresden 24 Frauen und "
            "Männern einen Orden verliehen, darunter einer Bäckerin.",
        ),
    ],
    "fr": [
        (
            "Grève chez Velmora à Toulouse",
            "Quelque 300 salariés du site toulousain de Velmora ont cessé le travail mercredi pour demander "
            "une prime. La direction du groupe d'électronique reçoit les syndicats jeudi.",
        ),
        (
            "Velmora va équiper des satellites",
            "Le groupe d'électronique Velmora a signé mercredi à Toulouse un contrat pour les calculateurs "
            "de bord de douze satellites météo, livrés en 2028.",
        ),
    ],
    "es": [
        (
            "Mirena Soler cantará gratis en Bogotá",
            "La cantante Mirena Soler confirmó este viernes que dará un concierto gratuito en Bogotá, con "
            "orquesta. Se esperan 200.000 personas y se cortará la avenida.",
        ),
        (
            "Mirena Soler gana un juicio en Bogotá",
            "Un juzgado de Bogotá falló este viernes a favor de la cantante Mirena Soler, que reclamaba a su "
            "antigua discográfica las cintas originales.",
        ),
    ],
    "tr": [
        (
            "Velmora Bursa'da batarya fabrikası kuruyor",
            "Elektronik devi Velmora, Bursa'da 240 milyon avroluk bir batarya fabrikası kuracağını cuma günü "
            "açıkladı. Üretim 2028'de başlayacak.",
        ),
        (
            "Velmora Bursa Yıldızı'nın sponsoru oldu",
            "Elektronik firması Velmora, voleybol takımı Bursa Yıldızı ile üç yıllık sponsorluk imzaladı. "
            "Cuma günü Bursa'daki törende yeni formalar tanıtıldı.",
        ),
    ],
    "zh": [
        ("星澜科技发布折叠手机", "星澜科技周三在深圳发布新款折叠手机，下周五开售。铰链可承受五十万次开合。"),
        ("星澜科技因垄断被罚", "监管部门周三在深圳宣布，星澜科技滥用市场支配地位，罚款三亿元，并责令整改。"),
    ],
    "ko": [
        (
            "다온전자, 인도에 공장 증설",
            "다온전자는 목요일 첸나이에 세탁기 공장을 늘린다고 밝혔다. 투자 규모는 2억 달러다.",
        ),
        (
            "다온전자 배구단, 새 감독 선임",
            "다온전자 배구단이 목요일 박현수 감독을 새 사령탑으로 뽑았다. 계약은 3년이다.",
        ),
    ],
}


@pytest.mark.parametrize("kind", FAMOUS)
def test_a_name_in_the_news_and_a_place_are_no_event(kind: str) -> None:
    assert count(of_two_feeds(FAMOUS[kind], "en" if " " in kind else kind)) == 2


TEXT = (
    "A ferry with 60 passengers sank off Dunmarra early on Monday. Eleven people died and nine were missing, "
    "the coastguard said. The vessel had left the harbour in a storm. Two helicopters were searching the bay."
)
TEXT_SNOW = (
    "An avalanche swept away four skiers above Contamin on Saturday. One of them is dead. The danger was "
    "given as four of five, and two helicopters with six dogs were sent to the slope before noon."
)
TEXT_ES = (
    "La piscina municipal de Lodares permanecerá cerrada diez días por la aparicion de una bacteria en el "
    "agua. Los análisis se repetirán el lunes. El concejal pidió calma y anunció que los bonos se prolongan."
)
TEXT_ZH = (
    "为给新航道让路，海州老码头的百年灯塔将整体平移六十米。"
    "工程队将用液压千斤顶把塔身托起，再沿轨道缓慢推近，预计九月完工。"
)
TEXT_TR = (
    "Belediye, yüz yıllık vapur iskelesinin taşınmasına karar verdi. Ahşap yapı 300 metre doğuda yeniden "
    "kurulcak. Çalışmalar eylülde başlayacak, balıkçılar kararın kendilerine sorulmadığını söylüyor."
)
TEXT_KO = (
    "경기도 화성의 한 도료 공장에서 불이 나 2명이 숨지고 6명이 다쳤다. "
    "불은 3시간 만에 꺼졌으며 소방당국은 원인을 조사하고 있다."
)
REISSUES: dict[str, list[Said]] = {
    "more dead": [
        ("Ferry sinks off Dunmarra: 11 dead", TEXT),
        ("Ferry sinks off Dunmarra: 14 dead", TEXT.replace("Eleven", "Fourteen").replace("nine", "six")),
        ("Dunmarra ferry disaster: toll is 14", TEXT.replace("Eleven", "14").replace("nine", "six")),
    ],
    "spelling in the title": [("Ferry sinsk off Dunmarra", TEXT), ("Ferry sinks off Dunmarra", TEXT)],
    "another sentence of the toll": [
        ("Avalanche at Contamin: one skier killed", TEXT_SNOW),
        (
            "Avalanche at Contamin: two skiers killed",
            TEXT_SNOW.replace("One of them is dead", "Two are dead"),
        ),
    ],
    "no text": [
        ("Tram derails at Fenwick Square, 5 hurt, lines 3 and 8 stopped", ""),
        ("CORRECTED: Tram derails at Fenwick Square, 7 hurt, lines 3 and 8 stopped", ""),
    ],
    "es": [
        ("El ayuntamiento cierra la piscina de Lodares", TEXT_ES),
        ("Una bacteria obliga a cerrar la piscina", TEXT_ES.replace("aparicion", "aparición")),
    ],
    "zh": [("老码头灯塔将整体平移", TEXT_ZH), ("百年灯塔要“搬家”", TEXT_ZH.replace("推近", "推进"))],
    "tr": [
        ("Vapur iskelesi taşınıyor", TEXT_TR),
        ("Yüz yıllık iskele sökülüyor, balıkçılar tepkili", TEXT_TR.replace("kurulcak", "kurulacak")),
    ],
    "ko": [
        ("공장 화재로 2명 사망", TEXT_KO),
        ("공장 화재로 4명 사망", TEXT_KO.replace("2명", "4명").replace("6명", "5명")),
    ],
}
QUAKE = "Magnitude {}. Depth {} km. 12 km N of Petrolia. Did you feel it? Tell us on the page of reports."
GAUGE = (
    "Der Pegel Dresden steht bei {} cm, Tendenz fallend. Die nächste Messung ist in drei Stunden, um {} Uhr."
)
JOB = (
    "{} sucht eine Entwicklerin in Vollzeit, gern auch im Homeoffice. Bewerbungen bitte bis 31. Juli an uns."
)
WATCH = "Fans can stream it from Friday. Follow us for all previews, reviews and interviews of the season."
TICKERS: dict[str, list[Said]] = {
    "earthquakes": [
        ("M 4.2 - 12 km N of Petrolia", QUAKE.format("4.2", "9.8")),
        ("M 4.4 - 12 km N of Petrolia", QUAKE.format("4.4", "9.1")),
    ],
    "releases": [
        ("tessel v3.4.1", f"Fixes of bugs: {WATCH}"),
        ("tessel v3.4.2", f"Fixes of bugs: {WATCH}"),
    ],
    "measures": [
        ("Pegel Dresden: 212 cm", GAUGE.format(212, 6)),
        ("Pegel Dresden: 205 cm", GAUGE.format(205, 9)),
    ],
    "jobs": [
        ("Entwicklerin bei Kranich gesucht", JOB.format("Kranich")),
        ("Entwicklerin bei Sperling gesucht", JOB.format("Sperling")),
    ],
    "what a feed says below all": [
        ("Harbour Lights returns", f"{WATCH} Today: cats."),
        ("A western from Bolivia", f"{WATCH} Today: bees."),
    ],
    "roads": [("Crash on road 14 near Bury, 3 hurt", ""), ("Crash on road 19 near Bury, 3 hurt", "")],
    "zh": [
        (
            "CA1832航班延误两小时",
            "受流量控制影响，CA1832航班预计延误两小时，请旅客留意机场通知，并联系航空公司柜台办理改签手续。",
        ),
        (
            "MU5117航班延误两小时",
            "受流量控制影响，MU5117航班预计延误两小时，请旅客留意机场通知，并联系航空公司柜台办理改签手续。",
        ),
    ],
}


@pytest.mark.parametrize("kind", REISSUES)
def test_an_item_that_a_feed_brings_again_corrected_replaces_the_older_one(kind: str) -> None:
    window = Window()
    first, *again = of_one_feed(REISSUES[kind])
    window.decide(first)
    for entry in again:
        decision = window.decide(entry)
        assert (decision.story, decision.kind) == (first.id, "reissue")
    # A day later it is another one.
    window = Window()
    window.decide(first)
    assert window.decide(replace(again[0], time=NOW + DAY)).story != first.id


REWRITTEN: dict[str, tuple[Said, Said, bool]] = {
    "more dead": (
        ("Six dead after a hall collapses in Brenn", "Six people died when the market hall of Brenn fell."),
        (
            "Brenn market hall: toll rises to eight",
            "Eight people died when the market hall of Brenn fell on Friday, its mayor Ana Lund says.",
        ),
        True,
    ),
    "more is known": (
        ("公交车在柳河相撞", "柳河市两辆公交车今晨相撞,伤者被送往市第二医院救治,原因正在调查中。"),
        ("柳河公交相撞原因查明", "柳河市两辆公交车今晨相撞,伤者被送往市第二医院救治。一辆车的制动失灵。"),
        True,
    ),
    "an entry of a live page": (
        ("Storm live", "The ferry to Aldby is cancelled until noon."),
        ("Storm live", "Schools in Torp open again tomorrow, says the council."),
        False,
    ),
    "the next one of a series": (
        ("Lotto draw 4411", "The numbers of tonight's draw are 3, 9, 14, 22, 31 and 40. Good luck."),
        ("Lotto draw 4412", "The numbers of tonight's draw are 1, 8, 17, 25, 33 and 41. Good luck."),
        False,
    ),
}


@pytest.mark.parametrize(("older", "newer", "replaces"), REWRITTEN.values(), ids=REWRITTEN.keys())
def test_an_item_at_the_address_of_one_of_its_feed_replaces_it(
    older: Said, newer: Said, replaces: bool
) -> None:
    window = Window()
    first, second = (
        replace(item(f"{at}", said, feed="one", hours=at), link="https://one.example/story")
        for at, said in enumerate((older, newer))
    )
    decisions = [window.decide(first), window.decide(second)]
    assert [each.kind for each in decisions] == [None, "reissue" if replaces else None]
    elsewhere = Window()
    elsewhere.decide(first)
    assert elsewhere.decide(replace(second, feed="other")).kind != "reissue"


@pytest.mark.parametrize("kind", TICKERS)
def test_items_of_a_ticker_stay_apart(kind: str) -> None:
    assert count(of_one_feed(TICKERS[kind])) == 2


def of_one_feed(said: Sequence[Said]) -> list[Entry]:
    return [item(f"{at}", each, feed="one", hours=2 * at) for at, each in enumerate(said)]
