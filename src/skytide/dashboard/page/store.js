// What the page knows: the rows of the answer, the last changes, meters. Ticks are applied here; nothing is drawn here.

import { sayTime, sayValue } from "./text.js";
import { toRow } from "./source.js";

const MOST_CHANGES = 200;
const MOST_POINTS = 600;
const MOST_EFFECTS = 300;
const EFFECT_MILLISECONDS = 1000;
const COLOURS = 10;

/** Rows that are shown, out of those that are there: brushes, groups, the threshold. */
export class Filters {
  constructor() {
    this.brushes = new Map();
    this.hidden = new Set();
    this.least = 0;
  }

  /** A column's range [low, high]; null at an end: no limit. */
  brush(column, low, high) {
    if (low === null && high === null) this.brushes.delete(column);
    else this.brushes.set(column, [low ?? -Infinity, high ?? Infinity]);
  }

  passes(row, store) {
    if (row.probability !== null && row.probability < this.least) return false;
    if (this.hidden.size && this.hidden.has(store.slot(row.group))) return false;
    for (const [column, [low, high]] of this.brushes) {
      const value = row.numbers[column];
      if (value === null || value < low || value > high) return false;
    }
    return true;
  }
}

export class Store {
  constructor() {
    this.rows = new Map();
    this.changes = [];
    this.series = { at: [] };
    this.groups = new Map();
    this.effects = [];
    this.columns = [];
    this.thresholds = [];
    this.number = null;
    this.version = 0;
    this.heard = 0;
    this.entered = 0;
    this.left = 0;
  }

  /** Takes over a whole state in place of all that was known. O(rows). */
  replace(state) {
    Object.assign(this, { title: state.title, kind: state.kind, clock: state.clock, columns: state.columns, by: state.by });
    Object.assign(this, { parameters: state.parameters, thresholds: state.thresholds, recorded: state.recorded });
    this.goals = this.columns.map((column) => column.goal);
    this.preference = this.columns.flatMap((column, i) => (column.goal ? [i] : []));
    this.rows = new Map(state.rows.map((raw) => [raw[0], toRow(raw)]));
    this.changes = state.changes.slice(-MOST_CHANGES);
    this.series = { at: [...(state.series?.at ?? [])] };
    for (const [name, values] of Object.entries(state.series ?? {})) this.series[name] = [...values];
    this.effects = [];
    const names = JSON.stringify(state.columns);
    if (names !== this.names) this.groups = new Map();
    this.names = names;
    const groups = new Set([...this.rows.values()].map((row) => row.group));
    for (const group of [...groups].sort((a, b) => String(a).localeCompare(String(b), "en", { numeric: true }))) this.slot(group);
    this.heard += 1;
    this.common(state);
  }

  /** Applies a net difference. O(rows of the difference). */
  apply(tick) {
    const now = performance.now();
    for (const [key] of tick.left) {
      const row = this.rows.get(key);
      if (row && this.rows.delete(key)) this.effects.push({ row, out: true, at: now });
    }
    for (const raw of tick.entered) {
      const row = toRow(raw);
      this.rows.set(row.key, row);
      this.effects.push({ row, out: false, at: now });
    }
    for (const raw of tick.moved) if (this.rows.has(raw[0])) this.rows.set(raw[0], toRow(raw));
    for (const [key, probability] of Object.entries(tick.probabilities ?? {})) {
      const row = this.rows.get(key);
      if (row) this.rows.set(key, { ...row, probability });
    }
    this.entered += tick.entered.length;
    this.left += tick.left.length;
    this.changes = this.changes.concat(tick.changes).slice(-MOST_CHANGES);
    this.heard += tick.changes.length;
    if (this.effects.length > MOST_EFFECTS) this.effects = this.effects.slice(-MOST_EFFECTS);
    this.note(tick.meters);
    this.common(tick);
  }

  common(news) {
    this.number = news.number;
    this.time = news.time;
    this.clock = news.clock ?? this.clock;
    this.meters = news.meters ?? {};
    this.ledger = news.ledger ?? null;
    Object.assign(this, { status: news.status, reason: news.reason, exact: news.exact, notices: news.notices ?? [] });
    this.version += 1;
  }

  /** The small lines of the meters go on from where the server's ended. */
  note(meters) {
    const series = this.series;
    const length = series.at.length;
    series.at.push(Date.now());
    for (const name of new Set([...Object.keys(series), ...Object.keys(meters)])) {
      if (name === "at") continue;
      const line = (series[name] ??= new Array(length).fill(null));
      line.push(typeof meters[name] === "number" ? meters[name] : null);
    }
    if (length > MOST_POINTS * 1.2) for (const name of Object.keys(series)) series[name] = series[name].slice(-MOST_POINTS);
  }

  /** A group's place among the colours: 0 to 9 in the order of appearance, 10 for all others. */
  slot(group) {
    if (group === null || group === undefined) return 0;
    const known = this.groups.get(group);
    if (known !== undefined) return known;
    if (this.groups.size >= COLOURS) return COLOURS;
    this.groups.set(group, this.groups.size);
    return this.groups.size - 1;
  }

  /** Rows that entered or left within the last second. */
  recent(now) {
    this.effects = this.effects.filter((effect) => now - effect.at < EFFECT_MILLISECONDS);
    return this.effects;
  }

  /** A value that some row has in a column, and its number. */
  example(column) {
    for (const row of this.rows.values()) if (row.values[column] !== null) return [row.values[column], row.numbers[column]];
    return [null, null];
  }

  numeric(column) {
    return Boolean(this.goals[column]) || this.example(column)[1] !== null;
  }

  isDates(column) {
    const [value, number] = this.example(column);
    return typeof value === "string" && number !== null;
  }

  /** A place on a column's axis in words. */
  say(column, number) {
    return this.isDates(column) && Number.isFinite(number) ? sayTime(number, "time") : sayValue(number);
  }

  /** What a screen reader is told, and the counting begins anew. */
  tally() {
    const said = { rows: this.rows.size, entered: this.entered, left: this.left };
    this.entered = 0;
    this.left = 0;
    return said;
  }
}
