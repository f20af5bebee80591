// The reader's page with scripts: keys, items that open in their list, marks without a new page, new items
// announced. Every page works without this file.
"use strict";

const POLL_MS = 60_000;
const FIRST_POLL_MS = 5_000;
const AWAY_MS = 30_000;
const body = document.body;
const list = document.getElementById("list");
const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// What a screen reader reads aloud, and everybody sees for a moment.
let silence = 0;
function say(text) {
  const line = document.getElementById("say");
  line.textContent = text;
  clearTimeout(silence);
  silence = setTimeout(() => { line.textContent = ""; }, 6000);
}

async function request(path, given = null) {
  // A mark is sent also if its page is left while it waits for a connection.
  const options = given === null ? {} : { method: "POST", keepalive: true, headers: { "Content-Type": "application/json" }, body: JSON.stringify(given) };
  const answer = await fetch(path, options);
  if (answer.status === 401 || (answer.redirected && new URL(answer.url).pathname === "/login")) {
    location.reload();
    throw new Error("logged out");
  }
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    throw new Error(problem.detail || "The reader does not answer.");
  }
  return answer;
}

const pageAt = async (path) => new DOMParser().parseFromString(await (await request(path)).text(), "text/html");

// Dates, in the browser's zone.
const dateOnly = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const dateYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
function age(at) {
  const minutes = Math.floor((Date.now() - at) / 60_000);
  const ahead = Math.floor((at - Date.now()) / 60_000);
  if (ahead >= 1 && ahead < 120) return `in ${ahead} min`;
  if (ahead >= 120 && ahead < 2880) return `in ${Math.floor(ahead / 60)} h`;
  if (minutes >= -1 && minutes < 1) return "now";
  if (minutes >= 0 && minutes < 60) return `${minutes} min`;
  if (minutes >= 0 && minutes < 1440) return `${Math.floor(minutes / 60)} h`;
  if (minutes >= 0 && minutes < 10_080) return `${Math.floor(minutes / 1440)} d`;
  return (at.getFullYear() === new Date().getFullYear() ? dateOnly : dateYear).format(at);
}
function showDates(root = document) {
  for (const time of all("time[datetime]", root)) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = dateTime.format(at);
    const isAge = document.documentElement.dataset.dates === "relative" && !time.classList.contains("exact");
    time.textContent = isAge ? age(at) : dateTime.format(at);
  }
}

// Counts: of feeds, their folders, all, and the tab's title.
const countOf = (line) => one(":scope > .count", line);
const ofFolder = (folder) => one(":scope > .of-folder > .count", folder);
const shown = (count) => Number(count ? count.dataset.count : 0);
function setCount(count, number) {
  if (!count) return;
  count.dataset.count = number;
  one(".number", count).textContent = number;
  count.hidden = number <= 0;
}
const known = new Map();
function setUnread(feed, number) {
  const lines = all(`[data-feed="${CSS.escape(feed)}"]`);
  // A feed that is left out of the column has nothing unread.
  const change = number - (known.get(feed) ?? (lines.length ? shown(countOf(lines[0])) : 0));
  known.set(feed, number);
  for (const line of lines) {
    setCount(countOf(line), number);
    line.classList.toggle("none", number <= 0);
    const folder = line.closest(".folder");
    if (folder) setCount(ofFolder(folder), shown(ofFolder(folder)) + change);
  }
  return change;
}
function addUnread(feed, change) {
  const line = one(`[data-feed="${CSS.escape(feed)}"]`);
  if (line) setUnread(feed, Math.max(0, shown(countOf(line)) + change));
  else if (known.has(feed)) known.set(feed, known.get(feed) + change);
  addTotal(change);
}
function addTotal(change) {
  const total = Math.max(0, Number(body.dataset.unread) + change);
  body.dataset.unread = total;
  for (const line of all('[data-view="unread"]')) setCount(countOf(line), total);
  showTitle();
}
function unreadHere() {
  const { inFeed, inFolder } = list ? list.dataset : {};
  if (inFeed) return shown(countOf(one(`[data-feed="${CSS.escape(inFeed)}"]`) || body));
  if (inFolder) return shown(ofFolder(one(`[data-folder="${CSS.escape(inFolder)}"]`) || body));
  return Number(body.dataset.unread);
}
function showTitle() {
  const rest = document.title.replace(/^\(\d+\) /, "");
  const number = unreadHere();
  document.title = number ? `(${number}) ${rest}` : rest;
  const mark = one("#mark-all button");
  if (mark) mark.disabled = number === 0;
}

// Marks.
const isRead = (entry) => entry.classList.contains("read");
const isStarred = (entry) => Boolean(one(".mark.unstar", entry));
function showRead(entry, read) {
  if (isRead(entry) === read) return;
  entry.classList.toggle("read", read);
  entry.classList.toggle("unread", !read);
  const said = one("h2 > .unseen", entry);
  if (said) said.hidden = read;
  relabel(one(".mark.read, .mark.unread", entry), read ? "unread" : "read", read ? "Mark unread" : "Mark read");
  addUnread(entry.dataset.of, read ? -1 : 1);
}
function showStar(entry, starred) {
  relabel(one(".mark.star, .mark.unstar", entry), starred ? "unstar" : "star", starred ? "Remove the star" : "Star");
}
function relabel(button, which, label) {
  button.className = `mark ${which}`;
  button.title = label;
  button.setAttribute("aria-label", label);
  button.setAttribute("formaction", button.getAttribute("formaction").replace(/[^/]+$/, which));
}
async function mark(entry, given, show) {
  show(true);
  try {
    await request("/api/items/mark", { ids: [entry.dataset.id], ...given });
  } catch (error) {
    show(false);
    say(`Not marked: ${error.message}`);
  }
}
const setRead = (entry, read) => mark(entry, { is_read: read }, (done) => showRead(entry, done === read));
const setStar = (entry, starred) => mark(entry, { is_starred: starred }, (done) => showStar(entry, done === starred));

// Items that open in their list.
let current = null;
const entries = () => all("#entries > .entry");
function choose(entry, { focus = true } = {}) {
  if (current) current.classList.remove("current");
  current = entry;
  if (!entry) return;
  entry.classList.add("current");
  if (focus) one(".title", entry).focus({ preventScroll: true });
  history.replaceState(history.state, "", `#${entry.id}`);
}
function close(entry) {
  const opened = one(".opened", entry);
  if (!opened) return;
  opened.remove();
  entry.classList.remove("open");
  one(".title", entry).setAttribute("aria-expanded", "false");
}
async function open(entry) {
  for (const other of all(".entry.open")) close(other);
  choose(entry);
  entry.classList.add("open");
  one(".title", entry).setAttribute("aria-expanded", "true");
  const opened = document.createElement("div");
  opened.className = "opened";
  opened.textContent = "…";
  entry.append(opened);
  entry.scrollIntoView({ block: "start" });
  // What a mark of many made read stays read once it was opened, if that mark is undone.
  if ("marks" in body.dataset && (!isRead(entry) || document.getElementById("undo"))) setRead(entry, true);
  try {
    const text = await (await request(`/items/${encodeURIComponent(entry.dataset.id)}/body`)).text();
    opened.innerHTML = text;
    showDates(opened);
  } catch (error) {
    opened.textContent = `Not opened: ${error.message}`;
  }
}
const toggle = (entry) => (entry.classList.contains("open") ? close(entry) : open(entry));

let loading = null;
function loadMore() {
  const more = document.getElementById("more");
  if (!more) return Promise.resolve(false);
  loading ??= (async () => {
    more.setAttribute("aria-busy", "true");
    try {
      const page = await pageAt(more.href);
      const there = new Set(entries().map((entry) => entry.id));
      const fresh = all("#entries > .entry", page).filter((entry) => !there.has(entry.id));
      document.getElementById("entries").append(...fresh);
      fresh.forEach((entry) => showDates(entry));
      const next = page.getElementById("more");
      if (next) more.replaceWith(document.adoptNode(next));
      else more.remove();
      say(`${fresh.length} more items`);
      return fresh.length > 0;
    } catch (error) {
      more.removeAttribute("aria-busy");
      say(error.message);
      return false;
    } finally {
      loading = null;
    }
  })();
  return loading;
}
async function step(forward) {
  const lines = entries();
  let place = current ? lines.indexOf(current) : forward ? -1 : 0;
  place += forward ? 1 : -1;
  if (place >= lines.length && !(await loadMore())) return;
  const next = entries()[place];
  if (!next) return;
  if (current && current.classList.contains("open")) {
    await open(next);
  } else {
    choose(next);
    next.scrollIntoView({ block: "nearest" });
  }
}

// New items: announced, and loaded when somebody wants them.
let pending = 0;
let polled = Date.now();
let timer = 0;
function isHere(feed) {
  if (!list || !("first" in list.dataset) || list.dataset.kind === "starred") return false;
  if (list.dataset.inFeed) return feed.id === list.dataset.inFeed;
  return !list.dataset.inFolder || feed.folder === list.dataset.inFolder;
}
async function poll() {
  polled = Date.now();
  const found = await (await request(`/api/feeds/updated?since=${body.dataset.version}`)).json();
  body.dataset.version = Math.max(Number(body.dataset.version), found.version);
  for (const feed of found.feeds) {
    const change = setUnread(feed.id, feed.unread);
    addTotal(change);
    if (isHere(feed) && change > 0) pending += change;
  }
  announce();
  return found.feeds.length;
}
function announce() {
  const news = document.getElementById("news");
  if (!news || !pending) return;
  if (one(".empty.first")) {
    location.assign(list.dataset.address);
    return;
  }
  const text = `${pending} new item${pending === 1 ? "" : "s"}`;
  if (news.textContent === text && !news.hidden) return;
  news.textContent = text;
  news.hidden = false;
  say(text);
}
async function loadNew() {
  const news = document.getElementById("news");
  const here = document.getElementById("entries");
  const page = await pageAt(list.dataset.address);
  const there = new Set(entries().map((entry) => entry.id));
  const found = all("#entries > .entry", page);
  const fresh = found.filter((entry) => !there.has(entry.id));
  const isWhole = here && fresh.length < found.length;
  if (!isWhole || list.dataset.order !== "newest") {
    location.assign(list.dataset.address);
    return;
  }
  // By date of publication, what is new need not be at the top.
  let next = here.firstElementChild;
  for (const entry of found) {
    if (there.has(entry.id)) next = document.getElementById(entry.id).nextElementSibling;
    else here.insertBefore(entry, next);
  }
  fresh.forEach((entry) => showDates(entry));
  one("#mark-all [name=up_to]").value = one("#mark-all [name=up_to]", page).value;
  pending = 0;
  news.hidden = true;
  say(`${fresh.length} new item${fresh.length === 1 ? "" : "s"} loaded`);
  if (fresh.length) {
    choose(fresh[0]);
    window.scrollTo({ top: 0 });
  }
}
function keepPolling() {
  clearTimeout(timer);
  if (document.hidden) return;
  // Feeds that were never visited: somebody waits for the first items.
  const every = one(".empty.first") ? FIRST_POLL_MS : POLL_MS;
  const wait = Math.max(0, polled + every - Date.now());
  timer = setTimeout(() => { poll().catch(() => {}).finally(keepPolling); }, wait);
}
async function refresh() {
  const feed = list && list.dataset.inFeed;
  if (pending) return loadNew();
  if (feed) {
    await request(`/api/feeds/${encodeURIComponent(feed)}/refresh`, {});
    say("A visit of the feed is requested.");
    polled = Date.now() - POLL_MS + 4000;
    keepPolling();
    return undefined;
  }
  const changed = await poll();
  if (!changed) say("Nothing new");
  return undefined;
}

// Keys.
const submitFrom = (selector) => { const button = one(selector); if (button) button.click(); };
const goTo = (address) => { location.assign(address); };
function original(root) {
  const link = one(".original", root);
  if (link) link.click();
  else if (root.dataset.id && root.classList.contains("entry")) open(root).then(() => { const there = one(".original", root); if (there) there.click(); });
}
const item = document.getElementById("item");
const follow = (selector) => { const link = one(selector); if (link) goTo(link.href); };
const keys = {
  j: () => (item ? follow("[data-behind]") : list && step(true)),
  k: () => (item ? follow("[data-before]") : list && step(false)),
  o: () => (item ? follow("[data-up]") : current && toggle(current)),
  m: () => (item ? submitFrom('[formaction$="read"]') : current && setRead(current, !isRead(current))),
  s: () => (item ? submitFrom('[formaction$="star"]') : current && setStar(current, !isStarred(current))),
  v: () => original(item || current || document.createElement("i")),
  r: () => refresh().catch((error) => say(error.message)),
  n: () => goTo(`/next-unread?after=${encodeURIComponent((list && list.dataset.inFeed) || (item && item.dataset.of) || (current && current.dataset.of) || "")}`),
  "/": () => { const search = one(".search input"); if (search.offsetParent) search.focus(); else goTo("/search"); },
  "?": () => document.getElementById("keys").showModal(),
};
const after_g = { a: "/all", u: "/unread", s: "/starred" };
let goAt = 0;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.defaultPrevented) return;
  const on = event.target;
  if (on.isContentEditable || on.closest("input, textarea, select, dialog, audio, video")) {
    if (event.key === "Escape" && on.matches(".search input")) on.blur();
    return;
  }
  if (event.key === "g") { goAt = Date.now(); return; }
  const went = Date.now() - goAt < 1500;
  goAt = 0;
  if (went && after_g[event.key]) { event.preventDefault(); goTo(after_g[event.key]); return; }
  if (event.key === "Enter" && current && on === body) { event.preventDefault(); toggle(current); return; }
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});

// A player of another site, which learns nothing before somebody plays it.
function play(link) {
  const frame = document.createElement("iframe");
  frame.className = link.className;
  frame.title = link.textContent;
  frame.allow = "autoplay; encrypted-media; fullscreen; picture-in-picture";
  frame.setAttribute("sandbox", "allow-scripts allow-same-origin allow-popups allow-popups-to-escape-sandbox allow-presentation");
  frame.referrerPolicy = "origin" in link.dataset ? "strict-origin" : "no-referrer";
  frame.src = link.dataset.frame.replace(/&parent=$/, `&parent=${location.hostname}`);
  link.before(frame);
  link.className = "played";
  delete link.dataset.frame;
  frame.focus();
}

document.addEventListener("click", (event) => {
  const on = event.target;
  const menu = one("details.menu[open]");
  if (menu && !menu.contains(on)) menu.open = false;
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const entry = on.closest("#entries > .entry");
  const button = on.closest("button");
  const player = on.closest(".body a[data-frame]");
  if (player) { event.preventDefault(); play(player); }
  else if (entry && on.closest(".title")) { event.preventDefault(); toggle(entry); }
  else if (entry && button && button.matches(".mark")) {
    event.preventDefault();
    choose(entry, { focus: false });
    if (button.matches(".read, .unread")) setRead(entry, !isRead(entry));
    else setStar(entry, !isStarred(entry));
  } else if (on.closest("#more")) { event.preventDefault(); loadMore(); }
  else if (on.closest("#news")) loadNew().catch((error) => say(error.message));
  else if (on.closest("[data-keys]")) { menu.open = false; document.getElementById("keys").showModal(); }
});
document.addEventListener("keyup", (event) => {
  const menu = one("details.menu[open]");
  if (event.key === "Escape" && menu) { menu.open = false; one("summary", menu).focus(); }
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && Date.now() - polled > AWAY_MS) polled = 0;
  keepPolling();
});
window.addEventListener("pageshow", (event) => { if (event.persisted) { polled = 0; keepPolling(); } });

// Folders stay as they were left.
for (const folder of all(".folder > details")) {
  const name = `closed ${folder.parentElement.dataset.folder}`;
  try {
    if (localStorage.getItem(name) && !one('[aria-current]', folder)) folder.open = false;
    folder.addEventListener("toggle", () => (folder.open ? localStorage.removeItem(name) : localStorage.setItem(name, "1")));
  } catch { /* A browser that stores nothing shows every folder open. */ }
}
for (const button of all("[data-keys]")) button.hidden = false;
for (const title of all("#entries .title")) title.setAttribute("aria-expanded", "false");
showDates();
if (list && location.hash.startsWith("#i-")) {
  const back = document.getElementById(location.hash.slice(1));
  if (back) choose(back);
}
const here = one('.column [aria-current="page"]');
if (here) here.scrollIntoView({ block: "nearest" });
keepPolling();

// The zone of this browser, for the days and hours that the server counts.
document.cookie = `zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; samesite=lax`;
