"""Pages of another site in Chromium, beside a running `rss-pipeline up`: none starts a run or shows the UI.
A stage of test_up.py.

No test is in here.
"""

import json
from contextlib import closing
from html import escape
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import expect

from rss_pipeline_tests.orchestration.desk import Desk
from rss_pipeline_tests.support.clients.chromium import REBOUND
from rss_pipeline_tests.support.server import Answer
from rss_pipeline_tests.support.up import LAUNCH_RUN, location, runs_of
from rss_pipeline_tests.support.waiting import soon

STRANGER = "127.0.0.66"


def no_page_of_another_site_starts_a_run_or_shows_the_ui(ui: Desk) -> None:
    """With Dagster's own webserver each of the doors opened, but the preflighted one."""
    ui.server.route(STRANGER, "/attack", Answer(body=attack(ui), headers={"Content-Type": "text/html"}))
    ui.server.route(STRANGER, "/done", Answer())
    browser = ui.page.context.browser
    assert browser is not None
    with closing(browser.new_context()) as context:
        page = context.new_page()
        page.goto(ui.server.url(STRANGER, "/attack"))
        soon(lambda: ui.server.asked(STRANGER, "/done"))
        expect(page.locator("#websocket")).to_have_text("refused")
        frame = page.locator("iframe[name=ui]").content_frame
        expect(frame.get_by_text("Overview")).to_have_count(0)
        rebound = page.goto(f"http://{REBOUND}:{ui.up.port}/")
        assert rebound is not None
        assert rebound.status == 421
        expect(page.get_by_text("RSS_UI_HOSTS")).to_be_visible()
        # A link is no attack. The UI's scripts take seconds, and this context has none of them yet.
        page.goto(ui.server.url(STRANGER, "/attack"))
        page.route("**/*.js", lambda route: route.abort())
        with page.expect_response(f"http://127.0.0.1:{ui.up.port}/assets") as answer:
            page.get_by_role("link", name="the feeds").click()
        assert answer.value.status == 200
        page.wait_for_url(f"http://127.0.0.1:{ui.up.port}/**")
    doors = [
        tag["value"]
        for run in runs_of(ui.up, "download_images")
        for tag in run["tags"]
        if tag["key"] == "door"
    ]
    assert doors == []


def attack(ui: Desk) -> bytes:
    """A page that starts runs by all that a browser sends unasked, and then says so to its own server."""
    graphql = f"http://127.0.0.1:{ui.up.port}/graphql"

    def body(door: str) -> dict[str, Any]:
        selector = {
            "repositoryName": "__repository__",
            "repositoryLocationName": location(ui.up),
            "pipelineName": "download_images",
        }
        tags = [{"key": "door", "value": door}]
        params = {"mode": "default", "selector": selector, "executionMetadata": {"tags": tags}}
        return {"query": LAUNCH_RUN, "variables": {"params": params}}

    def url(door: str) -> str:
        found = body(door)
        query = {"query": found["query"], "variables": json.dumps(found["variables"])}
        return f"{graphql}?{urlencode(query)}"

    return f"""<!doctype html><title>cats</title>
        <a href="http://127.0.0.1:{ui.up.port}/assets">the feeds</a> <p id="websocket">waiting</p>
        <img src="{escape(url("image"))}">
        <iframe name="ui" src="http://127.0.0.1:{ui.up.port}/overview"></iframe>
        <iframe name="sink"></iframe>
        <form id="form" method="post" action="{escape(url("form"))}" target="sink"></form>
        <script>
        const graphql = {json.dumps(graphql)};
        const text = door => fetch(door[0], {{method: "POST", mode: "no-cors", body: door[1],
            headers: {{"Content-Type": "text/plain"}}}}).catch(() => null);
        const json = door => fetch(graphql, {{method: "POST", body: door,
            headers: {{"Content-Type": "application/json"}}}}).catch(() => null);
        const socket = new Promise(done => {{
            const socket = new WebSocket(graphql.replace("http", "ws"), "graphql-ws");
            const tell = word => {{ document.getElementById("websocket").textContent = word; done(); }};
            socket.onopen = () => tell("open");
            socket.onerror = () => tell("refused");
        }});
        addEventListener("load", async () => {{
            const posted = new Promise(done => document.getElementsByName("sink")[0].onload = done);
            document.getElementById("form").submit();
            await Promise.all([posted, socket,
                text([{json.dumps(url("text"))}, {json.dumps(json.dumps(body("text")))}]),
                json({json.dumps(json.dumps(body("json")))})]);
            new Image().src = "/done";
        }});
        </script>""".encode()
