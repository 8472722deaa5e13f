// Meters, communication and the feed of changes.

import { byId, make, sayNumber, sayBytes, saySeconds, sayMoment, setText, sayCount } from "./text.js";

const KNOWN = [["size", "in the skyline", sayNumber], ["rows", "rows seen", sayNumber], ["rows_per_second", "rows / s", sayNumber], ["changes_per_second", "changes / s", sayNumber], ["latency", "latency", saySeconds], ["retained", "rows retained", sayNumber], ["changes", "changes", sayNumber]];

/** Numbers with small lines. */
export class Meters {
  constructor(box) {
    this.box = box;
    this.cards = new Map();
  }

  draw(store) {
    const known = KNOWN.filter(([name]) => name in store.meters);
    const others = Object.keys(store.meters).filter((name) => !KNOWN.some(([one]) => one === name));
    const all = [...known, ...others.slice(0, 12).map((name) => [name, name.replaceAll("_", " "), name.endsWith("seconds") ? saySeconds : sayNumber])];
    const names = all.map(([name]) => name).join("\n");
    if (names !== this.names) {
      this.names = names;
      this.cards = new Map(all.map(([name, title]) => [name, this.card(name, title)]));
      this.box.replaceChildren(...[...this.cards.values()].map((card) => card.box));
    }
    for (const [name, , say] of all) {
      const card = this.cards.get(name);
      const value = store.meters[name];
      setText(card.value, typeof value === "number" ? say(value) : String(value ?? "–"));
      const line = this.path(store.series[name] ?? []);
      if (card.path.getAttribute("d") !== line) card.path.setAttribute("d", line);
    }
  }

  card(name, title) {
    const value = make("dd");
    const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    picture.setAttribute("viewBox", "0 0 120 28");
    picture.setAttribute("preserveAspectRatio", "none");
    picture.setAttribute("aria-hidden", "true");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    picture.append(path);
    const box = make("div", { className: "meter" }, make("dt", {}, title), value, picture);
    box.dataset.meter = name;
    return { box, value, path };
  }

  /** The last values as a line in a box of 120 by 28. */
  path(values) {
    const last = values.slice(-120);
    const known = last.filter((value) => value !== null && Number.isFinite(value));
    if (known.length < 2) return "";
    const low = Math.min(...known);
    const high = Math.max(...known);
    let pen = "M";
    let text = "";
    last.forEach((value, i) => {
      if (value === null || !Number.isFinite(value)) {
        pen = "M";
        return;
      }
      const x = (i / (last.length - 1)) * 120;
      const y = high > low ? 26 - ((value - low) / (high - low)) * 24 : 14;
      text += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
      pen = "L";
    });
    return text;
  }
}

/** Messages and bytes against sending everything, and by kind. */
export class Ledger {
  draw(ledger) {
    byId("ledger-card").hidden = !ledger;
    const said = JSON.stringify(ledger);
    if (!ledger || said === this.said) return;
    this.said = said;
    const bars = [this.bar("Messages", ledger.messages, ledger.naive_messages, sayNumber), this.bar("Bytes", ledger.bytes, ledger.naive_bytes, sayBytes)];
    const kinds = [...(ledger.kinds ?? [])].sort((a, b) => b.bytes - a.bytes || b.messages - a.messages);
    const most = Math.max(1, ...kinds.map((kind) => kind.bytes));
    const lines = kinds.map((kind) => {
      const fill = make("span", { className: "fill" });
      fill.style.width = `${(100 * kind.bytes) / most}%`;
      return make("tr", {}, make("th", { scope: "row" }, kind.kind), make("td", {}, kind.way === "up" ? "↑ up" : kind.way === "down" ? "↓ down" : kind.way), make("td", { className: "number" }, sayNumber(kind.messages)), make("td", { className: "number" }, sayBytes(kind.bytes)), make("td", { className: "share", "aria-hidden": "true" }, fill));
    });
    const head = make("tr", {}, ...["kind", "way", "messages", "bytes"].map((word, i) => make("th", { scope: "col", className: i > 1 ? "number" : "" }, word)), make("td", { "aria-hidden": "true" }));
    const table = make("table", { className: "kinds" }, make("thead", {}, head), make("tbody", {}, ...lines));
    byId("ledger").replaceChildren(make("div", { className: "bars" }, ...bars), make("div", { className: "scroll", role: "region", tabIndex: 0, "aria-label": "Messages by kind" }, table));
  }

  bar(word, sent, all, say) {
    const fill = make("span", { className: "fill" });
    const part = typeof all === "number" && all > 0 ? sent / all : null;
    fill.style.width = `${Math.min(100, 100 * (part ?? 0))}%`;
    const text = part === null ? `${say(sent)} sent` : `${say(sent)} sent, ${sayNumber(part * 100)} % of the ${say(all)} that sending everything takes`;
    return make("div", { className: part > 1 ? "spent over" : "spent" }, make("p", {}, make("strong", {}, word), ` ${text}`), part === null ? null : make("div", { className: "track", "aria-hidden": "true" }, fill));
  }
}

/** The last changes, newest first. It holds still while it is read. */
export class Feed {
  constructor(list, open) {
    this.list = list;
    list.addEventListener("click", (event) => {
      const line = event.target.closest("li");
      if (line) open(line.dataset.key);
    });
    list.addEventListener("pointerenter", () => { this.held = true; });
    list.addEventListener("focusin", () => { this.held ||= list.querySelector(":focus-visible") !== null; });
    for (const name of ["pointerleave", "focusout"]) list.addEventListener(name, () => { this.held = list.querySelector(":focus-visible") !== null; });
  }

  draw(store) {
    if (this.held && this.list.childElementCount && !(this.title !== store.title)) {
      const waiting = store.heard - this.heard;
      setText(byId("feed-note"), waiting > 0 ? `held, ${sayCount(waiting, "newer one")}` : "");
      return;
    }
    this.title = store.title;
    this.heard = store.heard;
    setText(byId("feed-note"), store.changes.length ? "" : "None yet");
    const changes = [...store.changes].reverse();
    while (this.list.childElementCount > changes.length) this.list.lastChild.remove();
    while (this.list.childElementCount < changes.length) this.list.append(this.line());
    changes.forEach(([time, sign, key, id, threshold], i) => {
      const line = this.list.children[i];
      const [mark, word, name, when] = line.firstChild.children;
      line.dataset.key = key;
      line.dataset.sign = sign;
      setText(mark, sign === "+" ? "+" : "−");
      setText(word, sign === "+" ? "entered: " : "left: ");
      setText(name, id);
      setText(when, `${threshold === null || threshold === undefined ? "" : `at ${threshold}, `}${sayMoment(time, store.clock, store.time)}`);
    });
  }

  line() {
    const parts = [make("span", { className: "sign", "aria-hidden": "true" }), make("span", { className: "quiet" }), make("span", { className: "name" }), make("span", { className: "when" })];
    return make("li", {}, make("button", { type: "button" }, ...parts));
  }
}
