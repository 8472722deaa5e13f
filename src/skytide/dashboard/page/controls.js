// What chooses what is shown: the two columns, the groups, the threshold.

import { byId, make, setText, colour } from "./text.js";
import { ramp } from "./geometry.js";
import { stamp, press, shapeOf } from "./surface.js";

/** The two selects. They keep what was chosen while the columns stay. */
export class Pair {
  constructor(changed) {
    this.x = byId("x");
    this.y = byId("y");
    for (const select of [this.x, this.y]) select.addEventListener("change", changed);
  }

  fill(store) {
    const usable = store.columns.flatMap((column, i) => (store.numeric(i) ? [i] : []));
    const names = JSON.stringify([store.columns, usable]);
    if (names === this.names) return;
    this.names = names;
    const chosen = this.of === JSON.stringify(store.columns) ? [this.x.value, this.y.value] : null;
    this.of = JSON.stringify(store.columns);
    for (const select of [this.x, this.y]) select.replaceChildren(...usable.map((i) => make("option", { value: String(i) }, store.columns[i].name)));
    if (chosen && chosen[0] !== chosen[1]) {
      [this.x.value, this.y.value] = chosen;
      return;
    }
    const [first, second] = store.preference;
    this.x.value = String(first);
    this.y.value = String(second ?? usable.find((i) => i !== first) ?? first);
  }

  get columns() {
    return [Number(this.x.value), Number(this.y.value)];
  }
}

/** A button for each group, in its colour; pressed: shown. */
export class Legend {
  constructor(filters, changed) {
    this.filters = filters;
    this.changed = changed;
  }

  draw(store, dark) {
    const groups = [...store.groups.entries()];
    const more = [...store.rows.values()].some((row) => store.slot(row.group) === 10);
    const said = JSON.stringify([groups, more, dark]);
    if (said === this.said) return;
    this.said = said;
    if (more) groups.push(["others", 10]);
    const buttons = groups.length < 2 ? [] : groups.map(([name, slot]) => {
      const button = make("button", { type: "button", "aria-pressed": String(!this.filters.hidden.has(slot)) }, this.mark(slot), String(name));
      button.addEventListener("click", () => {
        if (!this.filters.hidden.delete(slot)) this.filters.hidden.add(slot);
        button.setAttribute("aria-pressed", String(!this.filters.hidden.has(slot)));
        this.changed();
      });
      return button;
    });
    byId("legend").replaceChildren(...buttons);
  }

  /** The same mark as in the picture. */
  mark(slot) {
    const canvas = make("canvas", { width: 32, height: 32, "aria-hidden": "true" });
    const pen = canvas.getContext("2d");
    pen.scale(2, 2);
    press(pen, stamp(shapeOf(slot), 5, colour(`c${slot}`), null), 8, 8);
    return canvas;
  }
}

/** The slider of the least probability, from the smallest threshold to 1. */
export class Threshold {
  constructor(filters, changed) {
    this.filters = filters;
    this.changed = changed;
    byId("q").addEventListener("input", (event) => this.set(Number(event.target.value)));
    byId("q-number").addEventListener("change", (event) => this.set(Number(event.target.value)));
  }

  set(value) {
    this.filters.least = Math.min(1, Math.max(this.low, Number.isNaN(value) ? this.low : value));
    this.show();
    this.changed();
  }

  show() {
    byId("q").value = String(this.filters.least);
    byId("q-number").value = String(Number(this.filters.least.toFixed(4)));
  }

  draw(store, dark) {
    byId("uncertain").hidden = !store.thresholds.length;
    if (!store.thresholds.length) {
      this.filters.least = 0;
      return;
    }
    const said = JSON.stringify([store.thresholds, dark]);
    if (said === this.said) return;
    const first = this.said === undefined;
    this.said = said;
    [this.low] = store.thresholds;
    for (const id of ["q", "q-number"]) Object.assign(byId(id), { min: String(this.low), max: "1", step: "any" });
    byId("q-marks").replaceChildren(...store.thresholds.map((value) => make("option", { value: String(value) })));
    byId("q-ticks").replaceChildren(...store.thresholds.map((value) => {
      const mark = make("i", { title: String(value) }, String(value));
      mark.style.left = `${this.low < 1 ? (100 * (value - this.low)) / (1 - this.low) : 0}%`;
      return mark;
    }));
    const stops = Array.from({ length: 9 }, (_, i) => ramp(i / 8, dark));
    byId("q-bar").style.background = `linear-gradient(90deg, ${stops.join(",")})`;
    setText(byId("q-low"), String(this.low));
    if (first || this.filters.least < this.low) this.filters.least = this.low;
    this.show();
  }
}
