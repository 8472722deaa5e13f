// The past: how large the skyline was, which rows stayed longest, and a slider to any instant of it.

import { byId, make, sayTime, saySpan, sayValue, plainLabel, colour, setText, sayCount, fromPlotly } from "./text.js";

const MOST_BARS = 14;

export class History {
  constructor({ open, travel }) {
    this.open = open;
    this.travel = travel;
    this.sizes = { time: [], size: [], from: null, to: null };
    this.stays = [];
    this.chosen = null;
    this.slider = byId("instant");
    for (const name of ["sizes", "stays"]) byId(name).setAttribute("role", "img");
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    this.slider.addEventListener("keydown", (event) => this.key(event));
    byId("step-back").addEventListener("click", () => this.step(-1));
    byId("step-on").addEventListener("click", () => this.step(1));
    byId("step-now").addEventListener("click", () => this.now());
  }

  key(event) {
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
    if (event.key in steps) this.step(steps[event.key]);
    else if (event.key === "Home") this.go(this.sizes.from);
    else if (event.key === "End") this.now();
    else return;
    event.preventDefault();
  }

  /** The last instant that is not after a time, as a place in the list; -1 before the first. */
  place(time) {
    const times = this.sizes.time;
    let low = 0;
    let high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  step(by) {
    const times = this.sizes.time;
    if (!times.length) return;
    const here = this.chosen === null ? times.length - 1 : this.place(this.chosen);
    const next = here + by;
    if (next >= times.length) this.now();
    else this.go(times[Math.max(0, next)]);
  }

  go(time) {
    if (time === null || this.sizes.to === null) return;
    if (time >= this.sizes.to) {
      this.now();
      return;
    }
    const found = this.place(time);
    this.chosen = found < 0 ? this.sizes.from : Math.max(this.sizes.from, this.sizes.time[found]);
    this.mark();
    this.travel(this.chosen);
  }

  now() {
    this.chosen = null;
    this.mark();
    this.travel(null);
  }

  /** The slider and the line in the picture say which instant is shown. */
  mark() {
    const { from, to } = this.sizes;
    const usable = from !== null && to !== null && to > from;
    for (const id of ["instant", "step-back", "step-on"]) byId(id).disabled = !usable;
    byId("step-now").disabled = this.chosen === null;
    if (usable) {
      this.slider.min = String(from);
      this.slider.max = String(to);
      this.slider.value = String(this.chosen ?? to);
    }
    const text = this.chosen === null ? "now" : sayTime(this.chosen, this.clock);
    this.slider.setAttribute("aria-valuetext", text);
    setText(byId("history-time"), usable ? `${sayTime(from, this.clock)} to ${sayTime(to, this.clock)}, shown: ${text}` : "Nothing has changed yet");
    if (this.drawn) window.Plotly.relayout(byId("sizes"), { shapes: this.shapes() });
  }

  shapes() {
    if (this.chosen === null) return [];
    return [{ type: "line", xref: "x", yref: "paper", x0: this.chosen, x1: this.chosen, y0: 0, y1: 1, line: { color: colour("c1"), width: 2 } }];
  }

  /** Pictures and slider share one scale of time. */
  left() {
    return parseInt(getComputedStyle(byId("history-card")).getPropertyValue("--left"), 10);
  }

  layout(height, more) {
    const axis = { gridcolor: colour("grid"), linecolor: colour("edge"), zeroline: false, fixedrange: true, type: this.clock === "time" ? "date" : "linear" };
    return { height, margin: { l: this.left(), r: 18, t: 8, b: 34 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: colour("soft"), family: "system-ui, sans-serif", size: 13 }, showlegend: false, dragmode: false, hoverlabel: { bgcolor: colour("card"), bordercolor: colour("edge"), font: { color: colour("ink") } }, ...more, xaxis: { ...axis, ...more.xaxis } };
  }

  /** What is to be drawn next time; `store` for the clock and the colours of groups. */
  take(sizes, stays, store) {
    this.sizes = sizes;
    this.stays = stays;
    this.clock = store.clock;
    this.store = store;
    if (this.chosen !== null && (sizes.to === null || this.chosen >= sizes.to || this.chosen < sizes.from)) this.now();
    this.draw();
  }

  draw() {
    if (!this.store) return;
    this.drawSizes();
    this.drawStays();
    this.mark();
  }

  drawSizes() {
    const { time, size, from, to } = this.sizes;
    const box = byId("sizes");
    const x = to === null ? time : [...time, to];
    const y = to === null ? size : [...size, size[size.length - 1] ?? 0];
    const trace = { type: "scatter", mode: "lines", x, y, line: { shape: "hv", color: colour("accent"), width: 2 }, fill: "tozeroy", fillcolor: colour("wash"), hovertemplate: "%{y} rows<extra>%{x}</extra>" };
    const range = from === null || to === null || !(to > from) ? {} : { range: [from, to] };
    const layout = this.layout(150, { hovermode: "x", shapes: this.shapes(), xaxis: range, yaxis: { rangemode: "tozero", gridcolor: colour("grid"), zeroline: false, fixedrange: true, nticks: 4, tickformat: ",d", title: { text: "rows" } } });
    window.Plotly.react(box, [trace], layout, { displayModeBar: false, responsive: true });
    if (!this.drawn) box.on("plotly_click", (event) => this.go(fromPlotly(event.points[0].x)));
    this.drawn = true;
    const ends = size.length ? `between ${sayValue(Math.min(...size))} and ${sayValue(Math.max(...size))}, now ${sayValue(size[size.length - 1])}` : "unknown";
    box.setAttribute("aria-label", `Size of the skyline over time: ${ends} rows.`);
  }

  drawStays() {
    const box = byId("stays");
    const end = this.sizes.to ?? 0;
    const rows = new Map();
    for (const [key, id, group, from, to] of this.stays) {
      if (!rows.has(key)) rows.set(key, { key, id, group, stays: [], total: 0 });
      const row = rows.get(key);
      row.stays.push([from, to ?? end]);
      row.total += (to ?? end) - from;
    }
    const begin = (row) => row.stays[0][0];
    const longest = [...rows.values()].sort((a, b) => b.total - a.total || begin(b) - begin(a)).slice(0, MOST_BARS).sort((a, b) => begin(a) - begin(b));
    byId("stays-title").hidden = box.hidden = !longest.length;
    if (!longest.length) return;
    const traces = longest.map((row, i) => {
      const x = [];
      const y = [];
      for (const [from, to] of row.stays) {
        x.push(from, from + (to - from) / 2, to, null);
        y.push(i, i, i, null);
      }
      return { type: "scatter", mode: "lines", x, y, line: { color: colour(`c${this.store.slot(row.group)}`), width: 10 }, hoverinfo: "text", text: `${plainLabel(row.id, 60)}: ${saySpan(row.total, this.clock)}`, meta: row.key };
    });
    const narrow = this.left() < 100;
    const range = this.sizes.from === null || !(end > this.sizes.from) ? {} : { range: [this.sizes.from, end] };
    const layout = this.layout(44 + 22 * longest.length, { hovermode: "closest", xaxis: range, yaxis: { range: [longest.length - 0.4, -0.6], tickvals: longest.map((_, i) => i), ticktext: longest.map((row) => plainLabel(row.id, narrow ? 8 : 14)), showgrid: false, zeroline: false, fixedrange: true } });
    window.Plotly.react(box, traces, layout, { displayModeBar: false, responsive: true });
    if (!this.barred) box.on("plotly_click", (event) => this.open(event.points[0].data.meta));
    this.barred = true;
    const words = [...longest].sort((a, b) => b.total - a.total).slice(0, 3).map((row) => `${row.id} for ${saySpan(row.total, this.clock)} in ${sayCount(row.stays.length, "stay")}`);
    box.setAttribute("aria-label", `Timeline of the rows that were longest in the skyline: ${words.join("; ")}.`);
  }
}

/** Stays as a list: from, to, how long. */
export function stayList(stays, clock, now) {
  return make("ul", { className: "plain" }, ...stays.map(([from, to]) => make("li", {}, `${sayTime(from, clock)} to ${to === null ? "now" : sayTime(to, clock)}`, (to ?? now) === null ? "" : ` (${saySpan((to ?? now) - from, clock)})`)));
}
