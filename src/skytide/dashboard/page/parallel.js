// Three columns or more: one axis each, one line a row, the better end up. A brush on an axis filters rows in all views.

import { make, sayValue, colour, sayCount, toNumber } from "./text.js";
import { extent, steady, share, ticks, ramp } from "./geometry.js";
import { surface, fresh, onPress } from "./surface.js";
import { goalWords } from "./scatter.js";

const TOP = 46;
const BOTTOM = 16;
const MOST_AXES = 12;
const MANY_LINES = 2000;
/** How much of a pixel is covered where so many lines cross it. */
const COVERS = Array.from({ length: 64 }, (_, count) => Math.max(0.25, 1 - 0.82 ** count) * 0.9);

/** Adds one to every pixel of a line, which goes from left to right. */
function crossed(counts, width, x0, y0, x1, y1) {
  const slope = (y1 - y0) / (x1 - x0);
  if (slope <= 1 && slope >= -1) {
    let y = y0 + 0.5;
    for (let x = x0; x < x1; x++) {
      counts[(y | 0) * width + x] += 1;
      y += slope;
    }
    return;
  }
  const bottom = Math.max(y0, y1);
  let x = (y0 < y1 ? x0 : x1) + 0.5;
  for (let y = Math.min(y0, y1) | 0; y < bottom; y++) {
    counts[y * width + (x | 0)] += 1;
    x += 1 / slope;
  }
}

/** Lays a colour over a picture: the more lines cross a pixel, the denser. */
function tinted(data, counts, [red, green, blue]) {
  for (let i = 0; i < counts.length; i++) {
    if (!counts[i]) continue;
    const cover = COVERS[Math.min(counts[i], COVERS.length - 1)];
    const j = i * 4;
    const under = (data[j + 3] / 255) * (1 - cover);
    const all = cover + under;
    data[j] = (red * cover + data[j] * under) / all;
    data[j + 1] = (green * cover + data[j + 1] * under) / all;
    data[j + 2] = (blue * cover + data[j + 2] * under) / all;
    data[j + 3] = all * 255;
  }
}

/** The parts of a colour, however it is written. */
function rgb(pen, name) {
  pen.fillStyle = name;
  const text = pen.fillStyle;
  return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
}

export class Parallel {
  constructor(box, brushes, { open, brushed }) {
    this.box = box;
    this.inputs = brushes;
    this.brushed = brushed;
    this.base = surface(box, "marks");
    this.above = surface(box, "marks");
    this.tip = make("div", { className: "tip", hidden: true });
    box.append(this.tip);
    box.setAttribute("role", "img");
    this.ranges = [];
    this.near = null;
    box.addEventListener("pointermove", (event) => this.point(event));
    box.addEventListener("pointerleave", () => this.point(null));
    box.addEventListener("pointerdown", (event) => this.grab(event));
    onPress(box, () => {
      if (this.near) open(this.near.key);
    });
  }

  /** Draws a view: {rows, store, dark, filters}. Rows that a brush hides are not among them. */
  draw(view) {
    const names = JSON.stringify(view.store.preference.map((i) => [view.store.columns[i].name, view.store.isDates(i)]));
    this.view = view;
    this.width = this.box.clientWidth;
    this.height = this.box.clientHeight;
    this.axes = view.store.preference.slice(0, MOST_AXES);
    if (names !== this.names) {
      this.names = names;
      this.ranges = [];
      this.controls();
    }
    this.ranges = this.axes.map((column, i) => {
      const brush = view.filters.brushes.get(column);
      return brush && this.ranges[i] ? this.ranges[i] : steady(this.ranges[i], extent(view.all.map((row) => row.numbers[column])));
    });
    this.paint();
    this.overlay();
    this.describe();
  }

  across(i) {
    const side = Math.min(70, this.width * 0.12);
    return side + ((this.width - 2 * side) * i) / Math.max(1, this.axes.length - 1);
  }

  /** The height of a value on an axis: the better end is up. */
  down(i, value) {
    const goal = this.view.store.goals[this.axes[i]];
    const room = this.height - TOP - BOTTOM;
    if (typeof value !== "number") return TOP + room;
    const part = share(value, this.ranges[i]);
    return TOP + room * (goal === "max" ? 1 - part : part);
  }

  value(i, height) {
    const room = this.height - TOP - BOTTOM;
    const part = Math.min(1, Math.max(0, (height - TOP) / room));
    const [low, high] = this.ranges[i];
    return low + (high - low) * (this.view.store.goals[this.axes[i]] === "max" ? 1 - part : part);
  }

  paint() {
    const { rows, store, dark, filters } = this.view;
    const pen = fresh(this.base);
    const xs = this.axes.map((_, i) => this.across(i));
    const low = store.thresholds[0] ?? 0;
    pen.lineJoin = "round";
    pen.lineWidth = rows.length > 1000 ? 1 : 1.5;
    pen.globalAlpha = rows.length > 300 ? 0.35 : 0.75;
    const ink = (row) => (row.probability === null ? colour(`c${store.slot(row.group)}`) : ramp(Math.round(share(row.probability, [low, 1]) * 10) / 10, dark));
    if (rows.length > MANY_LINES) {
      this.weave(pen, xs, ink);
    } else {
      for (const row of rows) {
        pen.strokeStyle = ink(row);
        pen.beginPath();
        this.line(pen, row, xs);
        pen.stroke();
      }
    }
    pen.globalAlpha = 1;
    this.axes.forEach((column, i) => this.axis(pen, column, i, xs[i], filters.brushes.get(column)));
  }

  /** Thousands of lines: how many cross a pixel is counted, colour by colour, and painted as one picture. */
  weave(pen, xs, ink) {
    const { width, height } = this;
    const inks = new Map();
    for (const row of this.view.rows) {
      const name = ink(row);
      if (inks.has(name)) inks.get(name).push(row);
      else inks.set(name, [row]);
    }
    const picture = new ImageData(width, height);
    const counts = new Uint16Array(width * height);
    const heights = new Float64Array(xs.length);
    for (const [name, rows] of inks) {
      counts.fill(0);
      for (const row of rows) {
        for (let i = 0; i < xs.length; i++) heights[i] = this.down(i, row.numbers[this.axes[i]]);
        for (let i = 0; i + 1 < xs.length; i++) crossed(counts, width, Math.round(xs[i]), heights[i], Math.round(xs[i + 1]), heights[i + 1]);
      }
      tinted(picture.data, counts, rgb(pen, name));
    }
    this.cloth ??= document.createElement("canvas");
    Object.assign(this.cloth, { width, height });
    this.cloth.getContext("2d").putImageData(picture, 0, 0);
    pen.globalAlpha = 1;
    pen.drawImage(this.cloth, 0, 0);
  }

  line(pen, row, xs) {
    for (let i = 0; i < xs.length; i++) {
      const height = this.down(i, row.numbers[this.axes[i]]);
      if (i) pen.lineTo(xs[i], height);
      else pen.moveTo(xs[i], height);
    }
  }

  axis(pen, column, i, x, brush) {
    const { name, goal } = this.view.store.columns[column];
    const bottom = this.height - BOTTOM;
    pen.strokeStyle = colour("edge");
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(x, TOP);
    pen.lineTo(x, bottom);
    pen.stroke();
    if (brush) {
      const [a, b] = [this.down(i, brush[0]), this.down(i, brush[1])];
      pen.fillStyle = colour("accent");
      pen.globalAlpha = 0.28;
      pen.fillRect(x - 7, Math.min(a, b), 14, Math.abs(a - b));
      pen.globalAlpha = 1;
    }
    const last = i === this.axes.length - 1 && i > 0;
    pen.textAlign = i === 0 ? "left" : last ? "right" : "center";
    const side = i === 0 ? 4 : last ? this.width - 4 : x;
    const room = (this.width / this.axes.length) * 0.95;
    pen.fillStyle = colour("ink");
    pen.font = "600 13px system-ui, sans-serif";
    pen.fillText(name, side, 16, room);
    pen.fillStyle = colour("soft");
    pen.font = "12px system-ui, sans-serif";
    pen.fillText(room < 95 ? goalWords(goal).split(" ")[0] : goalWords(goal), side, 32, room);
    pen.textAlign = i === 0 ? "right" : "left";
    const shift = i === 0 ? -8 : 8;
    for (const tick of ticks(...this.ranges[i], 5)) {
      const height = this.down(i, tick);
      pen.fillRect(x - 3, height - 0.5, 6, 1);
      const text = this.view.store.say(column, tick);
      const width = pen.measureText(text).width + 8;
      pen.fillStyle = colour("card");
      pen.globalAlpha = 0.85;
      pen.fillRect(i === 0 ? x - 4 - width : x + 4, height - 8, width, 16);
      pen.globalAlpha = 1;
      pen.fillStyle = colour("soft");
      pen.fillText(text, x + shift, height + 4);
    }
  }

  /** The row under the pointer, above the others. */
  overlay() {
    const pen = fresh(this.above);
    if (!this.near) return;
    pen.lineWidth = 3;
    pen.strokeStyle = colour("ink");
    pen.beginPath();
    this.line(pen, this.near, this.axes.map((_, i) => this.across(i)));
    pen.stroke();
  }

  find(event) {
    const box = this.box.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    let i = 0;
    while (i < this.axes.length - 2 && x > this.across(i + 1)) i++;
    const part = Math.min(1, Math.max(0, (x - this.across(i)) / (this.across(i + 1) - this.across(i))));
    let best = null;
    let least = 8;
    for (const row of this.view.rows) {
      const a = this.down(i, row.numbers[this.axes[i]]);
      const b = this.down(i + 1, row.numbers[this.axes[i + 1]]);
      const away = Math.abs(a + (b - a) * part - y);
      if (away < least) [best, least] = [row, away];
    }
    return best;
  }

  /** Where on the screen an axis is: across, and its ends. */
  place(i) {
    this.box.scrollIntoView({ block: "center" });
    const box = this.box.getBoundingClientRect();
    return [box.left + this.across(i), box.top + TOP, box.bottom - BOTTOM];
  }

  point(event) {
    if (!this.view || this.held) return;
    const near = event && event.buttons === 0 ? this.find(event) : null;
    this.box.classList.toggle("pointing", Boolean(near));
    if (near !== this.near) {
      this.near = near;
      this.overlay();
    }
    this.tip.hidden = !near;
    if (!near) return;
    this.tip.replaceChildren(make("strong", {}, near.id), ...this.axes.map((column) => make("div", {}, make("span", {}, this.view.store.columns[column].name), make("b", {}, sayValue(near.values[column])))));
    const box = this.box.getBoundingClientRect();
    const x = event.clientX - box.left;
    const left = x > box.width / 2 ? x - this.tip.offsetWidth - 16 : x + 16;
    this.tip.style.transform = `translate(${left}px, ${Math.max(4, Math.min(event.clientY - box.top - 20, box.height - this.tip.offsetHeight - 4))}px)`;
  }

  /** A drag that begins near an axis marks a range on it. */
  grab(event) {
    if (!this.view) return;
    const box = this.box.getBoundingClientRect();
    const i = this.axes.findIndex((_, j) => Math.abs(this.across(j) - (event.clientX - box.left)) < 16);
    if (i < 0) return;
    const start = this.value(i, event.clientY - box.top);
    const move = (next) => {
      if (Math.abs(next.clientY - event.clientY) < 5) return;
      this.held = true;
      const end = this.value(i, next.clientY - box.top);
      const round = (value) => (this.view.store.isDates(this.axes[i]) ? Math.round(value) : Number(value.toPrecision(4)));
      this.brushed(this.axes[i], round(Math.min(start, end)), round(Math.max(start, end)));
      this.refill();
    };
    const release = () => {
      this.held = false;
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", release);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", release);
  }

  /** Two boxes a column: the same brush for the keyboard. */
  controls() {
    this.fields = this.axes.map((column) => {
      const { name } = this.view.store.columns[column];
      const dates = this.view.store.isDates(column);
      const fields = ["from", "to"].map((word) => make("input", { type: dates ? "text" : "number", step: "any", placeholder: word, "aria-label": `${name} ${word}` }));
      const number = (text) => (text === "" || Number.isNaN(Number(text)) ? null : Number(text));
      const read = (field) => (dates ? toNumber(field.value.trim()) : number(field.value));
      for (const field of fields) field.addEventListener("input", () => this.brushed(column, read(fields[0]), read(fields[1])));
      return fields;
    });
    this.inputs.replaceChildren(...this.axes.map((column, i) => make("fieldset", {}, make("legend", {}, this.view.store.columns[column].name), ...this.fields[i])));
  }

  refill() {
    this.axes.forEach((column, i) => {
      const brush = this.view.filters.brushes.get(column);
      this.fields[i].forEach((field, j) => {
        field.value = brush && Number.isFinite(brush[j]) ? (this.view.store.isDates(column) ? this.view.store.say(column, brush[j]) : String(brush[j])) : "";
      });
    });
  }

  describe() {
    const { rows, store } = this.view;
    const label = `Parallel coordinates of ${sayCount(rows.length, "row")}: ${this.axes.map((column) => `${store.columns[column].name} (${goalWords(store.goals[column])})`).join(", ")}. The table below has the same rows.`;
    if (this.box.getAttribute("aria-label") !== label) this.box.setAttribute("aria-label", label);
  }
}
