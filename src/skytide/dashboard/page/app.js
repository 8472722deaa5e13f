// The page: hears the source, keeps the store, and asks the views to draw what is chosen.

import { byId, setText, sayCount, sayTime, Pace } from "./text.js";
import { openSource } from "./source.js";
import { Store, Filters } from "./store.js";
import { Scatter } from "./scatter.js";
import { Parallel } from "./parallel.js";
import { History } from "./history.js";
import { Table } from "./table.js";
import { Meters, Ledger, Feed } from "./panels.js";
import { Details } from "./details.js";
import { Theme, drawHeader, Announcer } from "./header.js";
import { Pair, Legend, Threshold } from "./controls.js";

const REST_MILLISECONDS = 3000;
const HISTORY_MILLISECONDS = 2000;

const source = openSource();
const store = new Store();
const filters = new Filters();
const view = { connected: false, paused: false, waiting: 0, past: null, frozen: null, pastRows: null };
let dark = false;
let rest = [];
let seen = 0;
let drawn = null;
let written = null;
let asked = 0;
let restStale = true;
let historyStale = true;

/** The rows that all views show: now, a past instant, or when the page was paused; before filters. */
function present() {
  if (view.past !== null && view.pastRows) return view.pastRows;
  return view.frozen ?? [...store.rows.values()];
}

function shown() {
  return present().filter((row) => filters.passes(row, store));
}

const open = (key, id) => details.open(key, id);
const details = new Details(source, store);
const scatter = new Scatter(byId("scatter"), open);
const parallel = new Parallel(byId("parallel"), byId("brushes"), { open, brushed: brush });
const history = new History({ open, travel });
const table = new Table(open);
const meters = new Meters(byId("meters"));
const ledger = new Ledger();
const feed = new Feed(byId("feed"), open);
const pair = new Pair(() => pictures.ask());
const legend = new Legend(filters, everything);
const threshold = new Threshold(filters, everything);

const pictures = new Pace(drawPictures, 100);
const strands = new Pace(drawStrands, 150);
const words = new Pace(drawWords, 250);
const theme = new Theme((isDark) => {
  dark = isDark;
  scatter.framed = null;
  if (store.number === null) return;
  everything();
  history.draw();
});
new Announcer(store);

function everything() {
  pictures.ask();
  words.ask();
}

function drawPictures() {
  if (store.number === null) return;
  const number = store.number;
  const now = view.past === null && !view.paused;
  pair.fill(store);
  legend.draw(store, dark);
  threshold.draw(store, dark);
  const [x, y] = pair.columns;
  const all = present();
  const rows = all.filter((row) => filters.passes(row, store));
  const behind = byId("rest").checked && view.past === null ? rest.filter((row) => !store.rows.has(row.key) && !filters.hidden.has(store.slot(row.group))) : [];
  const effects = (time) => (now ? store.recent(time).filter((effect) => filters.passes(effect.row, store)) : []);
  scatter.draw({ rows, rest: behind, store, x, y, dark, effects });
  byId("parallel-card").hidden = store.preference.length < 3;
  if (store.preference.length >= 3) strands.ask();
  note(rows.length, all.length, behind.length);
  drawn = number;
}

function drawStrands() {
  const all = present();
  parallel.draw({ rows: all.filter((row) => filters.passes(row, store)), all, store, dark, filters });
}

function note(count, all, behind) {
  const parts = [count === all ? sayCount(count, "row") + " in the skyline" : `${count} of ${sayCount(all, "row")} in the skyline, the others are filtered out`];
  if (behind) parts.push(`${sayCount(behind, "other row")} in grey${seen > behind + all ? `, out of ${seen.toLocaleString("en")} seen` : ""}`);
  if (store.preference.length > 2 || store.thresholds.length) parts.push(store.thresholds.length ? "dashed: the staircase of the rows that are shown" : "dashed: the staircase of these two columns alone");
  setText(byId("scatter-note"), parts.join("; ") + ".");
  byId("brush-clear").disabled = !filters.brushes.size;
}

function drawWords() {
  if (store.number === null) return;
  drawHeader(store, view);
  byId("history-card").hidden = store.kind === "skyline"; // of a table, which has no past
  table.draw(shown(), store);
  ledger.draw(store.ledger);
  if (!view.paused) {
    meters.draw(store);
    feed.draw(store);
  }
  written = store.number;
}

function brush(column, low, high) {
  filters.brush(column, low, high);
  everything();
}

/** Shows a past instant, or the present where time is null. A late answer to an earlier question is dropped. */
async function travel(time) {
  const question = ++asked;
  if (time === null) {
    Object.assign(view, { past: null, pastRows: null });
    everything();
    return;
  }
  try {
    const rows = await source.at(time);
    if (question !== asked) return;
    Object.assign(view, { past: time, pastRows: rows });
    setText(byId("live"), `${sayCount(rows.length, "row")} at ${sayTime(time, store.clock)}`);
  } catch (error) {
    if (question !== asked) return;
    setText(byId("live"), error.message);
    history.now();
    return;
  }
  everything();
}

const hear = {
  state(state) {
    const other = JSON.stringify(state.columns) !== JSON.stringify(store.columns);
    store.replace(state);
    if (other) {
      Object.assign(view, { paused: false, frozen: null, waiting: 0 });
      filters.brushes.clear();
      filters.hidden.clear();
    }
    if (view.past !== null) travel(view.past);
    view.connected = true;
    restStale = historyStale = true;
    refresh();
    everything();
  },
  tick(tick) {
    if (view.paused) view.waiting += tick.changes.length;
    store.apply(tick);
    restStale = historyStale = true;
    if (!view.paused) pictures.ask();
    words.ask();
  },
  connected(connected) {
    if (view.connected === connected) return;
    view.connected = connected;
    words.ask();
    if (!connected) setText(byId("live"), "Lost connection, reconnecting");
  },
};

/** The rest and the history are asked for again only where something has happened since, and never twice at once. */
const asking = { rest: false, history: false };

async function refresh() {
  await Promise.all([refreshRest(), refreshHistory()]);
}

async function refreshRest() {
  if (asking.rest || !restStale || view.paused || document.hidden || store.number === null) return;
  asking.rest = true;
  restStale = false;
  try {
    ({ rows: rest, seen } = await source.rest());
    pictures.ask();
  } catch {
    restStale = true;
  }
  asking.rest = false;
}

async function refreshHistory() {
  if (asking.history || !historyStale || view.paused || document.hidden || store.number === null) return;
  asking.history = true;
  historyStale = false;
  try {
    const [sizes, stays] = await Promise.all([source.sizes(), source.stays(60)]);
    history.take(sizes, stays, store);
  } catch {
    historyStale = true;
  }
  asking.history = false;
}

byId("pause").addEventListener("click", () => {
  view.paused = !view.paused;
  view.frozen = view.paused ? [...store.rows.values()] : null;
  view.waiting = 0;
  everything();
});
byId("past-now").addEventListener("click", () => history.now());
byId("rest").addEventListener("change", () => pictures.ask());
byId("zoom-in").addEventListener("click", () => scatter.zoomBy(0.6));
byId("zoom-out").addEventListener("click", () => scatter.zoomBy(1 / 0.6));
byId("zoom-all").addEventListener("click", () => scatter.zoom(null));
byId("brush-clear").addEventListener("click", () => {
  filters.brushes.clear();
  parallel.refill();
  everything();
});
byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const wanted = byId("search-id").value.trim();
  if (!wanted) return;
  const row = [...present(), ...rest].find((one) => one.id === wanted || one.key === wanted);
  open(row?.key ?? wanted, wanted);
});
new ResizeObserver(() => pictures.ask()).observe(byId("scatter"));
setInterval(refreshRest, REST_MILLISECONDS);
setInterval(refreshHistory, HISTORY_MILLISECONDS);

/** What tests and curious readers ask. */
window.skytide = {
  rows: () => present().map((row) => row.key).sort(),
  shown: () => shown().map((row) => row.key).sort(),
  values: () => Object.fromEntries(present().map((row) => [row.key, row.values])),
  place: (key) => scatter.place(key),
  axis: (i) => parallel.place(i),
  get number() { return store.number; },
  get drawn() { return drawn; },
  get written() { return written; },
  get past() { return view.past; },
  get connected() { return view.connected; },
  get dark() { return theme.dark; },
};
source.follow(hear);
