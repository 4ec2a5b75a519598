/* The web console: what a page does beyond links and forms. Everything works without it. */
"use strict";

/* Themes: the cookie lets the server draw the next page in the chosen one at once. */

const THEMES = ["system", "light", "dark"];

function theme() {
  return document.documentElement.dataset.theme || "system";
}

function chooseTheme(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  document.cookie = `falconmq_theme=${name}; Path=/; Max-Age=31536000; SameSite=Strict`;
  labelTheme();
}

function labelTheme() {
  for (const button of document.querySelectorAll("[data-theme-toggle]")) {
    button.hidden = false;
    button.textContent = `Theme: ${theme()}`;
  }
}

function nextTheme() {
  chooseTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]);
}

/* Times: the server writes UTC; people read the time on their wall. */

const two = (number) => String(number).padStart(2, "0");

function localTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]:not([data-is-local])")) {
    const moment = new Date(element.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    element.dataset.isLocal = "";
    if ("age" in element.dataset) continue;
    const date = `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
    const clock = `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}`;
    element.textContent = `${date} ${clock}`;
  }
}

/* Confirmation. Without a script the server asks the same question on a page of its own. */

let asked = null;

function ask(form, button) {
  const dialog = document.getElementById("confirm");
  asked = { form, button };
  dialog.querySelector("[data-text]").textContent = button.dataset.confirm;
  dialog.querySelector("[data-yes]").textContent = button.textContent.trim();
  dialog.showModal();
}

function answer(event) {
  const dialog = event.target;
  if (dialog.returnValue !== "yes" || asked === null) return;
  const { form, button } = asked;
  asked = null;
  const field = document.createElement("input");
  field.type = "hidden";
  field.name = "confirmed";
  field.value = "1";
  form.append(field);
  form.requestSubmit(button);
}

document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button || !button.dataset.confirm || event.target.querySelector("[name=confirmed]")) return;
  event.preventDefault();
  ask(event.target, button);
});

/* Live views: when the service says that something happened, the page is read again and the parts
   marked data-live are put in place of the old ones. A part that somebody works in stays. */

const QUIET_MS = 1000; // between two readings
const IDLE_MS = 15000; // ages grow even if nothing happens
const POLL_MS = 5000; // if events cannot be had
let lastRead = 0;
let timer = null;
let isReading = false;
let lastStatus = "";
let lastShown = new Date();

function isBusy(part) {
  const field = document.activeElement;
  const typing = field && part.contains(field) && field.matches("input, select, textarea");
  return typing || part.querySelector("input[type=checkbox]:checked:not([data-calm])") !== null;
}

function replace(part, fresh) {
  if (!fresh || isBusy(part) || part.innerHTML === fresh.innerHTML) return;
  const focused = document.activeElement;
  const key = focused && part.contains(focused) ? focused.getAttribute("href") : null;
  part.innerHTML = fresh.innerHTML;
  localTimes(part);
  if (key !== null) {
    const again = [...part.querySelectorAll("a[href]")].find((a) => a.getAttribute("href") === key);
    if (again) again.focus();
  }
}

async function readAgain() {
  timer = null;
  if (document.hidden || isReading) return;
  isReading = true;
  lastRead = Date.now();
  try {
    const response = await fetch(location.href, { headers: { "X-Console-Live": "1" } });
    if (response.redirected && !isBusy(document.body)) location.reload(); // the log-in has ended
    if (response.ok && !response.redirected) show(await response.text());
    lost(false);
  } catch {
    lost(true); // the next event or poll tries again
  } finally {
    isReading = false;
  }
}

function show(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(part.id);
    if (fresh) localTimes(fresh);
    replace(part, fresh);
  }
  lastShown = new Date();
}

function lost(isLost) {
  const notice = document.getElementById("lost");
  if (!notice || notice.hidden !== isLost) return;
  notice.querySelector("[data-when]").textContent = lastShown.toLocaleTimeString();
  notice.hidden = !isLost;
}

function readSoon() {
  if (timer !== null || document.hidden) return;
  timer = setTimeout(readAgain, Math.max(0, lastRead + QUIET_MS - Date.now()));
}

/* A browser opens few connections to one address: a page that nobody sees gives its own back. */

let source = null;
let polling = null;

function listen() {
  const url = document.body.dataset.events;
  if (source !== null || !url || document.hidden) return;
  source = new EventSource(url);
  source.addEventListener("open", () => {
    clearInterval(polling);
    polling = null;
    document.documentElement.dataset.follows = "events";
  });
  source.addEventListener("error", () => {
    document.documentElement.dataset.follows = "polling";
    if (polling === null) polling = setInterval(readSoon, POLL_MS);
  });
  source.addEventListener("status", (event) => {
    if (lastStatus !== "" && event.data !== lastStatus) readSoon();
    lastStatus = event.data;
  });
}

function hangUp() {
  if (source !== null) source.close();
  source = null;
}

function follow() {
  if (document.querySelector("[data-live]") === null) return;
  lastRead = Date.now();
  setInterval(() => { if (Date.now() - lastRead >= IDLE_MS) readSoon(); }, 1000);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hangUp();
    else { listen(); readSoon(); }
  });
  window.addEventListener("pagehide", hangUp);
  window.addEventListener("pageshow", listen);
  listen();
}

/* Keys: / to search, g and a letter to go, ? for help. Never while somebody types. */

const PLACES = { o: "/", q: "/queues", u: "/outgoing", d: "/dead-letters", s: "/sessions", t: "/transactions", c: "/configuration" };
let isGoing = false;

function help() {
  const dialog = document.getElementById("keys");
  if (dialog) dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  const field = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || field.isContentEditable) return;
  if (field.matches("input, select, textarea") || document.querySelector("dialog[open]")) return;
  if (isGoing) {
    isGoing = false;
    if (event.key in PLACES) location.assign(PLACES[event.key]);
    return;
  }
  if (event.key === "g") {
    isGoing = true;
    setTimeout(() => { isGoing = false; }, 1500);
  } else if (event.key === "/") {
    const search = document.querySelector("[data-search]");
    if (search) { event.preventDefault(); search.focus(); search.select(); }
  } else if (event.key === "?") help();
});

/* Small comforts. */

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-theme-toggle], [data-keys], [data-copy], [data-close]");
  if (!target) return;
  if ("themeToggle" in target.dataset) nextTheme();
  else if ("keys" in target.dataset) help();
  else if ("close" in target.dataset) target.closest("dialog").close();
  else if ("copy" in target.dataset) {
    navigator.clipboard.writeText(target.dataset.copy).then(() => { target.textContent = "Copied"; });
  }
});

document.addEventListener("change", (event) => {
  const all = event.target;
  if (!("checkAll" in all.dataset)) return;
  for (const box of all.closest("form").querySelectorAll(`input[name=${all.dataset.checkAll}]`)) {
    box.checked = all.checked;
  }
});

function start() {
  labelTheme();
  localTimes(document);
  for (const element of document.querySelectorAll("[data-script]")) element.hidden = false;
  const dialog = document.getElementById("confirm");
  if (dialog) dialog.addEventListener("close", answer);
  follow();
}

start();
