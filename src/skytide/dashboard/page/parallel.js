// Three columns or more: one axis each, one line a row, the better end up. A brush on an axis filters rows in all views.

import { make, sayValue, colour, sayCount } from "./text.js";
import { extent, steady, share, ticks, ramp } from "./geometry.js";
import { surface, fresh, onPress } from "./surface.js";
import { goalWords } from "./scatter.js";

const TOP = 46;
const BOTTOM = 16;
const MOST_AXES = 12;

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
    const names = view.store.preference.map((i) => view.store.columns[i].name).join("\n");
    this.view = view;
    this.axes = view.store.preference.slice(0, MOST_AXES);
    if (names !== this.names) {
      this.names = names;
      this.ranges = [];
      this.controls();
    }
    this.ranges = this.axes.map((column, i) => {
      const brush = view.filters.brushes.get(column);
      return brush && this.ranges[i] ? this.ranges[i] : steady(this.ranges[i], extent(view.all.map((row) => row.values[column])));
    });
    this.paint();
    this.overlay();
    this.describe();
  }

  across(i) {
    const side = Math.min(70, this.box.clientWidth * 0.12);
    return side + ((this.box.clientWidth - 2 * side) * i) / Math.max(1, this.axes.length - 1);
  }

  /** The height of a value on an axis: the better end is up. */
  down(i, value) {
    const goal = this.view.store.goals[this.axes[i]];
    const room = this.box.clientHeight - TOP - BOTTOM;
    if (typeof value !== "number") return TOP + room;
    const part = share(value, this.ranges[i]);
    return TOP + room * (goal === "max" ? 1 - part : part);
  }

  value(i, height) {
    const room = this.box.clientHeight - TOP - BOTTOM;
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
    pen.globalAlpha = rows.length > 3000 ? 0.12 : rows.length > 300 ? 0.35 : 0.75;
    const inks = new Map();
    for (const row of rows) {
      const slot = store.slot(row.group);
      if (!inks.has(slot)) inks.set(slot, colour(`c${slot}`));
      pen.strokeStyle = row.probability === null ? inks.get(slot) : ramp(share(row.probability, [low, 1]), dark);
      pen.beginPath();
      this.line(pen, row, xs);
      pen.stroke();
    }
    pen.globalAlpha = 1;
    this.axes.forEach((column, i) => this.axis(pen, column, i, xs[i], filters.brushes.get(column)));
  }

  line(pen, row, xs) {
    for (let i = 0; i < xs.length; i++) {
      const height = this.down(i, row.values[this.axes[i]]);
      if (i) pen.lineTo(xs[i], height);
      else pen.moveTo(xs[i], height);
    }
  }

  axis(pen, column, i, x, brush) {
    const { name, goal } = this.view.store.columns[column];
    const bottom = this.box.clientHeight - BOTTOM;
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
    const side = i === 0 ? 4 : last ? this.box.clientWidth - 4 : x;
    const room = (this.box.clientWidth / this.axes.length) * 0.95;
    pen.fillStyle = colour("ink");
    pen.font = "600 13px system-ui, sans-serif";
    pen.fillText(name, side, 16, room);
    pen.fillStyle = colour("soft");
    pen.font = "12px system-ui, sans-serif";
    pen.fillText(goalWords(goal), side, 32, room);
    pen.textAlign = i === 0 ? "right" : "left";
    const shift = i === 0 ? -8 : 8;
    for (const tick of ticks(...this.ranges[i], 5)) {
      const height = this.down(i, tick);
      pen.fillRect(x - 3, height - 0.5, 6, 1);
      const text = sayValue(tick);
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
      const a = this.down(i, row.values[this.axes[i]]);
      const b = this.down(i + 1, row.values[this.axes[i + 1]]);
      const away = Math.abs(a + (b - a) * part - y);
      if (away < least) [best, least] = [row, away];
    }
    return best;
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
      const round = (value) => Number(value.toPrecision(4));
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
      const fields = ["from", "to"].map((word) => make("input", { type: "number", step: "any", placeholder: word, "aria-label": `${name} ${word}` }));
      const read = (field) => (field.value === "" || Number.isNaN(Number(field.value)) ? null : Number(field.value));
      for (const field of fields) field.addEventListener("input", () => this.brushed(column, read(fields[0]), read(fields[1])));
      return fields;
    });
    this.inputs.replaceChildren(...this.axes.map((column, i) => make("fieldset", {}, make("legend", {}, this.view.store.columns[column].name), ...this.fields[i])));
  }

  refill() {
    this.axes.forEach((column, i) => {
      const brush = this.view.filters.brushes.get(column);
      this.fields[i].forEach((field, j) => {
        field.value = brush && Number.isFinite(brush[j]) ? String(brush[j]) : "";
      });
    });
  }

  describe() {
    const { rows, store } = this.view;
    const label = `Parallel coordinates of ${sayCount(rows.length, "row")}: ${this.axes.map((column) => `${store.columns[column].name} (${goalWords(store.goals[column])})`).join(", ")}. The table below has the same rows.`;
    if (this.box.getAttribute("aria-label") !== label) this.box.setAttribute("aria-label", label);
  }
}
