"""The pages and clicks of a person in Dagster's UI: headless Chromium on a running `rss-pipeline up`.

Stages of test_up.py.

Each says what it shows, and goes on from what those before did to the feeds. Nothing a page needs comes from
another machine. No test is in here.
"""

import re
from collections import Counter
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from rss_pipeline.collector.models.feed_names import events_path
from rss_pipeline_tests.cli.up.up_and_strangers import no_page_of_another_site_starts_a_run_or_shows_the_ui
from rss_pipeline_tests.cli.up.up_feeds import ALL_FEEDS
from rss_pipeline_tests.orchestration.desk import BROKEN, BUSY, GONE, QUIET, Desk, host
from rss_pipeline_tests.support.installed import of_features
from rss_pipeline_tests.support.up import location, runs_of
from rss_pipeline_tests.support.waiting import soon

RUN_MS = 180_000
"""The time that a run may take from the click to its end, on a machine that runs other tests beside it."""


def the_graph_leads_from_the_registry_over_the_items_to_their_images(ui: Desk) -> None:
    page = ui.open("/asset-groups")
    nodes = {name: node(page, name) for name in ("registry", "feed_items", "item_images", "polls")}
    for found in nodes.values():
        expect(found).to_be_visible()
    left = {name: box["x"] for name, found in nodes.items() if (box := found.bounding_box())}
    assert left["registry"] < left["feed_items"] < left["item_images"]
    expect(nodes["feed_items"]).to_contain_text(f"{len(ALL_FEEDS)} partitions")
    nodes["feed_items"].click()
    expect(page.get_by_text("Materialize a partition to visit its feed now")).to_be_visible()


def images_come_after_the_items_they_are_of(ui: Desk) -> None:
    page = ui.go("/assets/item_images")
    expect(page.get_by_text("it downloads the images of stored items into the object store")).to_be_visible()
    expect(section(page, "Upstream assets")).to_contain_text("feed_items")
    for job in ("download_images", "download_images_when_waiting"):
        expect(page.get_by_text(job, exact=True).first).to_be_visible()


def a_feeds_page_shows_its_last_visit_and_the_next_and_lists_those_before(ui: Desk) -> None:
    busy = BUSY[0]
    page = ui.go(f"/assets/feed_items?view=partitions&partition={busy}")
    facts = metadata(page)
    assert list(facts)[:4] == ["items_new", "items_seen", "body_bytes", "fetch_ms"]
    assert facts["items_new"] == "1"
    assert int(facts["items_seen"]) >= 3
    assert f"/{busy}.xml" in facts["feed"]
    assert facts["site"] == "http://example.com/"
    assert Path(facts["backup"]).is_file(), "a path to copy: no browser follows a link to a file"
    assert facts["next_visit"].endswith("UTC")
    assert facts["next_visit_reason"].startswith("once a day: nothing new for")
    page.get_by_text("View all historical events").click()
    events = page.get_by_role("dialog").get_by_role("row").filter(has_text="Materialization")
    expect(events.nth(1)).to_be_visible()
    expect(events.first).to_contain_text("poll_feeds")


def the_numbers_of_visits_plot_over_feeds_and_over_time(ui: Desk) -> None:
    page = ui.go("/assets/feed_items?view=overview")
    page.get_by_role("button", name="Plots").click()
    for over in ("Partitions", "Events"):
        page.get_by_role("button").filter(has_text=re.compile(f"^{over}$")).click()
        for number in ("body_bytes", "fetch_ms", "items_new", "items_seen"):
            expect(page.get_by_text(number, exact=True).first).to_be_visible()
        soon(lambda: all(line_pixels(plot) for plot in page.locator("canvas").all()[:4]))


def the_numbers_of_polls_plot_and_their_failures_lead_to_the_feeds_page(ui: Desk) -> None:
    page = ui.go("/assets/polls?view=overview")
    page.get_by_role("button", name="Plots").click()
    for number in ("due", "failed", "items_new", "lag_seconds", "seconds"):
        expect(page.get_by_text(number, exact=True).first).to_be_visible()
    ui.go("/assets/polls?view=events")
    expect(page.get_by_text("Materialized in run")).to_be_visible()
    # The first poll: those after it may have been of other feeds.
    page.locator("[data-index]").last.click()
    failures = page.get_by_role("row").filter(has_text="404 Not Found: there is no feed at this address")
    expect(failures.last).to_be_visible()
    page.get_by_role("link", name=BROKEN, exact=True).click()
    page.wait_for_url(f"**{events_path(BROKEN)}*")
    expect(page.get_by_text("Failed (http_status): 404 Not Found")).to_be_visible()


def a_polls_run_reports_what_it_did_and_why_feeds_failed(ui: Desk) -> None:
    (run,) = runs_of(ui.up, "poll_feeds")[-1:]
    page = ui.go(f"/runs/{run['runId']}?selection=report&logs=step%3Areport")
    expect(page.get_by_text("Success", exact=True)).to_be_visible()
    output = page.get_by_text("Yielded output").locator("xpath=..")
    expect(output).to_contain_text("items_new")
    output.get_by_text("[Show Markdown]").click()
    table = page.get_by_role("dialog")
    for id, sentence in ((BROKEN, "404 Not Found"), (GONE, "410 Gone")):
        expect(table.get_by_role("row").filter(has_text=id).last).to_contain_text(sentence)
    table.get_by_role("link", name=BROKEN, exact=True).click()
    page.wait_for_url(f"**{events_path(BROKEN)}*")


def a_feed_that_fails_when_materialized_says_why_on_the_runs_page(ui: Desk) -> None:
    page = ui.go(f"/assets/feed_items?view=partitions&partition={BROKEN}")
    page.get_by_text("View all historical events").click()
    observed = page.get_by_role("dialog").get_by_role("row").filter(has_text="Observation")
    expect(observed.first).to_contain_text("poll_feeds")
    page.get_by_role("button", name="OK").click()
    launch(page, choose=[BROKEN])
    run = soon(lambda: named_run(ui, BROKEN))
    ui.go(f"/runs/{run}")
    expect(page.get_by_text("Failure", exact=True).first).to_be_visible(timeout=RUN_MS)
    expect(page.get_by_text(f"{BROKEN}: 404 Not Found").first).to_be_visible()
    ui.go(f"/assets/feed_items?view=partitions&partition={BROKEN}")
    expect(page.get_by_text("failed, and did not materialize this asset")).to_be_visible()
    expect(page.get_by_role("link", name=run[:8]).first).to_be_visible()


def checks_run_at_a_click_and_a_warning_lists_the_feeds_and_what_to_do(ui: Desk) -> None:
    page = ui.go("/assets/feed_items?view=checks")
    page.get_by_role("button", name="Execute all").click()
    page.get_by_text("feeds_not_gone", exact=True).first.click()
    expect(page.get_by_text("gone: the publisher answers 410")).to_be_visible(timeout=RUN_MS)
    expect(page.get_by_text("Remove it from feeds.yaml (its items stay")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text=GONE).last).to_contain_text("410 Gone")
    page.get_by_text("no_gaps", exact=True).first.click()
    expect(page.get_by_text("Passed", exact=True).first).to_be_visible(timeout=RUN_MS)


def the_launchpad_describes_the_options_of_a_poll_and_polls_all(ui: Desk) -> None:
    before = len(runs_of(ui.up, "poll_feeds"))
    asked = len(ui.server.requests)
    frames: list[str] = []
    ui.page.on("websocket", lambda socket: socket.on("framereceived", lambda text: frames.append(str(text))))
    page = ui.open(f"/locations/{location(ui.up)}/jobs/poll_feeds/playground")
    editor = page.locator(".CodeMirror").first
    expect(editor).to_contain_text("all: false")
    expect(page.get_by_text("No errors")).to_be_visible()
    type_config(page, editor, "ops:\n  claim:\n    config:\n      al: true")
    expect(page.get_by_text("unexpected config entry").first).to_be_visible()
    type_config(page, editor, "ops:\n  claim:\n    config:\n      all: true")
    expect(page.get_by_text("No errors")).to_be_visible()
    for told in ("Feed ids to visit, due or not", "Visit every registered feed now, due or not"):
        expect(page.get_by_text(told)).to_be_visible()
    page.get_by_role("button").filter(has_text="Launch Run").click()
    expect(page.get_by_text("Success", exact=True).first).to_be_visible(timeout=RUN_MS)
    assert any("RunSuccessEvent" in text for text in frames), "the log did not grow by the websocket"
    assert len(runs_of(ui.up, "poll_feeds")) == before + 1
    hosts = {request.host for request in ui.server.requests[asked:]}
    assert len(hosts) == len(ALL_FEEDS)


def backfills_of_the_dialog_visit_ten_scattered_feeds_and_all(ui: Desk) -> None:
    ten = [*BUSY, *QUIET[1:], GONE]
    asked = len(ui.server.requests)
    page = ui.go("/assets/feed_items?view=partitions")
    for choose in (ten, None):
        expect(page.get_by_text(f"{len(ALL_FEEDS)} Partitions Selected")).to_be_visible()
        launch(page, choose=choose)
    # A page that shows nothing costs nothing meanwhile.
    page.goto("about:blank")
    backfills = [soon(lambda keys=keys: ended_backfill(ui, keys)) for keys in (ten, ALL_FEEDS)]
    visits = Counter(request.host for request in ui.server.requests[asked:])
    assert len(visits) == len(ALL_FEEDS), "a feed both are at is visited once, for both"
    assert max(visits.values()) <= 2
    requests = ui.server.asked(host(QUIET[1]))
    assert {request.headers.get("if-none-match") for request in requests[1:]} == {'"1"'}
    assert ui.up.statuses() == {
        "green": sorted(set(ALL_FEEDS) - {BROKEN, GONE}),
        "red": sorted([BROKEN, GONE]),
        "grey": [],
        "busy": [],
    }
    for show, backfill in zip((ui.open, ui.go), backfills, strict=True):
        show(f"/runs/b/{backfill}")
        expect(page.get_by_text("Failed", exact=True).first).to_be_visible()
    page.get_by_role("link", name="Runs").first.click()
    page.get_by_role("tab", name="Backfills").click()
    for backfill in backfills:
        expect(page.get_by_text(backfill, exact=True).first).to_be_visible()


def of_those_that_fail_only_what_somebody_materialized_is_red(ui: Desk) -> None:
    assert ui.up.statuses()["red"] == sorted([BROKEN, GONE])


def all_that_starts_runs_is_on_but_the_alerts_and_says_what_it_does(ui: Desk) -> None:
    page = ui.go("/automation")
    names = of_features(
        health=["check_health_hourly"],
        retention=["clean_daily", "clean_again"],
        topics=["publish_when_changed"],
    )
    names |= {
        "purge_daily",
        "retry_images",
        "poll_feeds_when_due",
        "sync_registry",
        "download_images_when_waiting",
        "end_dead_runs",
        "back_up_users",
    }
    alerts = of_features(health=["alert_check_failed", "alert_run_failed"])
    for name in names | alerts:
        row = page.locator("[data-index]").filter(has=page.get_by_text(name, exact=True))
        switch = row.locator("input[type=checkbox]").last
        expect(switch).to_be_checked(checked=name in names)
    page.get_by_text("poll_feeds_when_due", exact=True).click()
    expect(page.get_by_text("Run requested").or_(page.get_by_text("1 requested")).first).to_be_visible()


def a_sensor_is_switched_off_and_on(ui: Desk) -> None:
    page = ui.go("/automation")
    row = page.locator("[data-index]").filter(has=page.get_by_text("end_dead_runs", exact=True))
    switch = row.locator("input[type=checkbox]").last

    def is_switched(status: str, *, is_on: bool) -> bool:
        # A click is lost before the page knows the sensor.
        if switch.is_enabled() and switch.is_checked() != is_on:
            switch.locator("xpath=..").click()
        return sensor_status(ui, "end_dead_runs") == status

    for status, is_on in (("STOPPED", False), ("RUNNING", True)):
        soon(lambda status=status, is_on=is_on: is_switched(status, is_on=is_on))
        expect(switch).to_be_checked(checked=is_on)


def a_reload_that_is_not_possible_is_answered_by_a_sentence_and_harms_nothing(ui: Desk) -> None:
    """Our definitions are those of the start, within daemon and webserver."""
    page = ui.open("/deployment/locations")
    page.get_by_text("Reload", exact=True).click()
    expect(page.get_by_text(f"Location {location(ui.up)} does not support reloading.")).to_be_visible()
    ui.open("/deployment/locations")
    page.get_by_text("Reload all", exact=True).click()
    expect(page.get_by_text("Loaded", exact=True)).to_be_visible()
    assert ui.up.answers()


def sensor_status(ui: Desk, name: str) -> str:
    """The state of a sensor as GraphQL has it."""
    found = ui.up.ask(
        """query($selector: SensorSelector!) { sensorOrError(sensorSelector: $selector) {
        ... on Sensor { sensorState { status } } } }""",
        selector={
            "repositoryName": "__repository__",
            "repositoryLocationName": location(ui.up),
            "sensorName": name,
        },
    )
    status: str = found["sensorOrError"]["sensorState"]["status"]
    return status


def node(page: Page, name: str) -> Locator:
    """An asset's box in the graph."""
    return page.locator("foreignObject").filter(has=page.get_by_text(name, exact=True))


def section(page: Page, title: str) -> Locator:
    """The text below a title."""
    return page.get_by_text(title, exact=True).locator("xpath=..")


def metadata(page: Page) -> dict[str, str]:
    """The page's table of metadata, in its order."""
    rows = section(page, "Metadata").get_by_role("row")
    expect(rows.nth(3)).to_be_visible()
    cells = [row.get_by_role("cell").all_inner_texts() for row in rows.all()]
    return {cell[0].strip(): cell[1].strip() for cell in cells if len(cell) > 1}


def line_pixels(plot: Locator) -> int:
    """The number of pixels of a plot that have the colour of a line."""
    count: int = plot.evaluate(
        """canvas => { const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let found = 0;
        for (let i = 0; i < data.length; i += 4)
          if (data[i + 3] > 200 && data[i + 2] > 180 && data[i] < 120 && data[i + 1] < 120) found++;
        return found; }"""
    )
    return count


def launch(page: Page, *, choose: list[str] | None) -> None:
    """Materialize these keys from the dialog; None is its button for all."""
    page.get_by_role("button").filter(has_text=re.compile("^Materialize")).first.click()
    dialog = page.get_by_role("dialog").filter(has_text="Launch runs to materialize")
    if choose is None:
        dialog.get_by_role("button", name="All", exact=True).click()
        expect(dialog).to_contain_text(f"{len(ALL_FEEDS)} partitions")
    else:
        chosen = dialog.locator("[class*=tagsContainer]")
        chosen.click()
        menu = page.locator("[data-radix-popper-content-wrapper]")
        for id in choose:
            if id not in chosen.inner_text().split():
                menu.get_by_text(id, exact=True).first.click()
        expect(dialog).to_contain_text(f"{len(choose)} partition")
        page.keyboard.press("Escape")
    dialog.get_by_role("button").filter(has_text=re.compile("^Launch (backfill|1 run|run)")).click()
    expect(dialog).to_be_hidden()


def type_config(page: Page, editor: Locator, text: str) -> None:
    """Replace what is in the launchpad, as a paste does."""
    editor.click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def named_run(ui: Desk, partition: str) -> str | None:
    """The newest run of one key by hand."""
    for run in runs_of(ui.up, "__ASSET_JOB"):
        tags = {tag["key"]: tag["value"] for tag in run["tags"]}
        if partition in (tags.get("dagster/partition"), tags.get("dagster/asset_partition_range_start")):
            return str(run["runId"])
    return None


def ended_backfill(ui: Desk, keys: list[str]) -> str | None:
    """The backfill of exactly these keys, once it has ended."""
    found = ui.up.ask(
        """{ partitionBackfillsOrError(limit: 5) { ... on PartitionBackfills { results {
        id status partitionNames } } } }"""
    )["partitionBackfillsOrError"]["results"]
    for backfill in found:
        if sorted(backfill["partitionNames"] or []) == sorted(keys) and backfill["status"].startswith(
            "COMPLETED"
        ):
            return str(backfill["id"])
    return None


SHORT_LOOKS = (
    the_graph_leads_from_the_registry_over_the_items_to_their_images,
    a_polls_run_reports_what_it_did_and_why_feeds_failed,
    no_page_of_another_site_starts_a_run_or_shows_the_ui,
)
ALL_LOOKS = (
    *SHORT_LOOKS[:-1],
    a_feed_that_fails_when_materialized_says_why_on_the_runs_page,
    all_that_starts_runs_is_on_but_the_alerts_and_says_what_it_does,
    a_sensor_is_switched_off_and_on,
    images_come_after_the_items_they_are_of,
    a_reload_that_is_not_possible_is_answered_by_a_sentence_and_harms_nothing,
    checks_run_at_a_click_and_a_warning_lists_the_feeds_and_what_to_do,
    the_launchpad_describes_the_options_of_a_poll_and_polls_all,
    a_feeds_page_shows_its_last_visit_and_the_next_and_lists_those_before,
    the_numbers_of_visits_plot_over_feeds_and_over_time,
    the_numbers_of_polls_plot_and_their_failures_lead_to_the_feeds_page,
    backfills_of_the_dialog_visit_ten_scattered_feeds_and_all,
    SHORT_LOOKS[-1],
    of_those_that_fail_only_what_somebody_materialized_is_red,
)
"""Also what needs further runs, and minutes; what the pages show of a sensor or a failed run is in Dagster's
tables, which orchestration/ tests."""
