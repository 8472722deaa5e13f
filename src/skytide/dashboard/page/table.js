// The rows as a table: any column sorts, a text filters, one page at a time, arrows and Enter.

import { byId, make, sayValue, sayTime, setText, sayCount } from "./text.js";

const PAGE = 25;
const byWords = new Intl.Collator("en", { numeric: true });

function compare(a, b) {
  if (a === b) return 0;
  if (a === null) return 1;
  if (b === null) return -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return byWords.compare(String(a), String(b));
}

export class Table {
  constructor(open) {
    this.open = open;
    this.head = byId("table").tHead;
    this.body = byId("table").tBodies[0];
    this.sort = { name: "id", down: false };
    this.page = 0;
    this.words = "";
    this.active = null;
    byId("filter").addEventListener("input", (event) => {
      this.words = event.target.value.trim().toLowerCase();
      this.page = 0;
      this.draw(this.rows, this.store);
    });
    byId("page-back").addEventListener("click", () => this.turn(this.page - 1));
    byId("page-on").addEventListener("click", () => this.turn(this.page + 1));
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => {
      const line = event.target.closest("tr");
      if (line?.dataset.key !== undefined) this.open(line.dataset.key);
    });
    this.body.addEventListener("focusin", (event) => { this.active = event.target.closest("tr")?.dataset.key ?? null; });
  }

  fields(store) {
    const fields = [{ name: "id", title: "id", get: (row) => row.id }];
    store.columns.forEach((column, i) => fields.push({ name: `column ${i}`, title: column.name, goal: column.goal, get: (row) => row.values[i] }));
    if (store.thresholds.length) fields.push({ name: "probability", title: "probability", get: (row) => row.probability });
    if (store.kind !== "skyline") fields.push({ name: "since", title: "since", get: (row) => row.since, say: (value) => sayTime(value, store.clock) });
    return fields;
  }

  headings(store) {
    const names = JSON.stringify([store.kind, store.columns, store.thresholds.length > 0]);
    if (names !== this.names) {
      this.names = names;
      this.columns = this.fields(store);
      if (!this.columns.some((field) => field.name === this.sort.name)) this.sort = { name: "id", down: false };
      const cells = this.columns.map((field) => {
        const button = make("button", { type: "button" }, field.title, make("span", { "aria-hidden": "true" }));
        button.addEventListener("click", () => this.order(field.name));
        return make("th", { scope: "col" }, button);
      });
      this.head.replaceChildren(make("tr", {}, ...cells));
    }
    this.columns.forEach((field, i) => {
      const cell = this.head.rows[0].cells[i];
      const chosen = field.name === this.sort.name;
      const number = field.name === "since" || field.name === "probability" || (field.name !== "id" && this.rows.length > 0 && typeof field.get(this.rows[0]) === "number");
      cell.className = number ? "number" : "";
      cell.setAttribute("aria-sort", chosen ? (this.sort.down ? "descending" : "ascending") : "none");
      setText(cell.querySelector("span"), chosen ? (this.sort.down ? " ▾" : " ▴") : "");
    });
  }

  order(name) {
    this.sort = { name, down: this.sort.name === name && !this.sort.down };
    this.page = 0;
    this.draw(this.rows, this.store);
  }

  /** Draws one page of the rows. Sorting: O(n log n). */
  draw(rows, store) {
    if (!store) return;
    this.rows = rows;
    this.store = store;
    this.headings(store);
    const field = this.columns.find((one) => one.name === this.sort.name);
    const turn = this.sort.down ? -1 : 1;
    const found = this.words ? rows.filter((row) => this.matches(row)) : rows;
    const keyed = found.map((row) => [field.get(row), row]);
    this.found = keyed.sort((a, b) => turn * compare(a[0], b[0]) || (a[1].key < b[1].key ? -1 : 1)).map(([, row]) => row);
    this.page = Math.min(Math.max(0, this.page), this.pages() - 1);
    this.lines();
    setText(byId("table-count"), this.words ? `${sayCount(found.length, "row")} of ${rows.length}` : sayCount(found.length, "row"));
    setText(byId("page-note"), `Page ${this.page + 1} of ${this.pages()}`);
    byId("page-back").disabled = this.page === 0;
    byId("page-on").disabled = this.page >= this.pages() - 1;
    byId("page-back").parentElement.hidden = this.pages() === 1;
  }

  pages() {
    return Math.max(1, Math.ceil(this.found.length / PAGE));
  }

  matches(row) {
    return [row.id, ...row.values].some((value) => value !== null && String(value).toLowerCase().includes(this.words));
  }

  /** Lines of the page are used again, so that focus stays where it is. */
  lines() {
    const shown = this.found.slice(this.page * PAGE, (this.page + 1) * PAGE);
    const focused = this.body.contains(document.activeElement) ? this.active : null;
    const width = this.columns.length;
    while (this.body.rows.length > shown.length) this.body.deleteRow(-1);
    while (this.body.rows.length < shown.length) this.body.insertRow();
    shown.forEach((row, i) => {
      const line = this.body.rows[i];
      if (line.cells.length !== width) line.replaceChildren(make("th", { scope: "row" }, make("button", { type: "button" })), ...this.columns.slice(1).map(() => make("td")));
      line.dataset.key = row.key;
      line.dataset.slot = String(this.store.slot(row.group));
      setText(line.cells[0].firstChild, row.id);
      for (let j = 1; j < width; j++) {
        const value = this.columns[j].get(row);
        setText(line.cells[j], (this.columns[j].say ?? sayValue)(value));
        line.cells[j].className = this.head.rows[0].cells[j].className;
      }
    });
    let stop = shown.findIndex((row) => row.key === (focused ?? this.active));
    if (stop < 0) stop = 0;
    [...this.body.rows].forEach((line, i) => { line.cells[0].firstChild.tabIndex = i === stop ? 0 : -1; });
    if (focused !== null && shown.length && shown[stop].key === focused) this.body.rows[stop].cells[0].firstChild.focus({ preventScroll: true });
  }

  turn(page) {
    this.page = page;
    this.draw(this.rows, this.store);
  }

  /** Focus on a row by its place among all that were found, on whatever page it is. */
  focus(place) {
    const wanted = Math.min(Math.max(0, place), this.found.length - 1);
    if (wanted < 0) return;
    if (Math.floor(wanted / PAGE) !== this.page) this.turn(Math.floor(wanted / PAGE));
    this.active = this.found[wanted].key;
    this.lines();
    this.body.rows[wanted - this.page * PAGE].cells[0].firstChild.focus();
  }

  key(event) {
    const line = event.target.closest("tr");
    if (!line) return;
    const here = this.page * PAGE + line.sectionRowIndex;
    const places = { ArrowDown: here + 1, ArrowUp: here - 1, PageDown: here + PAGE, PageUp: here - PAGE, Home: 0, End: this.found.length - 1 };
    if (!(event.key in places)) return;
    event.preventDefault();
    this.focus(places[event.key]);
  }
}
