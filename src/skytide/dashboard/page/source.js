// Where the page's data comes from: a server that runs, or a recording inside the page. Both answer the same questions.

import { toValue, toNumber } from "./text.js";
import { dominates } from "./geometry.js";

/** A row of the wire as the page uses it. */
export function toRow([key, id, group, since, raw, probability]) {
  const values = raw.map(toValue);
  return { key, id, group, since, values, numbers: values.map(toNumber), probability: probability ?? null };
}

export function openSource() {
  const text = document.getElementById("recording").textContent.trim();
  return text ? new RecordedSource(JSON.parse(text)) : new LiveSource();
}

const RETRIES = [300, 700, 1500, 3000];

class LiveSource {
  constructor() {
    this.recorded = false;
    this.token = new URLSearchParams(window.location.search).get("token");
    this.tries = 0;
  }

  address(path, query = {}) {
    const search = new URLSearchParams(query);
    if (this.token) search.set("token", this.token);
    const text = search.toString();
    return `api/${path}${text ? "?" + text : ""}`;
  }

  async ask(path, query) {
    const answer = await fetch(this.address(path, query), { cache: "no-store" });
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.error || `the server answered ${answer.status}`);
    return body;
  }

  /** Follows the server for ever. After each loss everything is asked anew, so that nothing is doubled or lost. */
  async follow(hear) {
    let state;
    try {
      state = await this.ask("state");
    } catch {
      this.again(hear);
      return;
    }
    this.tries = 0;
    hear.state(state);
    const events = new EventSource(this.address("events", { after: state.position ?? state.number }));
    events.addEventListener("tick", (event) => hear.tick(JSON.parse(event.data)));
    events.addEventListener("state", (event) => hear.state(JSON.parse(event.data)));
    events.addEventListener("open", () => hear.connected(true));
    events.addEventListener("error", () => {
      events.close();
      hear.connected(false);
      this.again(hear);
    });
  }

  again(hear) {
    hear.connected(false);
    const wait = RETRIES[Math.min(this.tries++, RETRIES.length - 1)];
    setTimeout(() => this.follow(hear), wait);
  }

  async at(time) {
    return (await this.ask("at", { time: String(time) })).rows.map(toRow);
  }

  sizes() {
    return this.ask("sizes");
  }

  async stays(most) {
    return (await this.ask("stays", { most: String(most) })).stays;
  }

  async rest() {
    const rest = await this.ask("rest", { most: "2000" });
    return { rows: rest.rows.map(toRow), seen: rest.seen };
  }

  explain(key) {
    return this.ask("explain", { key });
  }
}

class RecordedSource {
  constructor(recording) {
    this.recorded = true;
    this.recording = recording;
    this.restRows = recording.rest.map(toRow);
  }

  async follow(hear) {
    hear.state(this.recording.state);
    hear.connected(true);
  }

  async at(time) {
    if (typeof this.recording.begins === "number" && time < this.recording.begins) throw new Error("the history of this recording begins later");
    const there = this.recording.versions.filter((version) => version[4] <= time && (version[5] === null || time < version[5]));
    return there.map(([key, id, group, entered, , , values, probability]) => toRow([key, id, group, entered, values, probability]));
  }

  async sizes() {
    return this.recording.sizes;
  }

  /** Versions of one stay share the time at which it began. */
  allStays() {
    if (this.merged) return this.merged;
    this.merged = new Map();
    for (const [key, id, group, entered, , to] of this.recording.versions) {
      if (!this.merged.has(key)) this.merged.set(key, new Map());
      const stays = this.merged.get(key);
      const known = stays.get(entered);
      if (!known) stays.set(entered, [key, id, group, entered, to]);
      else if (to === null || (known[4] !== null && to > known[4])) known[4] = to;
    }
    return this.merged;
  }

  async stays(most) {
    const end = this.recording.sizes.to ?? 0;
    const rows = [...this.allStays().values()].map((stays) => [...stays.values()]);
    const total = (stays) => stays.reduce((sum, [, , , from, to]) => sum + ((to ?? end) - from), 0);
    return rows.map((stays) => [total(stays), stays]).sort((a, b) => b[0] - a[0]).slice(0, most).flatMap(([, stays]) => stays);
  }

  async rest() {
    return { rows: this.restRows, seen: this.recording.seen ?? this.restRows.length };
  }

  /** What a recording can say of a row: its values, its stays, and which rows of the last answer dominate it. */
  async explain(key) {
    const state = this.recording.state;
    const raw = state.rows.find((row) => row[0] === key);
    const outside = raw ? null : this.restRows.find((row) => row.key === key);
    const last = this.recording.versions.findLast((version) => version[0] === key);
    if (!raw && !outside && !last) throw new Error("no row of this recording has this id");
    const stays = [...(this.allStays().get(key)?.values() ?? [])].map((stay) => [stay[3], stay[4]]);
    const found = raw ? toRow(raw) : (outside ?? toRow([last[0], last[1], last[2], null, last[6], last[7]]));
    const goals = state.columns.map((column) => column.goal);
    const by = goals.filter(Boolean).length; // the columns after the preference are those of the group
    const group = (values) => JSON.stringify(values.slice(by, by + state.by.length));
    const dominators = raw || state.thresholds.length ? [] : state.rows.map((row) => [row, toRow(row)]).filter(([, row]) => group(row.values) === group(found.values) && dominates(row.numbers, found.numbers, goals)).map(([row]) => row);
    let summary = "In the skyline when the recording ended.";
    if (!raw) summary = dominators.length ? "Outside the skyline when the recording ended: these rows of it are better." : "Outside the skyline when the recording ended.";
    return { key, id: found.id, group: found.group, known: true, inside: Boolean(raw), since: found.since, values: found.values, summary, dominators, ways: [], smallest: null, dominated: null, stays };
  }
}
