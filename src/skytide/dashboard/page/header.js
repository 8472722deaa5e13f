// The head of the page: what is watched, whether it runs, notices, light and dark.

import { byId, make, sayTime, setText, sayCount, forgetColours } from "./text.js";

const THEME = "skytide-theme";

/** Light or dark: as the system has it until the reader chooses, and then as chosen. */
export class Theme {
  constructor(changed) {
    this.changed = changed;
    this.system = window.matchMedia("(prefers-color-scheme: dark)");
    this.system.addEventListener("change", () => this.set());
    byId("theme").addEventListener("click", () => {
      this.keep(this.dark ? "light" : "dark");
      this.set();
    });
    this.set();
  }

  // A page opened from a file may have no storage.
  kept() {
    try {
      return window.localStorage.getItem(THEME);
    } catch {
      return this.chosen ?? null;
    }
  }

  keep(theme) {
    this.chosen = theme;
    try {
      window.localStorage.setItem(THEME, theme);
    } catch {
      // the choice lasts as long as the page
    }
  }

  set() {
    const kept = this.kept();
    this.dark = kept === null ? this.system.matches : kept === "dark";
    document.documentElement.dataset.theme = this.dark ? "dark" : "light";
    setText(byId("theme"), this.dark ? "Light" : "Dark");
    byId("theme").setAttribute("aria-label", this.dark ? "Use light colours" : "Use dark colours");
    forgetColours();
    this.changed(this.dark);
  }
}

const WORDS = { running: "running", ended: "ended", lost: "source lost", recorded: "recording", wait: "connecting", gone: "lost connection, reconnecting" };

/** Everything above the pictures. `view` says what is shown: {connected, paused, waiting, past}. */
export function drawHeader(store, view) {
  setText(byId("title"), store.title);
  document.title = `${store.title} · Skytide`;
  setText(byId("kind"), store.kind);
  let status = store.status;
  if (store.recorded) status = "recorded";
  else if (!view.connected) status = "gone";
  byId("status").dataset.status = status;
  setText(byId("status"), (WORDS[status] ?? status) + (store.reason && status !== "gone" ? `: ${store.reason}` : ""));
  setText(byId("time"), store.time === null || store.time === undefined || store.kind === "skyline" ? "" : `${store.clock === "time" ? "" : "time "}${sayTime(store.time, store.clock)}${store.clock === "time" ? " UTC" : ""}`);
  drawNotices(store);
  byId("pause").hidden = Boolean(store.recorded);
  byId("pause").classList.toggle("on", view.paused);
  setText(byId("pause"), view.paused ? `Go on${view.waiting ? ` (${view.waiting})` : ""}` : "Pause");
  byId("past").hidden = view.past === null;
  if (view.past !== null) setText(byId("past-text"), `You see the skyline as it was at ${sayTime(view.past, store.clock)}.`);
  const parameters = Object.entries(store.parameters ?? {});
  const said = JSON.stringify([parameters, store.columns, store.by]);
  if (byId("parameters").dataset.said !== said) {
    byId("parameters").dataset.said = said;
    const goals = store.preference.map((i) => make("span", {}, `${store.goals[i]} `, make("b", {}, store.columns[i].name)));
    const by = (store.by ?? []).map((name) => make("span", {}, "by ", make("b", {}, name)));
    byId("parameters").replaceChildren(...goals, ...by, ...parameters.map(([name, value]) => make("span", {}, `${name} `, make("b", {}, String(value)))));
  }
}

function drawNotices(store) {
  const box = byId("notices");
  const lines = [...store.notices];
  if (store.exact === false && !lines.length) lines.push("The answer may be out of date.");
  const said = JSON.stringify([store.exact, lines]);
  if (box.dataset.said === said) return;
  box.dataset.said = said;
  box.hidden = !lines.length;
  box.replaceChildren(make("strong", {}, store.exact === false ? "Not exact" : "Notice"), make("ul", {}, ...lines.map((line) => make("li", {}, line))));
}

/** Tells screen readers what happened, at most every five seconds. */
export class Announcer {
  constructor(store) {
    this.store = store;
    setInterval(() => this.say(), 5000);
  }

  say() {
    if (!this.store.entered && !this.store.left) return;
    const { rows, entered, left } = this.store.tally();
    setText(byId("live"), `${sayCount(rows, "row")}, ${entered} entered, ${left} left`);
  }
}
