// The board: one table whose left half is the tree and whose right half is the timeline of the same rows.
import { SIGNS, age, bars, clock, isBusy, listed, nameOf, short } from "./model.js";

const ROW = 24;
const FOLDED_FROM = 300, FOLDED_DEPTH = 3;
const STEPS = [1e3, 5e3, 1e4, 3e4, 6e4, 3e5, 6e5, 18e5, 36e5, 216e5, 864e5];
const $ = id => document.getElementById(id);

export class Board {
  constructor(page) {
    this.page = page;
    this.list = [];
    this.opened = new Set();
    this.shut = new Set();
    this.lanes = new Map();
    this.mail = [];
    this.past = new Map();
    this.pool = [];
    this.scroll = $("scroll");
    this.scroll.addEventListener("scroll", () => page.draw(true));
  }

  get left() { return parseInt(getComputedStyle(document.documentElement).getPropertyValue("--left"), 10); }

  layOut() {
    const { page } = this, many = page.model.rows.length > FOLDED_FROM, find = page.find.toLowerCase(), live = page.at === null, working = page.onlyWorking && live;
    const wanted = (find || working) && (row => (!find || nameOf(row).toLowerCase().includes(find) || row.uuid.startsWith(page.find) || live && row.state === find)
      && (!working || isBusy(row.state)));
    this.list = listed(page.model.tree(page.at, page.span), {
      isOpen: (row, depth) => this.opened.has(row.uuid) || !(this.shut.has(row.uuid) || many && depth >= FOLDED_DEPTH),
      wanted,
    });
    $("rows").style.height = this.list.length * ROW + "px";
    $("rows").setAttribute("aria-rowcount", this.list.length);
    const empty = $("empty"), alone = this.list.length <= 1;
    empty.hidden = !alone;
    empty.textContent = !alone ? "" : wanted ? "No agent is found by that." : page.at !== null ? "Nobody else lived then."
      : "Only agent 0 is here. Prompt it, or fork it: its children appear as they are born.";
  }

  visible() {
    const from = Math.max(0, Math.floor(this.scroll.scrollTop / ROW) - 2);
    return [from, Math.min(this.list.length, from + Math.ceil(this.scroll.clientHeight / ROW) + 5)];
  }

  element(i) {
    if (this.pool[i]) return this.pool[i];
    const row = document.createElement("div"), cells = {};
    row.className = "row"; row.setAttribute("role", "row"); row.id = "row" + i;
    for (const name of ["name", "rate", "sign", "mail", "cost"]) {
      const cell = document.createElement("div");
      cell.className = name === "name" ? "name" : "num " + (name === "sign" ? "seconds" : name); cell.setAttribute("role", "gridcell");
      cells[name] = cell; row.append(cell);
    }
    [cells.fold, cells.mark, cells.text] = ["i", "b", "span"].map(tag => { const part = document.createElement(tag); cells.name.append(part); return part; });
    row.cells = cells;
    row.addEventListener("click", event => event.target === cells.fold ? this.toggle(row.entry) : this.page.choose(row.entry.row.uuid));
    $("rows").append(row);
    return this.pool[i] = row;
  }

  drawRows() {
    const { page } = this, [from, to] = this.visible(), now = page.moment(), live = page.at === null;
    for (let i = from; i < to; i += 1) {
      const entry = this.list[i], { row } = entry, element = this.element(i - from), { cells } = element;
      const state = live ? row.state : this.past.get(row.uuid)?.state ?? "idle";
      element.entry = entry; element.hidden = false;
      element.style.transform = `translateY(${i * ROW}px)`;
      element.classList.toggle("dead", state === "dead");
      const attributes = { selected: row.uuid === page.chosen, level: entry.depth + 1, setsize: entry.of, posinset: entry.place, rowindex: i + 1 };
      for (const [name, value] of Object.entries(attributes)) element.setAttribute("aria-" + name, value);
      if (entry.children) element.setAttribute("aria-expanded", entry.open); else element.removeAttribute("aria-expanded");
      element.setAttribute("aria-label", `${nameOf(row)}, ${state}` + (live && row.unread ? `, ${row.unread} unread` : ""));
      cells.name.style.paddingLeft = 10 + Math.min(entry.depth, 12) * 14 + "px";
      set(cells.fold, entry.children ? (entry.open ? "▾" : "▸") : "");
      set(cells.mark, SIGNS[state] || "○"); cells.mark.className = "sign s-" + state;
      set(cells.text, nameOf(row) + (entry.children && !entry.open ? ` · ${entry.children}` : ""));
      set(cells.rate, live && row.rate ? String(row.rate) : "");
      set(cells.sign, live && isBusy(row.state) && row.sign ? age((now - row.sign) / 1000) : "");
      set(cells.mail, live && row.unread ? "✉ " + row.unread : "");
      set(cells.cost, live ? short(row.tokens) : "");
      if (row.uuid === page.chosen) $("rows").setAttribute("aria-activedescendant", element.id);
    }
    for (let i = to - from; i < this.pool.length; i += 1) this.pool[i].hidden = true;
  }

  drawLanes() {
    const { page, scroll } = this, width = Math.max(50, scroll.clientWidth - this.left), height = scroll.clientHeight, canvas = $("lanes");
    canvas.style.marginTop = -$("rows").offsetHeight + "px";
    const end = page.moment() + (page.at === null ? 0 : page.span * 0.15), start = end - page.span, now = page.model.now();
    const x = at => (at - start) / page.span * width, colours = palette(), pen = paint(canvas, width, height);
    const groups = new Map(), place = new Map(), births = [], add = (kind, box) => groups.has(kind) ? groups.get(kind).push(box) : groups.set(kind, [box]);
    const [from, to] = this.visible();
    for (let i = from; i < to; i += 1) {
      const { row } = this.list[i], y = i * ROW - scroll.scrollTop, lane = this.lanes.get(row.uuid);
      place.set(row.uuid, y + ROW / 2);
      const a = Math.max(0, x(row.born)), b = Math.min(width, x(row.ended ?? Math.min(now, end)));
      pen.fillStyle = colours.lane; if (b > a) pen.fillRect(a, y + 11, b - a, 2);
      if (!lane) continue;
      if (lane.dense) { dense(pen, lane.dense, width, y, colours.think); continue; }
      if (page.at === null && row.state === "streaming" && lane.marks.length) {
        const since = Math.max(0, x(Math.max(lane.marks.at(-1)[2], now - 2500)));
        add("streaming", [since, y + 5, Math.max(2, x(now) - since), 14]);
      }
      for (const [kind, t0, t1] of bars(lane.marks, Math.min(now, end))) {
        if (kind === "fork") { births.push([x(t0), y + ROW / 2, t1]); continue; }
        if (t1 < start || t0 > end) continue;
        const left = Math.max(0, x(t0));
        add(kind, [left, y + 6, Math.max(1.5, Math.min(width, x(t1)) - left), 12]);
      }
    }
    const fills = { thinking: colours.think, tool: colours.tool, waiting: colours.wait, asking: colours.waits, failed: colours.failed, streaming: colours.accent };
    for (const [kind, fill] of Object.entries(fills)) {
      if (!groups.has(kind)) continue;
      pen.beginPath(); for (const box of groups.get(kind)) pen.roundRect(...box, 2);
      pen.globalAlpha = kind === "waiting" ? 0.5 : 0.9; pen.fillStyle = fill; pen.fill();
    }
    pen.globalAlpha = 0.6; pen.strokeStyle = colours.past; pen.beginPath();
    const trunks = new Map();  // children that were born together have one trunk: many curves would be a dark bar
    for (const [x0, y0, child] of births) {
      const y1 = place.get(child);
      if (y1 === undefined) continue;
      const key = `${y0} ${Math.round(x0 / 6)}`, trunk = trunks.get(key) ?? { x: Math.round(x0) + 0.5, y0, far: y0 };
      trunks.set(key, trunk);
      if (Math.abs(y1 - y0) > Math.abs(trunk.far - y0)) trunk.far = y1;
      pen.moveTo(trunk.x, y1 - Math.sign(y1 - y0) * 7); pen.quadraticCurveTo(trunk.x, y1, trunk.x + 8, y1);
    }
    for (const { x, y0, far } of trunks.values()) { pen.moveTo(x, y0); pen.lineTo(x, far - Math.sign(far - y0) * 7); }
    pen.stroke(); pen.strokeStyle = colours.waits; pen.beginPath();
    for (const [to_, , by, kind, at] of this.mail) {
      const y1 = place.get(to_), y0 = place.get(by), x0 = x(at);
      if (y1 === undefined || x0 < 0 || x0 > width || kind === "prompt") continue;
      if (y0 !== undefined && y0 !== y1) { pen.moveTo(x0 - 7, y0); pen.bezierCurveTo(x0 + 1, y0, x0 - 9, y1, x0 - 1, y1); }
      pen.moveTo(x0 + 2, y1); pen.arc(x0, y1, 2.5, 0, 7);
    }
    pen.stroke(); pen.globalAlpha = 1;
    if (page.at !== null) { pen.fillStyle = colours.failed; pen.fillRect(x(page.at), 0, 2, height); }
    this.drawTicks(x, start, end, width, colours);
  }

  drawTicks(x, start, end, width, colours) {
    const canvas = $("ticks"), box = canvas.parentNode, pen = paint(canvas, box.clientWidth, box.clientHeight);
    const step = STEPS.find(one => one / this.page.span * width > 80) || STEPS.at(-1);
    pen.font = "11px system-ui"; pen.fillStyle = colours.past;
    for (let at = Math.ceil(start / step) * step; at < end && x(at) < width - 44; at += step) {
      pen.fillText(clock(at, step < 6e4), x(at) + 4, 17); pen.fillRect(x(at), 8, 1, 12);
    }
  }

  toggle(entry) {
    if (!entry?.children) return;
    const from = entry.open ? this.opened : this.shut, to = entry.open ? this.shut : this.opened;
    from.delete(entry.row.uuid); to.add(entry.row.uuid);
    this.page.reshape();
  }

  place() { return this.list.findIndex(entry => entry.row.uuid === this.page.chosen); }

  move(by) {
    if (!this.list.length) return;
    const i = Math.max(0, Math.min(this.list.length - 1, this.place() + by));
    this.page.choose(this.list[i].row.uuid);
    this.reveal(i);
  }

  reveal(i = this.place()) {
    const top = i * ROW, { scroll } = this;
    if (i < 0) return;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    else if (top + ROW > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + ROW - scroll.clientHeight;
  }

  heard(marks) {
    if (this.page.at !== null) return;  // the lanes of a past time have a gap up to now
    for (const [uuid, ...mark] of marks) {
      const lane = this.lanes.get(uuid);
      if (lane && !lane.dense && mark[0] > (lane.marks.at(-1)?.[0] ?? 0)) lane.marks.push(mark);
    }
  }

  window() {
    const { page } = this, [from, to] = this.visible(), end = Math.ceil(page.moment() + (page.at === null ? 5000 : page.span * 0.15));
    return { agents: this.list.slice(from, to).map(entry => entry.row.uuid).join(","), from: Math.floor(end - page.span * 1.1), to: end };
  }

  take({ lanes, mail }, past) {
    for (const { agent, marks, dense } of lanes) {
      const lane = this.lanes.get(agent), last = marks.at(-1)?.[0] ?? 0;
      const heard = !lane || lane.dense || dense || this.page.at !== null ? [] : lane.marks.filter(mark => mark[0] > last);
      this.lanes.set(agent, { marks: [...marks, ...heard], dense });  // what came while this was on its way stays
    }
    this.mail = mail;
    this.past = new Map(Object.entries(past));
  }
}

export function paint(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    canvas.style.width = width + "px"; canvas.style.height = height + "px";
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

export function palette() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(["ink", "past", "accent", "waits", "failed", "line", "paper", "think", "tool", "wait", "lane"].map(name => [name, style.getPropertyValue("--" + name).trim()]));
}

function dense(pen, counts, width, y, colour) {
  const most = Math.max(1, ...counts), step = width / counts.length;
  pen.fillStyle = colour;
  counts.forEach((count, i) => { if (count) { pen.globalAlpha = 0.25 + 0.75 * count / most; pen.fillRect(i * step, y + 5, Math.max(1, step - 0.5), 14); } });
  pen.globalAlpha = 1;
}

function set(node, text) { if (node.textContent !== text) node.textContent = text; }
