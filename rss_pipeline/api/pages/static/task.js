// The page of visits, while some are still to be made: requested again until its state is another one.
// `showDates` is that of reader.js.
"use strict";

(() => {
  const every = 700;
  const parts = ["main", ".columns > nav.column", "title"];

  async function again() {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.redirected) return location.reload();
      if (answer.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      // The server is away for now.
    }
    wait();
  }

  async function look() {
    const open = document.querySelector("[data-task]");
    if (!open) return again();
    try {
      const answer = await fetch(`/api/tasks/${encodeURIComponent(open.dataset.task)}`);
      if (!answer.ok || (await answer.json()).state !== open.dataset.state) return again();
    } catch {
      // Likewise.
    }
    wait();
  }

  function wait() {
    if (document.querySelector("[data-task], [data-tasks]")) setTimeout(look, every);
  }

  function show(page) {
    for (const part of parts) {
      const old = document.querySelector(part), fresh = page.querySelector(part);
      if (old && fresh) old.replaceWith(fresh);
    }
    showDates();
    const title = document.querySelector("h1");
    const said = document.getElementById("say");
    if (said && title && !document.querySelector("[data-task], [data-tasks]")) said.textContent = title.textContent;
  }

  wait();
})();
