// Words, numbers and times as people read them. Text of the data enters the page through here, and only as text.

const plainNumbers = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });
const wholeNumbers = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const shortNumbers = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const exactNumbers = new Intl.NumberFormat("en", { maximumSignificantDigits: 17, useGrouping: false });

/** An element with properties, attributes (names with a dash, and role) and children; children that are text stay text. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role" || name === "colspan" || name === "scope") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function byId(id) {
  return document.getElementById(id);
}

/** Sets text only where it differs, so that nothing is announced or laid out in vain. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** "Infinity" and "-Infinity" are how JSON carries them. */
export function toValue(value) {
  if (value === "Infinity") return Infinity;
  if (value === "-Infinity") return -Infinity;
  return value === undefined ? null : value;
}

const CALENDAR = /^\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?$/;

/** A value as a place on an axis: a number, or a date as milliseconds since 1970; null where it has none. */
export function toNumber(value) {
  if (typeof value === "number") return value;
  if (typeof value !== "string" || !CALENDAR.test(value)) return null;
  const time = Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/.test(value.slice(10)) ? value : `${value.replace(" ", "T")}${value.length > 10 ? "Z" : ""}`);
  return Number.isNaN(time) ? null : time;
}

export function sayValue(value) {
  if (value === null) return "missing";
  if (typeof value !== "number") return String(value);
  if (value === Infinity) return "∞";
  if (value === -Infinity) return "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e15 || size < 1e-6)) return value.toPrecision(6).replace(/\.?0+(e|$)/, "$1");
  return Number.isInteger(value) && size < 1e15 ? wholeNumbers.format(value) : plainNumbers.format(value);
}

export function sayNumber(value) {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 100000) return shortNumbers.format(value);
  return Number.isInteger(value) ? wholeNumbers.format(value) : new Intl.NumberFormat("en", { maximumSignificantDigits: 3 }).format(value);
}

export function sayCount(count, word) {
  return `${wholeNumbers.format(count)} ${count === 1 ? word : word === "entry" ? "entries" : word + "s"}`;
}

export function sayBytes(bytes) {
  if (typeof bytes !== "number") return "–";
  let size = bytes;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (size < 1000 || unit === "GB") return `${sayNumber(size < 10 && unit !== "B" ? size : Math.round(size))} ${unit}`;
    size /= 1000;
  }
  return "";
}

export function saySeconds(seconds) {
  if (typeof seconds !== "number" || !Number.isFinite(seconds)) return "–";
  if (seconds < 0.001) return `${sayNumber(seconds * 1e6)} µs`;
  return seconds < 1 ? `${sayNumber(seconds * 1000)} ms` : `${sayNumber(seconds)} s`;
}

/** A time of the data: a number as it is, or a date in UTC where the clock is "time". */
export function sayTime(time, clock) {
  if (time === null || time === undefined) return "–";
  if (clock !== "time") return exactNumbers.format(time);
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return exactNumbers.format(time);
  return date.toISOString().replace("T", " ").replace(/(:00)?\.000Z$/, "").replace("Z", "");
}

/** A time without its day where that is today's. */
export function sayMoment(time, clock, now) {
  const text = sayTime(time, clock);
  if (clock !== "time" || now === null || now === undefined) return text;
  const day = sayTime(now, clock).slice(0, 11);
  return day.length === 11 && text.startsWith(day) ? text.slice(11) : text;
}

/** How long from one time to another. */
export function saySpan(span, clock) {
  if (clock !== "time") return plainNumbers.format(span);
  const units = [[86400000, "d"], [3600000, "h"], [60000, "min"], [1000, "s"]];
  for (const [size, name] of units) if (span >= size) return `${sayNumber(Math.round((span / size) * 10) / 10)} ${name}`;
  return `${sayNumber(span)} ms`;
}

/** Plotly gives dates back as text in UTC. */
export function fromPlotly(x) {
  return typeof x === "number" ? x : (toNumber(x) ?? Number(x));
}

/** Text for plotly, which takes some HTML in labels: nothing of it is left to be taken. */
export function plainLabel(text, most = 28) {
  const letters = [...String(text).replace(/\s+/g, " ")];
  const short = letters.length > most ? letters.slice(0, most - 1).join("") + "…" : letters.join("");
  return short.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

const colours = new Map();

/** A colour of the theme; remembered, because asking for styles is dear. */
export function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colours.get(name);
}

export function forgetColours() {
  colours.clear();
}

export const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

const FRAME = 50;

/** Does work when asked, at most every `least` milliseconds and for at most a quarter of the time. */
export class Pace {
  constructor(work, least) {
    this.work = work;
    this.least = least;
    this.next = 0;
    this.waiting = false;
    this.again = false;
  }

  ask() {
    this.again = true;
    if (this.waiting) return;
    this.waiting = true;
    setTimeout(() => requestAnimationFrame(() => this.go()), Math.max(0, this.next - performance.now()));
  }

  /** What it costs ends with the next frame: much of the painting is done after the work has returned. */
  go() {
    const start = performance.now();
    const rest = () => {
      const end = performance.now();
      this.next = end + Math.max(this.least, 3 * (end - start) - FRAME);
      this.waiting = false;
      if (this.again) this.ask();
    };
    this.again = false;
    try {
      this.work();
    } finally {
      requestAnimationFrame(rest);
    }
  }
}
