// The page: what is chosen, which time is shown, keys; and when what is drawn.
import { Board, paint, palette } from "./board.js";
import { Model, SIGNS, clock, isBusy } from "./model.js";
import { Refused, Stream, get, post } from "./net.js";
import { Panels } from "./panels.js";
import { Reader } from "./reader.js";

const $ = id => document.getElementById(id);
const SPANS = [15e3, 6e4, 3e5, 9e5, 36e5, 216e5, 864e5, 6048e5];
const KEYS = [
  ["↑ ↓ j k", "the agent above, below"], ["← →", "fold, unfold"], ["Enter", "read it"], ["/", "find an agent"], ["w", "only those who work"],
  ["p", "prompt it"], ["f", "fork from the chosen message, or its end"], ["d", "compare with the next one that is chosen"],
  ["y n a", "decide on the call that waits: yes, no, always"], ["i", "the inbox: all that waits for you"], ["[ ]", "one message back, forward in time"], ["l", "back to now"],
  ["+ −", "a shorter, longer window"], ["t", "dark, light"], ["?", "these keys"],
];

class Page {
  constructor() {
    this.model = new Model();
    this.chosen = null;
    this.at = null;
    this.span = 12e4;
    this.find = "";
    this.onlyWorking = false;
    this.asking = new Set();
    this.activity = [];
    this.grain = 1000;
    this.dirty = true;
    this.board = new Board(this);
    this.reader = new Reader(this);
    this.panels = new Panels(this);
    this.stream = new Stream({
      rows: changes => this.changed(changes),
      message: message => { if (this.at === null) this.reader.append(message); this.draw(); },
      piece: piece => this.at === null && this.reader.write(piece),
      cut: cut => this.reader.cut(cut),
      notice: ({ text }) => this.notice(text),
      reset: () => this.start(),
      lost: () => this.notice("The observer does not answer. It is tried again."),
      found: () => this.notice(""),
    });
  }

  moment() { return this.at ?? this.model.now(); }

  async start() {
    const table = await get("tree");
    this.model.take(table);
    this.asking = new Set(this.model.rows.filter(row => row.state === "asking").map(row => row.uuid));
    $("where").textContent = table.host ? `${table.database} · ${table.host}` : table.database;
    $("shell").hidden = !table.shell;
    if (table.shell) $("shell").href = table.shell;
    const [, uuid, , at] = /^#\/([^@]+)(@(\d+))?$/.exec(location.hash) ?? [];
    for (const one of ["send", "fork", "text"]) $(one).disabled = this.model.readOnly;
    if (at) this.at = Number(at);
    this.showTime();
    this.shape = true;
    this.render();
    await this.choose(this.model.byUuid.has(uuid) ? uuid : this.model.rows[0]?.uuid, true);
    this.board.reveal();
    await this.fetch();
    this.render();
    document.documentElement.dataset.ready = "1";
    this.panels.ask();
    this.measure();
  }

  // What came

  changed(changes) {
    const asked = changes.rows.some(row => row.state === "asking" || this.asking.has(row.uuid));
    if (this.model.change(changes)) this.shape = true;
    this.board.heard(changes.marks);
    for (const [, , , at] of changes.marks) this.count(at);
    for (const { uuid, state } of changes.rows) if (state !== undefined) this.asking[state === "asking" ? "add" : "delete"](uuid);
    if (asked) this.panels.ask();
    this.draw();
  }

  notice(text) { $("notice").hidden = !text; $("notice").textContent = text; }

  // What is chosen

  async choose(uuid, again = false) {
    if (!uuid || uuid === this.chosen && !again) return;
    const diff = this.panels.name === "diff" && this.chosen;
    this.chosen = uuid;
    this.address();
    this.then = this.at === null ? undefined : (await get("at", { time: Math.floor(this.at), agents: uuid }))[uuid];
    const last = await this.reader.open(uuid, this.then?.position).catch(error => { this.notice(error.message); return null; });
    if (last !== null && this.at === null) this.stream.open({ epoch: this.model.epoch, version: this.model.version, agents: [uuid], after: [last] });
    if (diff) this.panels.show("diff");
    this.panels.below();
    this.draw();
  }

  address() { history.replaceState(null, "", `#/${this.chosen}` + (this.at === null ? "" : `@${Math.floor(this.at)}`)); }

  // Which time is shown

  async go(at) {
    this.at = at;
    this.showTime();
    this.reshape();
    await this.choose(this.chosen, true);
    await this.fetch();
  }

  // The slider and the colours of the past: however the time came, by a key, the slider or the address.
  showTime() {
    const live = this.at === null;
    document.body.classList.toggle("past", !live);
    $("live").setAttribute("aria-pressed", live); $("live").textContent = live ? "● live" : "back to now";
    $("working").disabled = !live;
    this.placeThumb();
  }

  placeThumb() {
    if (this.drags) return;
    const [a, b] = this.range(), time = $("time");
    time.value = this.at === null ? 10000 : Math.round((this.at - a) / Math.max(1, b - a) * 10000);
    time.setAttribute("aria-valuetext", this.at === null ? "now" : clock(this.at));
  }

  range() { const first = this.model.rows[0]?.born ?? this.model.now(); return [first, this.model.now()]; }

  // A key that is held down goes on from where the step before has led.
  walk(by) { this.steps = (this.steps ?? Promise.resolve()).then(() => this.step(by)).catch(error => this.notice(error.message)); }

  async step(by) {
    const { reader, chosen } = this, now = Math.floor(this.moment());
    const found = await get("log", { agent: chosen, count: 40, until: reader.last + (by < 0 ? 0 : 40) }).catch(() => []);
    const times = found.filter(message => message.agent === chosen).map(message => message.at);
    const next = by < 0 ? times.filter(at => at < now).at(-1) : times.find(at => at > now);
    if (next !== undefined) await this.go(next); else if (by > 0) await this.go(null);
  }

  zoom(by) {
    const place = SPANS.findIndex(span => span >= this.span);
    this.span = SPANS[Math.max(0, Math.min(SPANS.length - 1, place + by))];
    this.draw(true);
  }

  // What is done

  async act(what, body) {
    try { return await post(what, body); } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.notice(error.message);
      return undefined;
    }
  }

  async prompt() {
    const text = $("text").value.trim();
    if (!text || !this.chosen) return;
    const row = this.model.byUuid.get(this.chosen);
    if (await this.act(isBusy(row?.state) ? "steer" : "prompt", { agent: this.chosen, text }) !== undefined) $("text").value = "";
  }

  async fork() {
    const at = this.reader.position ?? (this.at === null ? undefined : this.reader.last), text = $("text").value.trim();
    const child = await this.act("fork", { of: this.chosen, ...(at === undefined ? {} : { at }), ...(text ? { prompt: text } : {}) });
    if (!child) return;
    $("text").value = "";
    this.awaited = child.agent;
    if (this.at !== null) await this.go(null);
  }

  // When what is drawn

  reshape() { this.shape = true; this.draw(true); }

  draw(window = false) { this.dirty = true; if (window) this.stale = this.restrip = true; }

  render() {
    if (this.shape) { this.board.layOut(); this.shape = false; }
    if (this.awaited && this.model.byUuid.has(this.awaited)) { const child = this.awaited; this.awaited = null; this.choose(child).then(() => this.board.reveal()); }
    this.board.drawRows(); this.board.drawLanes(); this.drawHeads();
    if (this.restrip || performance.now() - (this.stripped ?? 0) > 1000) { this.restrip = false; this.stripped = performance.now(); this.drawStrip(); this.drawCounts(); }
  }

  drawCounts() {
    const counts = new Map();
    for (const row of this.model.rows) if (row.state !== "dead") counts.set(row.state, (counts.get(row.state) ?? 0) + 1);
    const shown = [["streaming", "answering"], ["thinking", "thinking"], ["tool", "at tools"], ["asking", "ask"], ["idle", "idle"]];
    const lived = this.at === null ? 0 : this.model.rows.filter(row => row.born <= this.at && (row.ended === null || row.ended > this.at)).length;
    const list = this.at !== null ? `${lived} lived` : shown.filter(([state]) => counts.get(state)).map(([state, word]) => `${SIGNS[state]} ${counts.get(state)} ${word}`).join("\n");
    if (list !== this.heads) {
      this.heads = list;
      $("counts").replaceChildren(...list.split("\n").filter(Boolean).map(text => { const item = document.createElement("li"); item.textContent = text; return item; }));
    }
  }

  drawHeads() {
    const row = this.model.byUuid.get(this.chosen);
    const state = this.at === null ? row?.state : this.then?.state;
    this.reader.facts(row, state, this.at === null);
    $("who-sign").textContent = SIGNS[state] ?? ""; $("who-sign").className = state ? "s-" + state : "";
    $("when").textContent = clock(this.moment());
    $("span").textContent = this.span < 6e4 ? this.span / 1e3 + " s" : this.span < 36e5 ? this.span / 6e4 + " min" : this.span / 36e5 + " h";
  }

  drawStrip() {
    this.placeThumb();
    const canvas = $("strip"), width = canvas.parentNode.clientWidth, height = 44, pen = paint(canvas, width, height), colours = palette();
    const [a, b] = this.range(), x = at => (at - a) / Math.max(1, b - a) * width, many = 240, alive = new Float64Array(many + 1);
    for (const row of this.model.rows) {
      const from = Math.ceil((row.born - a) / Math.max(1, b - a) * many), to = row.ended === null ? many : Math.floor((row.ended - a) / Math.max(1, b - a) * many);
      if (from <= many) alive[Math.max(0, from)] += 1;
      if (to < many) alive[Math.max(0, to + 1)] -= 1;
    }
    let top = 1; for (let i = 1; i <= many; i += 1) { alive[i] += alive[i - 1]; top = Math.max(top, alive[i]); }
    pen.fillStyle = colours.lane; pen.beginPath(); pen.moveTo(0, height);
    for (let i = 0; i <= many; i += 1) pen.lineTo(i / many * width, height - alive[i] / top * (height - 6));
    pen.lineTo(width, height); pen.fill();
    const most = Math.max(1, ...this.activity.map(one => one[1]));
    pen.fillStyle = colours.think;
    for (const [at, count] of this.activity) { const tall = Math.sqrt(count / most) * (height - 10); pen.fillRect(x(at), height - tall, Math.max(1, this.grain / Math.max(1, b - a) * width - 0.5), tall); }
    const end = this.moment(); pen.strokeStyle = colours.past; pen.strokeRect(Math.max(0.5, x(end - this.span)), 0.5, Math.max(3, x(end) - Math.max(0, x(end - this.span))) - 1, height - 1);
  }

  async fetch() {
    if (this.fetching) return;
    this.fetching = true; this.stale = false;
    try {
      const window = this.board.window();
      if (!window.agents) return;
      const [found, past] = await Promise.all([get("lanes", window), this.at === null ? {} : get("at", { time: Math.floor(this.at), agents: window.agents })]);
      this.board.take(found, past);
      this.dirty = true;
    } catch (error) { this.notice(error.message); } finally { this.fetching = false; }
  }

  async measure() {
    const [a, b] = this.range();
    this.grain = Math.max(1000, Math.ceil((b - a) / 240));
    this.activity = await get("activity", { step: this.grain }).catch(() => []);
    this.draw();
  }

  count(at) {
    const slot = Math.floor(at / this.grain) * this.grain, last = this.activity.at(-1);
    if (last?.[0] === slot) last[1] += 1; else if (slot > (last?.[0] ?? 0)) this.activity.push([slot, 1]);
  }

  run() {
    let beats = 0;
    setInterval(() => {
      beats += 1;
      if (document.hidden) return;
      if (this.dirty || beats % 16 === 0) { this.dirty = false; this.render(); }
      if (this.stale && beats % 3 === 0 || beats % 160 === 0) this.fetch();
    }, 62);
    setInterval(() => document.hidden || this.measure(), 60000);
  }
}

const page = new Page();

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, textarea, select");
  if (typing) { if (event.key === "Escape") { event.target.blur(); $("rows").focus(); } return; }
  const entry = page.board.list[page.board.place()];
  const acts = {
    ArrowDown: () => page.board.move(1), j: () => page.board.move(1), ArrowUp: () => page.board.move(-1), k: () => page.board.move(-1),
    PageDown: () => page.board.move(20), PageUp: () => page.board.move(-20), Home: () => page.board.move(-1e9), End: () => page.board.move(1e9),
    ArrowLeft: () => entry?.open && page.board.toggle(entry), ArrowRight: () => entry && !entry.open && page.board.toggle(entry),
    Enter: () => { page.panels.show("talk"); $("talk").focus(); }, "/": () => $("find").focus(), w: () => $("working").click(),
    p: () => $("text").focus(), f: () => page.fork(), d: () => { page.panels.other = page.chosen; page.panels.show("diff"); },
    y: () => page.panels.press(0), n: () => page.panels.press(1), a: () => page.panels.press(2), i: () => page.panels.show("questions"),
    "[": () => page.walk(-1), "]": () => page.walk(1), l: () => page.go(null), "+": () => page.zoom(-1), "-": () => page.zoom(1),
    t: () => $("theme").click(), "?": () => $("help").click(),
  };
  if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
}

function dress(theme) { document.documentElement.dataset.theme = theme; localStorage.setItem("ikigai-theme", theme); page.draw(); }

document.addEventListener("keydown", keys);
document.addEventListener("visibilitychange", () => document.hidden ? page.stream.close() : page.start());
addEventListener("resize", () => page.draw(true));
$("find").addEventListener("input", () => { page.find = $("find").value; page.reshape(); });
$("working").addEventListener("click", () => { page.onlyWorking = !page.onlyWorking; $("working").setAttribute("aria-pressed", page.onlyWorking); page.reshape(); });
$("theme").addEventListener("click", () => dress(document.documentElement.dataset.theme === "light" ? "dark" : "light"));
$("help").addEventListener("click", () => $("keys").showModal());
$("asked").addEventListener("click", () => page.panels.show("questions"));
$("live").addEventListener("click", () => page.go(null));
$("in").addEventListener("click", () => page.zoom(-1)); $("out").addEventListener("click", () => page.zoom(1));
$("time").addEventListener("input", () => { page.drags = true; const [a, b] = page.range(), at = a + (b - a) * $("time").value / 10000; $("when").textContent = clock(at); });
$("time").addEventListener("change", () => { page.drags = false; const [a, b] = page.range(), v = Number($("time").value); page.go(v >= 10000 ? null : a + (b - a) * v / 10000); });
$("speak").addEventListener("submit", event => { event.preventDefault(); page.prompt(); });
$("text").addEventListener("keydown", event => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); page.prompt(); } });
$("fork").addEventListener("click", () => page.fork());
const list = document.createElement("dl");
for (const [key, what] of KEYS) { const dt = document.createElement("dt"), dd = document.createElement("dd"); dt.textContent = key; dd.textContent = what; list.append(dt, dd); }
const closing = document.createElement("form"), close = document.createElement("button");
closing.method = "dialog"; close.textContent = "Close"; closing.append(list, close); $("keys").append(closing);
document.documentElement.dataset.theme = localStorage.getItem("ikigai-theme") ?? (matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark");
page.start().then(() => page.run()).catch(error => page.notice(error.message));
