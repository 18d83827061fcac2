// What the page knows: rows, as the server tells them, and the tree that they were at any time. Nothing is drawn here.

export const SIGNS = {
  idle: "○", thinking: "◐", streaming: "●", tool: "▶", waiting: "◇", asking: "?", budget: "$", stopped: "‖",
  terminating: "‖", dead: "×",
};
const BUSY = new Set(["thinking", "streaming", "tool", "waiting", "asking", "budget"]);
const GOES_ON = "goes on";  // the label of a birth that goes on with a turn
export const isBusy = state => BUSY.has(state);

export class Model {
  constructor() {
    this.rows = [];
    this.byUuid = new Map();
    this.epoch = "";
    this.version = 0;
    this.skew = 0;
    this.readOnly = false;
  }

  take(table) {
    this.rows = table.rows.map(values => Object.fromEntries(table.columns.map((name, i) => [name, values[i]])));
    this.byUuid = new Map(this.rows.map(row => [row.uuid, row]));
    this.epoch = table.epoch;
    this.version = table.version;
    this.skew = table.now - Date.now();
    this.readOnly = table.read_only;
  }

  // Returns whether the tree has another shape.
  change(changes) {
    let shape = false;
    this.version = changes.version;
    for (const fields of changes.rows) {
      let row = this.byUuid.get(fields.uuid);
      if (!row) {
        row = {};
        this.rows.push(row);
        this.byUuid.set(fields.uuid, row);
        shape = true;
      }
      shape ||= ("supervisor" in fields) || ("ended" in fields) || ("name" in fields);
      Object.assign(row, fields);
    }
    return shape;
  }

  now() { return Date.now() + this.skew; }

  name(uuid) {
    const row = this.byUuid.get(uuid);
    return row ? nameOf(row) : uuid.slice(0, 8);
  }

  // Who lives at a time, and below whom: children by the uuid of the one above, "" for those that nobody is above. A
  // supervisor that does not live then is passed over, as orphans pass it. Now (`at` null) the dead of `lately` stay.
  tree(at, lately) {
    const children = new Map(), now = at ?? this.now();
    // What is known now has been born: the clock of this page may be behind the one that stamped the birth.
    const lives = row => at === null ? row.ended === null : row.born <= at && (row.ended === null || row.ended > at);
    const above = row => {
      let up = at === null ? row.supervisor : row.parent;
      for (let hops = 0; up !== null && hops < 10000; hops += 1) {
        const found = this.byUuid.get(up);
        if (!found) return "";
        if (at === null || lives(found)) return up;
        up = found.parent;
      }
      return "";
    };
    for (const row of this.rows) {
      if (!lives(row) && !(at === null && row.ended !== null && row.ended > now - lately)) continue;
      const up = above(row);
      if (!children.has(up)) children.set(up, []);
      children.get(up).push(row);
    }
    return children;
  }
}

export const nameOf = row => row.label;

// The rows of the tree as a list, as far as it is open. A search shows what it finds, with all that is above it.
export function listed(children, { isOpen, wanted }) {
  const list = [];
  const walk = (row, depth, place, of) => {
    const below = children.get(row.uuid) || [], at = list.length;
    const entry = { row, depth, place, of, children: below.length, open: isOpen(row, depth) };
    list.push(entry);
    if (entry.open || wanted) below.forEach((child, i) => walk(child, depth + 1, i + 1, below.length));
    if (wanted && list.length === at + 1 && !wanted(row)) list.pop();
  };
  const tops = children.get("") || [];
  tops.forEach((row, i) => walk(row, 0, i + 1, tops.length));
  return list;
}

// The bars of a lane: what the agent did from one message to the next. [state, from, to], and births as ["fork", at, child].
export function bars(marks, until) {
  const found = [];
  let state = null, since = 0;
  for (const [, kind, at, label] of marks) {
    if (state) found.push([state, since, at]);
    since = at;
    if (kind === "fork" && label && label !== GOES_ON) { found.push(["fork", at, label]); continue; }
    if (kind === "error" || kind === "interrupted") found.push(["failed", at, at]);
    state = stateAfter(kind, label, state);
  }
  if (state) found.push([state, since, until]);
  return found;
}

export function stateAfter(kind, label, before) {
  switch (kind) {
    case "fork": return label === GOES_ON ? "thinking" : before;
    case "retry": return label ? "waiting" : "thinking";
    case "user": case "steer": case "tool_result": case "repair": return "thinking";
    case "tool_call": return label === "wait" ? "waiting" : "tool";
    case "approval": return "asking";
    case "assistant": return label === "calls" ? "tool" : null;
    case "error": case "interrupted": case "output": return null;
    default: return before;
  }
}

export const short = n => n >= 1e6 ? (n / 1e6).toFixed(1) + "M" : n >= 1e3 ? (n / 1e3).toFixed(n < 1e4 ? 1 : 0) + "k" : n ? String(n) : "";
export const age = s => s < 60 ? Math.max(0, Math.floor(s)) + "s" : s < 3600 ? Math.floor(s / 60) + "m" : s < 86400 ? Math.floor(s / 3600) + "h" : Math.floor(s / 86400) + "d";
export const clock = (at, seconds = true) => new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}), hour12: false });
export const money = micro => micro ? "$" + (micro / 1e6).toFixed(micro < 1e4 ? 4 : 2) : "";
