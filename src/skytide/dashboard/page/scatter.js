// The skyline in two columns: plotly draws the axes and zooms, the marks lie on canvases above.
// Plotly's own WebGL marks need code made at run time, which the page's security policy forbids.

import { make, sayValue, plainLabel, colour, calm, sayCount, fromPlotly } from "./text.js";
import { cost, staircase, extent, bulk, union, steady, share, ramp } from "./geometry.js";
import { surface, fresh, stamp, press, outline, shapeOf, onPress } from "./surface.js";

const MARGIN = { l: 64, r: 18, t: 12, b: 52 };
const REACH = 14;
const MANY = 2500;

/** What a goal means, in words. */
export function goalWords(goal) {
  if (goal === "min") return "lower is better";
  return goal === "max" ? "higher is better" : "";
}

export class Scatter {
  constructor(box, open) {
    this.box = box;
    this.axes = make("div", { className: "axes" });
    box.append(this.axes);
    this.base = surface(box, "marks");
    this.above = surface(box, "marks");
    this.tip = make("div", { className: "tip", hidden: true });
    box.append(this.tip);
    box.setAttribute("role", "img");
    this.ranges = { x: null, y: null };
    this.zoomed = null;
    this.places = [];
    this.near = null;
    box.addEventListener("pointermove", (event) => this.point(event));
    box.addEventListener("pointerleave", () => this.point(null));
    onPress(box, (event) => {
      const place = this.find(event);
      if (place) open(place.row.key);
    });
  }

  /** Draws a view: {rows, rest, store, x, y, dark, effects}. */
  draw(view) {
    this.view = view;
    const { store, x, y } = view;
    if (this.pair !== `${x} ${y} ${store.title}`) {
      this.pair = `${x} ${y} ${store.title}`;
      this.ranges = { x: null, y: null };
      this.zoomed = null;
    }
    this.ranges = { x: this.fit(this.ranges.x, x), y: this.fit(this.ranges.y, y) };
    this.frame();
    this.paint();
    this.describe();
    this.animate();
  }

  fit(old, column) {
    const { rows, rest } = this.view;
    const inside = extent(rows.map((row) => row.numbers[column]));
    return steady(old, union(inside, bulk(rest.map((row) => row.numbers[column]), inside ? 0.96 : 1)));
  }

  /** Axes are drawn anew only when something about them has changed. */
  frame() {
    const { store, x, y, dark } = this.view;
    const range = this.zoomed ?? this.ranges;
    const wanted = JSON.stringify([x, y, dark, range, this.box.clientWidth, this.box.clientHeight, store.columns, store.isDates(x), store.isDates(y)]);
    if (wanted === this.framed) return;
    this.framed = wanted;
    const axis = (column, place) => {
      const { name, goal } = store.columns[column];
      const words = goalWords(goal);
      const title = plainLabel(name, 40) + (words ? ` (${words})` : "");
      return { title: { text: title, standoff: 8 }, range: [...place], type: store.isDates(column) ? "date" : "linear", gridcolor: colour("grid"), linecolor: colour("edge"), zeroline: false, showline: true, ticks: "", automargin: false, fixedrange: this.coarse() };
    };
    const layout = { margin: MARGIN, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: colour("soft"), family: "system-ui, sans-serif", size: 13 }, xaxis: axis(x, range.x), yaxis: axis(y, range.y), hovermode: false, dragmode: this.coarse() ? false : "zoom", showlegend: false };
    const first = !this.axes.data;
    window.Plotly.react(this.axes, [], layout, { displayModeBar: false, responsive: false, doubleClick: false });
    if (first) this.listen();
  }

  coarse() {
    return window.matchMedia("(pointer: coarse)").matches;
  }

  listen() {
    const zoom = (event) => {
      const part = (name, old) => (event[`${name}.range[0]`] === undefined ? (event[`${name}.range`] ?? old) : [event[`${name}.range[0]`], event[`${name}.range[1]`]]).map(fromPlotly);
      const now = this.zoomed ?? this.ranges;
      if (!Object.keys(event).some((name) => name.includes("axis.range"))) return;
      this.zoom({ x: part("xaxis", now.x), y: part("yaxis", now.y) });
    };
    this.axes.on("plotly_relayout", zoom);
    this.axes.on("plotly_doubleclick", () => this.zoom(null));
  }

  zoom(ranges) {
    this.zoomed = ranges;
    this.frame();
    this.paint();
    this.animate();
  }

  /** Zooms around the middle: below 1 closer, above 1 farther. */
  zoomBy(factor) {
    const now = this.zoomed ?? this.ranges;
    if (!now.x || !now.y) return;
    const scaled = ([low, high]) => {
      const middle = low / 2 + high / 2;
      return [middle - (middle - low) * factor, middle + (high - middle) * factor];
    };
    this.zoom({ x: scaled(now.x), y: scaled(now.y) });
  }

  /** The pixel of a value; infinite and missing values lie at the edges. */
  scale() {
    const range = this.zoomed ?? this.ranges;
    const width = this.box.clientWidth - MARGIN.l - MARGIN.r;
    const height = this.box.clientHeight - MARGIN.t - MARGIN.b;
    const place = (value, [low, high]) => {
      if (!Number.isFinite(value)) return share(value, [low, high]);
      return (value / 2 - low / 2) / (high / 2 - low / 2);
    };
    const across = (value) => MARGIN.l + width * place(value, range.x);
    const up = (value) => MARGIN.t + height * (1 - place(value, range.y));
    return { across, up, width, height, range };
  }

  /** A row's value in a column as a number, or null where it has none and no worst end. */
  number(row, column) {
    const value = row.numbers[column];
    if (value !== null) return value;
    const goal = this.view.store.goals[column];
    if (!goal) return null;
    return goal === "max" ? -Infinity : Infinity;
  }

  clip(pen, { width, height }, air) {
    pen.beginPath();
    pen.rect(MARGIN.l - air, MARGIN.t - air, width + 2 * air, height + 2 * air);
    pen.clip();
  }

  paint() {
    if (!this.view) return;
    const { rows, rest, store, x, y, dark } = this.view;
    const scale = this.scale();
    const pen = fresh(this.base);
    pen.save();
    this.clip(pen, scale, 8);
    this.places = [];
    const radius = rows.length > 500 || (rows.length > 100 && scale.width < 400) ? 3.6 : 5.2;
    const grey = stamp("circle", 2.4, colour("rest"), null);
    const put = (row, mark) => {
      const a = this.number(row, x);
      const b = this.number(row, y);
      if (a === null || b === null) return;
      const place = { row, x: scale.across(a), y: scale.up(b) };
      this.places.push(place);
      press(pen, mark(row), place.x, place.y);
    };
    for (const row of rest) put(row, () => grey);
    pen.save();
    this.clip(pen, scale, 1);
    this.stairs(pen, scale);
    pen.restore();
    const marks = new Map();
    const edge = colour("card");
    const low = store.thresholds[0] ?? 0;
    const mark = (row) => {
      const slot = store.slot(row.group);
      const step = row.probability === null ? -1 : Math.round(share(row.probability, [low, 1]) * 40);
      const name = step < 0 ? slot : 100 + slot * 100 + step;
      if (!marks.has(name)) marks.set(name, stamp(shapeOf(slot), radius, step < 0 ? colour(`c${slot}`) : ramp(step / 40, dark), edge));
      return marks.get(name);
    };
    if (rows.length > MANY) this.dust(pen, scale, low);
    else for (const row of rows) put(row, mark);
    pen.restore();
  }

  /** Thousands of rows: small squares, colour by colour. */
  dust(pen, scale, low) {
    const { rows, store, x, y, dark } = this.view;
    const inks = new Map();
    for (const row of rows) {
      const a = this.number(row, x);
      const b = this.number(row, y);
      if (a === null || b === null) continue;
      const place = { row, x: scale.across(a), y: scale.up(b) };
      this.places.push(place);
      const ink = row.probability === null ? colour(`c${store.slot(row.group)}`) : ramp(Math.round(share(row.probability, [low, 1]) * 20) / 20, dark);
      if (inks.has(ink)) inks.get(ink).push(place);
      else inks.set(ink, [place]);
    }
    pen.globalAlpha = 0.75;
    for (const [ink, places] of inks) {
      pen.fillStyle = ink;
      for (const place of places) pen.fillRect(place.x - 2, place.y - 2, 4, 4);
    }
    pen.globalAlpha = 1;
  }

  /** The border of what each group dominates; dashed where other columns count too. */
  stairs(pen, scale) {
    const { rows, store, x, y } = this.view;
    const goals = [store.goals[x], store.goals[y]];
    if (!goals[0] || !goals[1] || x === y) return;
    const whole = store.preference.length === 2 && !store.thresholds.length;
    const back = (value, goal) => (goal === "max" ? -value : value);
    const worst = ([low, high], goal) => cost(goal === "max" ? low - (high - low) : high + (high - low), goal);
    const groups = new Map();
    for (const row of rows) {
      if (!groups.has(row.group)) groups.set(row.group, []);
      groups.get(row.group).push([cost(this.number(row, x), goals[0]), cost(this.number(row, y), goals[1])]);
    }
    if (groups.size > 40) return;
    for (const [group, points] of groups) {
      const border = staircase(points, worst(scale.range.x, goals[0]), worst(scale.range.y, goals[1]));
      if (!border.length) continue;
      const place = ([a, b]) => [scale.across(back(a, goals[0])), scale.up(back(b, goals[1]))];
      pen.beginPath();
      border.forEach((corner, i) => (i ? pen.lineTo(...place(corner)) : pen.moveTo(...place(corner))));
      pen.setLineDash(whole ? [] : [5, 4]);
      pen.lineWidth = whole ? 2 : 1.3;
      pen.strokeStyle = store.thresholds.length ? colour("soft") : colour(`c${store.slot(group)}`);
      pen.globalAlpha = whole ? 0.9 : 0.6;
      pen.stroke();
      if (whole && groups.size === 1) {
        const [firstX] = place(border[0]);
        const [lastX, lastY] = place(border[border.length - 1]);
        const [, firstY] = place(border[0]);
        pen.lineTo(lastX, firstY);
        pen.lineTo(firstX, firstY);
        pen.globalAlpha = lastY === firstY ? 0 : 0.07;
        pen.fillStyle = colour(`c${store.slot(group)}`);
        pen.fill();
      }
      pen.globalAlpha = 1;
      pen.setLineDash([]);
    }
  }

  /** Rows that entered pulse, rows that left fade; the picture below stays as it is. */
  animate() {
    if (this.moving) return;
    this.moving = true;
    const step = () => {
      const pen = fresh(this.above);
      const now = performance.now();
      const effects = calm.matches ? [] : this.view.effects(now);
      const scale = this.scale();
      pen.save();
      this.clip(pen, scale, 8);
      for (const effect of effects) this.effect(pen, scale, effect, (now - effect.at) / 1000);
      if (this.near) {
        pen.beginPath();
        outline(pen, "circle", this.near.x, this.near.y, 9);
        pen.lineWidth = 2;
        pen.strokeStyle = colour("ink");
        pen.stroke();
      }
      pen.restore();
      this.moving = effects.length > 0;
      if (this.moving) requestAnimationFrame(step);
    };
    step();
  }

  effect(pen, scale, { row, out }, age) {
    const { store, x, y } = this.view;
    const a = this.number(row, x);
    const b = this.number(row, y);
    if (a === null || b === null) return;
    const slot = store.slot(row.group);
    pen.beginPath();
    outline(pen, out ? shapeOf(slot) : "circle", scale.across(a), scale.up(b), out ? 5 : 5 + 13 * age);
    pen.globalAlpha = Math.max(0, 1 - age) * (out ? 0.8 : 0.7);
    pen.lineWidth = out ? 1.5 : 2;
    pen.strokeStyle = colour(`c${slot}`);
    pen.stroke();
    pen.globalAlpha = 1;
  }

  find(event) {
    const box = this.box.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    let best = null;
    let least = REACH;
    for (let i = this.places.length - 1; i >= 0; i--) {
      const away = Math.hypot(this.places[i].x - x, this.places[i].y - y);
      if (away < least) [best, least] = [this.places[i], away];
    }
    return best;
  }

  /** Where on the screen a row is. */
  place(key) {
    const box = this.box.getBoundingClientRect();
    const found = this.places.find((place) => place.row.key === key);
    return found ? [box.left + found.x, box.top + found.y] : null;
  }

  point(event) {
    const near = event && event.buttons === 0 ? this.find(event) : null;
    if (near?.row === this.near?.row && near?.x === this.near?.x) return;
    this.near = near;
    this.box.classList.toggle("pointing", Boolean(near));
    this.tip.hidden = !near;
    if (near) {
      const { store } = this.view;
      const lines = store.columns.slice(0, 8).map((column, i) => make("div", {}, make("span", {}, column.name), make("b", {}, sayValue(near.row.values[i]))));
      if (near.row.probability !== null) lines.push(make("div", {}, make("span", {}, "probability"), make("b", {}, sayValue(near.row.probability))));
      const where = near.row.since === null ? "outside the skyline" : "in the skyline";
      this.tip.replaceChildren(make("strong", {}, near.row.id), make("em", {}, where), ...lines);
      const left = near.x > this.box.clientWidth / 2 ? near.x - this.tip.offsetWidth - 16 : near.x + 16;
      this.tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, Math.min(near.y - 20, this.box.clientHeight - this.tip.offsetHeight - 4))}px)`;
    }
    if (this.view) this.animate();
  }

  describe() {
    const { rows, rest, store, x, y } = this.view;
    const part = (column) => {
      const { name, goal } = store.columns[column];
      const ends = extent(rows.map((row) => row.numbers[column]));
      return `${name}${goal ? ` (${goalWords(goal)})` : ""}${ends ? ` from ${store.say(column, ends[0])} to ${store.say(column, ends[1])}` : ""}`;
    };
    const label = `Scatter plot of ${sayCount(rows.length, "row")} of the skyline: ${part(x)}; ${part(y)}${rest.length ? `; ${sayCount(rest.length, "other row")} behind` : ""}. The table below has the same rows.`;
    if (this.box.getAttribute("aria-label") !== label) this.box.setAttribute("aria-label", label);
  }
}
