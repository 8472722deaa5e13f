// One row: its values, since when, its stays, what dominates it and what would bring it in.

import { byId, make, sayValue, sayTime, toValue, sayCount } from "./text.js";
import { toRow } from "./source.js";
import { goalWords } from "./scatter.js";
import { stayList } from "./history.js";

const MOST_DOMINATORS = 50;

export class Details {
  constructor(source, store) {
    this.source = source;
    this.store = store;
    this.box = byId("details");
    this.body = byId("details-body");
    byId("details-close").addEventListener("click", () => this.box.close());
    this.box.addEventListener("click", (event) => {
      if (event.target === this.box) this.box.close();
    });
  }

  async open(key, id = null) {
    this.key = key;
    const name = this.store.rows.get(key)?.id ?? id ?? key;
    byId("details-title").textContent = name;
    this.body.replaceChildren(make("p", { className: "note" }, "Asking …"));
    if (!this.box.open) this.box.showModal();
    let answer;
    try {
      answer = await this.source.explain(key);
    } catch (error) {
      if (this.key === key) this.body.replaceChildren(make("p", { role: "alert" }, error instanceof TypeError ? "The server does not answer." : `${error.message}`));
      return;
    }
    if (this.key === key) this.show(answer);
  }

  show(answer) {
    const { store } = this;
    byId("details-title").textContent = answer.id;
    const state = answer.inside ? "in the skyline" : "outside the skyline";
    const timeless = store.kind === "skyline"; // of a table
    const since = timeless || answer.since === null || answer.since === undefined ? "" : `, since ${sayTime(answer.since, store.clock)}`;
    const parts = [make("p", { className: "lead", role: "status" }, make("span", { className: `pill ${answer.inside ? "good" : ""}` }, state), since)];
    if (answer.summary) parts.push(make("p", {}, answer.summary));
    parts.push(this.values(answer));
    if (answer.smallest) parts.push(make("h3", {}, "Smallest change that brings it in"), make("p", { className: "callout" }, answer.smallest));
    if (answer.ways?.length) parts.push(make("h3", {}, "What would bring it in"), make("ul", { className: "plain" }, ...answer.ways.map((way) => make("li", {}, way))));
    if (answer.dominators?.length) parts.push(...this.dominators(answer.dominators));
    if (typeof answer.dominated === "number") parts.push(make("p", {}, `It dominates ${sayCount(answer.dominated, "row")}.`));
    if (answer.stays?.length && !timeless) parts.push(make("h3", {}, "Stays in the skyline"), stayList(answer.stays.slice(-50), store.clock, store.time ?? null));
    this.body.replaceChildren(...parts);
  }

  values(answer) {
    const { store } = this;
    const lines = (answer.values ?? []).map((value, i) => make("tr", {}, make("th", { scope: "row" }, store.columns[i]?.name ?? String(i)), make("td", { className: "number" }, sayValue(toValue(value))), make("td", { className: "note" }, goalWords(store.goals[i]))));
    const probability = store.rows.get(answer.key)?.probability ?? null;
    if (probability !== null) lines.push(make("tr", {}, make("th", { scope: "row" }, "probability"), make("td", { className: "number" }, sayValue(probability)), make("td")));
    return make("table", { className: "values" }, make("tbody", {}, ...lines));
  }

  dominators(raw) {
    const { store } = this;
    const items = raw.slice(0, MOST_DOMINATORS).map(toRow).map((row) => {
      const button = make("button", { type: "button", className: "link" }, row.id);
      button.addEventListener("click", () => this.open(row.key, row.id));
      const values = store.preference.map((i) => `${store.columns[i].name} ${sayValue(row.values[i])}`).join(", ");
      return make("li", {}, button, make("span", { className: "note" }, ` ${values}`));
    });
    return [make("h3", {}, `Dominated by ${sayCount(raw.length, "row")}`), make("ul", { className: "plain dominators" }, ...items)];
  }
}
