// The reader's page with scripts: keys, items that open in their list, marks without a new page, new items
// announced. Every page works without this file.
"use strict";

const POLL_MS = 60_000;
const LOOK_MS = 2_000;
const IMAGES_MS = 5_000;
const TEXT_MS = 1_500;
const MOST_LOOKS = 24;
const MOST_TEXT_LOOKS = 80;
const IDS_AT_ONCE = 100;
const MOST_FOLLOWED = 1_000;
const KEPT_LISTS = 20;
const MENUS = "details:is(.menu, .choice)[open]";
const FIRST_POLL_MS = 5_000;
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
  const isForm = given instanceof URLSearchParams;
  const sent = isForm ? { body: given } : { keepalive: true, headers: { "Content-Type": "application/json" }, body: JSON.stringify(given) };
  const options = given === null ? {} : { method: "POST", ...sent };
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
function setTotal(total) {
  body.dataset.unread = total;
  setView("unread", total);
  showTitle();
}
const addTotal = (change) => setTotal(Math.max(0, Number(body.dataset.unread) + change));
const setView = (view, number) => { for (const line of all(`[data-view="${view}"]`)) setCount(countOf(line), number); };
function addToView(view, change) {
  const line = one(`[data-view="${view}"]`);
  if (line) setView(view, Math.max(0, shown(countOf(line)) + change));
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
function showRead(entry, read, { isCounted = true } = {}) {
  if (isRead(entry) === read) return;
  entry.classList.toggle("read", read);
  entry.classList.toggle("unread", !read);
  const said = one("h2 > .unseen", entry);
  if (said) said.hidden = read;
  relabel(one(".mark.read, .mark.unread", entry), read ? "unread" : "read", read ? "Mark unread" : "Mark read");
  if (isCounted) addUnread(entry.dataset.of, read ? -1 : 1);
}
function showStar(entry, starred, { isCounted = true } = {}) {
  if (isStarred(entry) === starred) return;
  relabel(one(".mark.star, .mark.unstar", entry), starred ? "unstar" : "star", starred ? "Remove the star" : "Star");
  showStarIn(entry, starred);
  if (isCounted) addToView("starred", starred ? 1 : -1);
}
function relabel(button, which, label) {
  button.className = `mark ${which}`;
  button.title = label;
  button.setAttribute("aria-label", label);
  act(button, which);
}
const act = (button, which) => button.setAttribute("formaction", button.getAttribute("formaction").replace(/[^/]+$/, which));
// The buttons with words: of an item that is open, and on its page.
function showStarIn(root, starred) {
  for (const button of all("[data-star]", root)) {
    button.classList.toggle("starred", starred);
    button.firstChild.data = starred ? "Remove the star" : "Star";
    const more = one(".unseen", button);
    if (more) more.textContent = starred ? " of this item" : " this item";
    act(button, starred ? "unstar" : "star");
  }
}
let marking = 0;
let marked = 0;
// Marks of one kind of one item are sent one after the other, because requests may overtake each other; those
// that still wait when the page is left are sent then.
const left = new Promise((leave) => window.addEventListener("pagehide", leave));
const lastMarks = { is_read: new WeakMap(), is_starred: new WeakMap() };
async function mark(entry, kind, value, show) {
  show(true);
  marking += 1;
  marked += 1;
  const before = lastMarks[kind].get(entry);
  let done;
  lastMarks[kind].set(entry, new Promise((end) => { done = end; }));
  try {
    if (before) await Promise.race([before, left]);
    // A story is read with all that is listed of it, and made unread by its first item, with what that is a copy of.
    const others = kind === "is_read" ? entry.dataset[value ? "with" : "copied"] : "";
    const ids = [...new Set([entry.dataset.id, ...(others ? others.split(",") : [])])];
    await request("/api/items/mark", { ids, [kind]: value });
    body.dataset.state = Number(body.dataset.state) + 1;
    if ("folded" in body.dataset && marking === 1) {
      marking -= 1;
      await follow().catch(() => {}).finally(() => { marking += 1; });
    }
  } catch (error) {
    show(false);
    say(`Not marked: ${error.message}`);
  } finally {
    marking -= 1;
    done();
  }
}
const setRead = (entry, read) => mark(entry, "is_read", read, (done) => showRead(entry, done === read));
const setStar = (entry, starred) => mark(entry, "is_starred", starred, (done) => showStar(entry, done === starred));

// Items that open in their list.
const item = document.getElementById("item");
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
    waitForImages(one(".shown", opened));
    waitForText(one(".shown", opened));
  } catch (error) {
    opened.textContent = `Not opened: ${error.message}`;
  }
}
const toggle = (entry) => (entry.classList.contains("open") ? close(entry) : open(entry));

let loading = null;
let pages = 0;
function shownLines(lines) {
  for (const line of lines) {
    showDates(line);
    one(".title", line).setAttribute("aria-expanded", "false");
  }
  return lines;
}
function loadMore() {
  const more = document.getElementById("more");
  if (!more) return Promise.resolve(false);
  loading ??= (async () => {
    more.setAttribute("aria-busy", "true");
    try {
      const page = await pageAt(more.href);
      const there = new Set(entries().map((entry) => entry.id));
      const fresh = all("#entries > .entry", page).filter((entry) => !there.has(entry.id));
      document.getElementById("entries").append(...shownLines(fresh));
      pages += 1;
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
    if (change > 0) addToView("all", change);
    if (isHere(feed) && change > 0) pending += change;
  }
  announce();
  const isFolded = "folded" in body.dataset && found.feeds.length;
  if (isFolded || found.state_version !== Number(body.dataset.state)) await follow();
  return found.feeds.length;
}
// What apps, other windows and the page of an item have marked meanwhile.
async function follow() {
  if (marking) return;
  const began = marked;
  const ids = item ? [item.dataset.id] : entries().slice(0, MOST_FOLLOWED).map((entry) => entry.dataset.id);
  const marks = new Map();
  let found;
  do {
    found = await (await request(`/state?ids=${ids.splice(0, IDS_AT_ONCE)}`)).json();
    for (const [id, mark] of Object.entries(found.items)) marks.set(id, mark);
  } while (ids.length);
  // A mark of ours that was made since is in no answer: the next look is right.
  if (marked !== began) return;
  body.dataset.state = found.state;
  const feeds = new Set([...known.keys(), ...Object.keys(found.unread), ...all("[data-feed]").map((line) => line.dataset.feed)]);
  for (const feed of feeds) setUnread(feed, found.unread[feed] ?? 0);
  setView("starred", found.starred);
  setView("all", found.all);
  for (const entry of entries()) {
    const [read, starred] = marks.get(entry.dataset.id) ?? [];
    if (read === undefined) continue;
    // The first item of a story that goes on may be read: what came since is not. A copy of what was read is read.
    if (read ? !entry.classList.contains("updated") : !entry.dataset.copied) showRead(entry, read, { isCounted: false });
    showStar(entry, starred, { isCounted: false });
  }
  if (item && marks.has(item.dataset.id)) showMarksOfPage(...marks.get(item.dataset.id));
  for (const folder of all("[data-folder]")) {
    const sum = all("[data-feed]", folder).reduce((count, line) => count + shown(countOf(line)), 0);
    setCount(ofFolder(folder), sum - (found.hidden.folders[folder.dataset.folder] ?? 0));
  }
  setTotal(Object.values(found.unread).reduce((sum, number) => sum + number, 0) - found.hidden.all);
}
function showMarksOfPage(read, starred) {
  showStarIn(item, starred);
  const button = one("[data-read]", item);
  button.textContent = read ? "Mark unread" : "Mark read";
  // Who marks an item unread is done with it, and goes back to the list.
  button.setAttribute("form", read ? "marks" : "stars");
  act(button, read ? "unread" : "read");
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
  shownLines(fresh);
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

// Images that were not archived yet: requested, and put in once they are there.
async function loadImages(form) {
  const part = form.closest(".shown");
  const back = `/items/${encodeURIComponent(part.dataset.id)}/body`;
  const answer = await request(form.getAttribute("action"), new URLSearchParams({ back }));
  putImages(part, await answer.text());
  waitForImages(part);
}
function putImages(part, text) {
  const fresh = one(".shown", new DOMParser().parseFromString(text, "text/html"));
  if (!fresh) return;
  const coming = (root) => Number(one(".missing", root).dataset.coming ?? 0);
  const shownAnew = one(".body", fresh);
  if (shownAnew && coming(fresh) < coming(part)) one(".body", part).replaceWith(document.adoptNode(shownAnew));
  one(".missing", part).replaceWith(document.adoptNode(one(".missing", fresh)));
}
function waitForImages(part, looks = MOST_LOOKS) {
  if (!part || !looks || !one(".missing[data-coming]", part)) return;
  setTimeout(async () => {
    if (!part.isConnected) return;
    if (!document.hidden) {
      try {
        putImages(part, await (await request(`/items/${encodeURIComponent(part.dataset.id)}/body`)).text());
      } catch { /* The next look may be answered. */ }
    }
    waitForImages(part, document.hidden ? looks : looks - 1);
  }, IMAGES_MS);
}

// The article in place of a teaser, or the teaser again: requested, and put in once it is there. The list stays.
async function showText(form, button) {
  const part = one(".shown", form.closest(".opened, .item"));
  const back = `/items/${encodeURIComponent(part.dataset.id)}/body`;
  button.disabled = true;
  try {
    const answer = await request(form.getAttribute("action"), new URLSearchParams({ back, [button.name]: button.value }));
    putText(part, await answer.text(), { isRequested: true });
    waitForText(part);
  } catch (error) {
    button.disabled = false;
    throw error;
  }
}
function putText(part, text, { isRequested = false } = {}) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const there = one(".shown", fresh);
  const root = part.closest(".opened, .item");
  if (!there) return;
  // A player that is open stays as it is, if its text does. What the page shows is not compared: scripts change it.
  const version = one(".text", there).dataset.version;
  const isNew = version !== one(".text", part).dataset.version;
  const had = root.contains(document.activeElement) && document.activeElement.closest(".note-act");
  const buttons = all(".note-act", fresh).map((each) => document.adoptNode(each));
  const places = all(".note-act", root);
  const place = places[0] ?? one(".acts .original", root);
  if (place) place.before(...buttons);
  else one(".acts", root).prepend(...buttons);
  for (const old of places) old.remove();
  for (const name of [...(isNew ? [".text"] : []), ".notes", ".missing"]) one(name, part).replaceWith(document.adoptNode(one(name, there)));
  if (had && buttons.length) one("button", buttons[0]).focus({ preventScroll: true });
  const isComing = Boolean(one(".notes[data-coming]", part));
  const note = one(".note", part);
  if (isNew) say(one('.note-act [value="feed"]', root) ? "The article is shown" : "The text has changed");
  else if (isRequested || !isComing) say(isComing ? "The article is requested" : note ? note.textContent : "Nothing has changed");
  if (isNew) waitForImages(part);
}
function waitForText(part, looks = MOST_TEXT_LOOKS) {
  if (!part || !looks || !one(".notes[data-coming]", part)) return;
  setTimeout(async () => {
    if (!part.isConnected) return;
    if (!document.hidden) {
      try {
        putText(part, await (await request(`/items/${encodeURIComponent(part.dataset.id)}/body`)).text());
      } catch { /* The next look may be answered. */ }
    }
    waitForText(part, document.hidden ? looks : looks - 1);
  }, TEXT_MS);
}
async function pressNote(root) {
  if (!root) return;
  if (root.classList.contains("entry") && !root.classList.contains("open")) await open(root);
  const button = one(".note-act button", root);
  if (button) { button.click(); return; }
  const note = one(".note", root);
  if (note) note.hidden = false;
  say(note ? note.textContent : "The article is shown to all who read this feed");
}

// Back: a list is as long as it was and at the same place, with the marks of now. What it showed is requested by the ids
// of its items; the browser keeps no text of theirs.
const session = {
  read() { try { return JSON.parse(sessionStorage.getItem("lists")) ?? []; } catch { return []; } },
  write(lists) { try { sessionStorage.setItem("lists", JSON.stringify(lists)); } catch { /* Then Back leads to the first items. */ } },
};
const entryName = history.state?.list ?? `${Date.now()} ${Math.random()}`;
const nameEntry = () => history.replaceState({ ...history.state, list: entryName }, "");
function keepList() {
  const lines = entries();
  if (!lines.length) return;
  const top = one(".top").getBoundingClientRect().bottom;
  const box = (line) => line.getBoundingClientRect();
  const begins = (line) => box(line).top >= top && box(line).top < innerHeight;
  const anchor = current && begins(current) ? current : lines.find(begins) ?? lines.find((line) => box(line).bottom > top) ?? lines[0];
  const more = document.getElementById("more");
  const kept = {
    ids: lines.slice(0, MOST_FOLLOWED).map((line) => line.dataset.id),
    more: more && lines.length <= MOST_FOLLOWED ? [more.getAttribute("href"), more.textContent] : null,
    upTo: one("#mark-all [name=up_to]")?.value,
    pages,
    chosen: current?.dataset.id,
    anchor: anchor.dataset.id,
    // An item that was open is closed then: its line is at the top.
    offset: Math.max(top, box(anchor).top),
  };
  const others = session.read().filter(([name]) => name !== entryName);
  session.write([[entryName, kept], ...others].slice(0, KEPT_LISTS));
}
async function restoreList() {
  if (performance.getEntriesByType("navigation")[0]?.type !== "back_forward") return;
  const [, kept] = session.read().find(([name]) => name === entryName) ?? [];
  if (!kept) return;
  history.scrollRestoration = "manual";
  if (list) await restoreLines(kept);
  else for (let page = 0; page < kept.pages && (await loadMore()); page += 1);
  const anchor = document.getElementById(`i-${kept.anchor}`);
  if (!anchor) return;
  const chosen = document.getElementById(`i-${kept.chosen}`);
  if (chosen) choose(chosen);
  window.scrollBy(0, anchor.getBoundingClientRect().top - kept.offset);
}
async function restoreLines(kept) {
  const chunks = [];
  for (let n = 0; n < kept.ids.length; n += IDS_AT_ONCE) chunks.push(kept.ids.slice(n, n + IDS_AT_ONCE));
  const source = encodeURIComponent(list.dataset.address);
  const found = await Promise.all(chunks.map((ids) => pageAt(`/entries?ids=${ids}&from=${source}`)));
  const lines = shownLines(found.flatMap((page) => all(".entry", page)));
  if (!lines.length) return;
  const was = new Map(lines.map((line) => [line.dataset.id, line]));
  // The page has what came since, and what follows where others were read.
  const fresh = entries();
  const last = fresh.findLastIndex((line) => was.has(line.dataset.id));
  for (let n = last, next = null; n >= 0; n -= 1) {
    const line = was.get(fresh[n].dataset.id) ?? fresh[n];
    if (line === fresh[n]) lines.splice(lines.indexOf(next), 0, line);
    next = line;
  }
  if (!kept.more) {
    const behind = fresh.slice(last + 1);
    lines.splice(last < 0 && list.dataset.order === "newest" ? 0 : lines.length, 0, ...behind);
  } else if (last < 0 && kept.upTo) {
    one("#mark-all [name=up_to]").value = kept.upTo;
  }
  current = null;
  const entriesHere = document.getElementById("entries") ?? Object.assign(document.createElement("ol"), { id: "entries", className: "entries" });
  entriesHere.replaceChildren(...lines);
  if (!entriesHere.isConnected) one(".empty").replaceWith(entriesHere);
  if (kept.more) {
    const more = document.getElementById("more") ?? Object.assign(document.createElement("a"), { id: "more", className: "button" });
    [more.href, more.textContent] = kept.more;
    if (!more.isConnected) one(".more").prepend(more);
  }
}

// Keys.
const submitFrom = (selector) => { const button = one(selector); if (button) button.click(); };
const goTo = (address) => { location.assign(address); };
function original(root) {
  const link = one(".original", root);
  if (link) link.click();
  else if (root.dataset.id && root.classList.contains("entry")) open(root).then(() => { const there = one(".original", root); if (there) there.click(); });
}
const goBy = (selector) => { const link = one(selector); if (link) goTo(link.href); };
function press(action, otherwise) {
  const found = one(`[data-key-action="${action}"]:not([hidden], [disabled])`);
  if (!found || found.closest("[hidden]")) say(otherwise);
  else if (found.matches("form")) found.requestSubmit();
  else found.click();
}
const keys = {
  j: () => (item ? goBy("[data-behind]") : list && step(true)),
  k: () => (item ? goBy("[data-before]") : list && step(false)),
  o: () => (item ? goBy("[data-up]") : current && toggle(current)),
  m: () => (item ? submitFrom('[formaction$="read"]') : current && setRead(current, !isRead(current))),
  s: () => (item ? submitFrom('[formaction$="star"]') : current && setStar(current, !isStarred(current))),
  f: () => pressNote(item || current).catch((error) => say(error.message)),
  v: () => original(item || current || document.createElement("i")),
  r: () => refresh().catch((error) => say(error.message)),
  A: () => press("mark-all", "Nothing to mark"),
  z: () => press("undo", "Nothing to undo"),
  n: () => goTo(`/next-unread?after=${encodeURIComponent((list && list.dataset.inFeed) || (item && item.dataset.of) || (current && current.dataset.of) || "")}`),
  "/": () => {
    const search = one(".search input");
    if (search && search.offsetParent) search.focus();
    else if (search) goTo(search.form.getAttribute("action"));
  },
  "?": () => document.getElementById("keys").showModal(),
};
// The key by what is printed on it where that is a Latin letter, and else by its place: `j` is `о` on a Russian
// keyboard. Caps lock makes no other key of one; Shift does.
function keyOf(event) {
  const { key, code, shiftKey } = event;
  // Some keys of Khmer and Arabic have two characters; names of keys are ASCII.
  const isPrinted = key.length === 1 || /[^ -~]/.test(key);
  if (!isPrinted && key !== "Process" && key !== "Unidentified") return key;
  const place = /^Key([A-Z])$/.exec(code);
  const isForeign = !isPrinted || (key > "~" && !/\p{Script=Latin}/u.test(key));
  const letter = isForeign ? place && place[1] : /^[A-Za-z]$/.test(key) && key;
  if (letter) return shiftKey ? letter.toUpperCase() : letter.toLowerCase();
  // There, the slash is a dot, a comma, or a letter.
  if (code === "Slash" && (isForeign || key === "." || key === ",")) return shiftKey ? "?" : "/";
  return key;
}
const after_g = { a: "/all", u: "/unread", s: "/starred" };
let goAt = 0;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.defaultPrevented) return;
  if (event.getModifierState("AltGraph")) return;
  const on = event.target;
  if (on.isContentEditable || on.closest("input, textarea, select, dialog, audio, video")) {
    if (event.key === "Escape" && on.matches(".search input")) on.blur();
    return;
  }
  const key = keyOf(event);
  // A key that is held goes through the list, and does everything else once.
  if (event.repeat && key !== "j" && key !== "k") return;
  if (key === "g") { goAt = Date.now(); return; }
  const went = Date.now() - goAt < 1500;
  goAt = 0;
  if (went && after_g[key]) { event.preventDefault(); goTo(after_g[key]); return; }
  if (key === "Enter" && current && on === body) { event.preventDefault(); toggle(current); return; }
  if (Object.hasOwn(keys, key)) { event.preventDefault(); keys[key](); }
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
  for (const menu of all(MENUS)) if (!menu.contains(on)) menu.open = false;
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
  } else if (entry && button && button.matches("[data-star]")) { event.preventDefault(); setStar(entry, !isStarred(entry)); }
  else if (entry && button && button.matches("[data-next]")) step(true);
  else if (on.closest("#more")) { event.preventDefault(); loadMore(); }
  else if (on.closest("#news")) loadNew().catch((error) => say(error.message));
  else if (on.closest("[data-keys]")) { on.closest("details").open = false; document.getElementById("keys").showModal(); }
});
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-images], form[data-note]");
  if (!form) return;
  event.preventDefault();
  const done = "note" in form.dataset ? showText(form, event.submitter ?? one("button", form)) : loadImages(form);
  done.catch((error) => say(error.message));
});
// What more there is to say of lines that are unfolded is requested once.
document.addEventListener("toggle", async (event) => {
  const more = event.target.dataset.more;
  if (!event.target.open || !more) return;
  delete event.target.dataset.more;
  const page = await pageAt(more).catch(() => null);
  for (const line of page ? all("li[data-id]", event.target) : []) {
    line.append(...all(`[data-more-of="${CSS.escape(line.dataset.id)}"]`, page).map((found) => document.adoptNode(found)));
  }
}, true);
document.addEventListener("keyup", (event) => {
  const menu = one(MENUS);
  if (event.key === "Escape" && menu) { menu.open = false; one("summary", menu).focus(); }
});
function look() {
  if (!document.hidden && Date.now() - polled > LOOK_MS) polled = 0;
  keepPolling();
}
document.addEventListener("visibilitychange", look);
window.addEventListener("focus", look);
window.addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  // The page is as it was left, its counts and marks too.
  polled = 0;
  keepPolling();
});

// Folders stay as they were left.
for (const folder of all(".folder > details")) {
  const name = `closed ${folder.parentElement.dataset.folder}`;
  try {
    if (localStorage.getItem(name) && !one('[aria-current]', folder)) folder.open = false;
    folder.addEventListener("toggle", () => (folder.open ? localStorage.removeItem(name) : localStorage.setItem(name, "1")));
  } catch { /* A browser that stores nothing shows every folder open. */ }
}
for (const button of all("[data-keys]")) button.hidden = false;
showDates();
shownLines(entries());
waitForImages(item && one(".shown", item));
waitForText(item && one(".shown", item));
if (list && location.hash.startsWith("#i-")) {
  const back = document.getElementById(location.hash.slice(1));
  if (back) choose(back);
}
nameEntry();
window.addEventListener("hashchange", nameEntry);
window.addEventListener("pagehide", keepList);
restoreList().catch((error) => say(error.message));
if (item && performance.getEntriesByType("navigation")[0]?.type === "back_forward") follow().catch(() => {});
const here = one('.column [aria-current="page"]');
if (here) here.scrollIntoView({ block: "nearest" });
keepPolling();

// The zone of this browser, for the days and hours that the server counts.
document.cookie = `zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; samesite=lax`;
