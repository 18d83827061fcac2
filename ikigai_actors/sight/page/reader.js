// The reader: the transcript of one agent, as it was written and as it is being written. Texts are text, never HTML.
import { clock, nameOf, short } from "./model.js";
import { markdown } from "./markdown.js";
import { get } from "./net.js";

const PAGE = 80, LONG = 20000;
const WORDS = { user: "prompt", steer: "word", assistant: "reply", tool_call: "call", tool_result: "result" };
const $ = id => document.getElementById(id);

export class Reader {
  constructor(page) {
    this.page = page;
    this.talk = $("talk");
    this.first = this.last = 0;
    this.piece = null;
    this.position = null;
    this.talk.addEventListener("scroll", () => { if (this.talk.scrollTop < 40) this.earlier(); });
  }

  async open(uuid, until) {
    const asked = this.asked = {}, messages = await get("log", { agent: uuid, count: PAGE, ...(until === undefined ? {} : { until }) });
    if (asked !== this.asked) return null;
    this.uuid = uuid; this.piece = null; this.position = null;
    this.calls = new Map();
    this.talk.replaceChildren(...messages.map(message => this.bubble(message, this.calls)));
    this.first = messages[0]?.id ?? 0; this.last = messages.at(-1)?.id ?? 0;
    this.talk.scrollTop = this.talk.scrollHeight;
    this.mark();
    return this.last;
  }

  async earlier() {
    if (this.loading || this.first <= 1) return;
    this.loading = true;
    try {
      const messages = await get("log", { agent: this.uuid, count: PAGE, until: this.first - 1 }), height = this.talk.scrollHeight;
      const calls = new Map();
      this.talk.prepend(...messages.map(message => this.bubble(message, calls)));
      this.first = messages[0]?.id ?? 1;
      this.talk.scrollTop += this.talk.scrollHeight - height;
    } finally { this.loading = false; }
  }

  append(message) {
    if (message.agent !== this.uuid || message.id <= this.last) return;
    const sticks = this.sticks();
    this.drop();
    this.last = message.id;
    this.talk.append(this.bubble(message, this.calls));
    if (sticks) this.talk.scrollTop = this.talk.scrollHeight;
  }

  write({ agent, at, text }) {
    if (agent !== this.uuid) return;
    const sticks = this.sticks();
    if (!this.piece || at === 0) {
      this.drop();
      this.piece = element("article", "m live");
      this.piece.append(element("small", "", "reply on its way"), element("p", ""));
      this.piece.text = "";
      this.talk.append(this.piece);
    }
    this.piece.text = this.piece.text.slice(0, at) + text;
    this.piece.lastChild.textContent = this.piece.text;
    if (sticks) this.talk.scrollTop = this.talk.scrollHeight;
  }

  cut({ agent }) { if (agent === this.uuid) this.drop(); }

  drop() { this.piece?.remove(); this.piece = null; }

  sticks() { return this.talk.scrollHeight - this.talk.scrollTop - this.talk.clientHeight < 60; }

  mark() {
    for (const one of this.talk.querySelectorAll(".here")) one.classList.remove("here");
    const chosen = this.talk.querySelector(`[data-id="${this.position}"]`);
    chosen?.classList.add("here");
    $("fork").textContent = this.position === null ? "Fork from here" : `Fork from ${this.position}`;
  }

  // `calls` has the arguments of the latest reply's calls, by their ids.
  bubble(message, calls) {
    const { id, kind, content, data, agent } = message, box = element("article", "m " + kind);
    box.dataset.id = id;
    if (agent !== this.uuid && agent !== this.page.chosen) box.classList.add("inherited");
    for (const call of data.calls || []) calls.set(call.id, call);
    const facts = [id, wordOf(kind, data), data.name, data.by && "by " + data.by, data.model?.replace(/:$/, ""), clock(message.at), data.usage && short(data.usage.output_tokens) + " tokens", data.is_error && "failed"];
    box.append(element("small", "", facts.filter(Boolean).join(" · ")));
    this.fill(box, kind, content, data, calls.get(data.tool_use_id));
    box.addEventListener("click", () => { this.position = this.position === id ? null : id; this.mark(); });
    return box;
  }

  fill(box, kind, content, data, call) {
    if (kind === "tool_call" || kind === "approval") {
      box.append(element("pre", "", call ? lineOf(call) : content));
      return;
    }
    if (kind === "fork") {
      box.append(element("p", "", data.child ? `forked ${this.page.model.name(data.child)}` : `forked from ${data.parent ? this.page.model.name(data.parent) : "another"}`));
      return;
    }
    const text = content || (kind === "output" ? JSON.stringify(data.output, null, 1) : "");
    if (text) box.append(kind === "assistant" && text.length <= LONG ? markdown(text) : long(kind, text));
    for (const one of data.calls || []) {
      const details = element("details", "");
      details.append(element("summary", "", `${one.name} ${lineOf(one)}`), element("pre", "", JSON.stringify(one.input, null, 1)));
      box.append(details);
    }
  }

  facts(row, state, live) {
    $("who").textContent = row ? nameOf(row) : "no agent";
    $("facts").textContent = !row ? "" : !live ? state ?? "" : [state, short(row.tokens) && short(row.tokens) + " tokens", row.usd && "$" + (row.usd / 1e6).toFixed(4)].filter(Boolean).join(" · ");
  }
}

function wordOf(kind, data) {
  if (kind === "approval") return data.approved ? "approved" : "asks";
  if (kind === "tool_result" && data.by) return "denied";
  return WORDS[kind] || kind;
}

// A call on a line: what bash runs, else the arguments.
function lineOf({ name, input }) {
  return name === "bash" && typeof input.command === "string" ? input.command : Object.keys(input).length ? JSON.stringify(input) : "";
}

function long(kind, text) {
  const mono = kind === "tool_call" || kind === "tool_result";
  if (text.length <= LONG) return element(mono ? "pre" : "p", "", text);
  const details = element("details", "");
  details.append(element("summary", "", `${short(text.length)} characters: ${text.slice(0, 80)}…`));
  details.addEventListener("toggle", () => { if (details.childNodes.length === 1) details.append(element("pre", "", text)); });
  return details;
}

export function element(tag, kind, text) {
  const node = document.createElement(tag);
  if (kind) node.className = kind;
  if (text !== undefined) node.textContent = text;
  return node;
}
