// The panels beside the transcript: differences, documents, experiments, budgets; and what waits for a person.
import { clock } from "./model.js";
import { Inbox } from "./inbox.js";
import { get } from "./net.js";
import { element } from "./reader.js";

const $ = id => document.getElementById(id);

export class Panels {
  constructor(page) {
    this.page = page;
    this.name = "talk";
    this.other = null;
    this.inbox = new Inbox(page);
    for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => this.show(tab.dataset.panel));
  }

  async show(name) {
    this.name = name;
    for (const tab of document.querySelectorAll("[role=tab]")) tab.setAttribute("aria-selected", tab.dataset.panel === name);
    $("talk").hidden = name !== "talk"; $("panel").hidden = name === "talk";
    if (name !== "questions") this.below();
    if (name === "talk") return;
    try {
      $("panel").replaceChildren(...await this[name]());
      if (name === "questions") this.below();
    } catch (error) { $("panel").replaceChildren(element("p", "", error.message)); }
  }

  async diff() {
    const { chosen, model } = this.page;
    if (!this.other || this.other === chosen) return [element("p", "", "Press d on one agent, then choose another: what both have in common is folded, and what each wrote since stands here.")];
    const found = await get("diff", { a: this.other, b: chosen }), sides = [["a", this.other, "removed"], ["b", chosen, "added"]];
    return [element("p", "", `In common up to message ${found.common}.`), ...sides.flatMap(([side, uuid, kind]) => [
      element("h3", kind, `${side === "a" ? "−" : "+"} ${model.name(uuid)}: ${found[side].length} messages`),
      ...found[side].map(message => element("pre", kind, `${message.id} ${message.kind}  ${message.content.slice(0, 2000)}`)),
    ])];
  }

  async documents() {
    const found = await get("documents");
    if (!found.length) return [element("p", "", "No document was written yet.")];
    return [table(["document", "version", "author", "written"], found.map(one => [
      link(one.path, () => this.document(one.path, one.version)), one.version, one.author ? this.page.model.name(one.author) : "a person", clock(one.created_at)]))];
  }

  async document(path, version) {
    const [now, before, all] = await Promise.all([get("document", { path, version }), version > 1 ? get("document", { path, version: version - 1 }).catch(() => null) : null, get("documents", { path })]);
    const versions = element("p", "");
    for (const one of all) versions.append(link(`${one.version} `, () => this.document(path, one.version)));
    const text = element("div", "");
    for (const [kind, line] of lines(before?.body ?? "", now.body ?? "")) text.append(element("pre", kind, (kind === "added" ? "+ " : kind === "removed" ? "− " : "  ") + line));
    $("panel").replaceChildren(element("h3", "", `${path}, version ${version}`), versions, text);
  }

  async experiments() {
    const found = await get("experiments");
    if (!found.length) return [element("p", "", "No search, bisection, replay or regression was run here yet.")];
    return [table(["experiment", "terms"], found.map(one => [link(this.page.model.name(one.agent), () => this.experiment(one.agent)), JSON.stringify(one.terms).slice(0, 200)]))];
  }

  async experiment(agent) {
    const found = await get("experiment", { agent }), best = Math.max(...Object.values(found.verdicts).map(one => one.score ?? -Infinity));
    const rows = found.trials.map(trial => {
      const verdict = found.verdicts[trial.number], meter = element("progress", "meter");
      meter.max = 1; meter.value = verdict?.score ?? 0;
      const name = link(String(trial.number), () => this.page.choose(trial.agent));
      if (verdict && verdict.score === best) name.classList.add("best");
      return [name, trial.of || "start", trial.arm, verdict ? meter : "", verdict?.score ?? "", verdict?.why ?? "not judged"];
    });
    $("panel").replaceChildren(element("h3", "", this.page.model.name(agent)), table(["trial", "from", "arm", "", "score", "why"], rows));
  }

  async budgets() {
    const found = await get("budgets");
    if (!found.length) return [element("p", "", "No budget limits anything.")];
    return [table(["budget of", "unit", "used", "of", "", "waiting"], found.flatMap(one => Object.entries(one.granted).map(([unit, granted]) => {
      const meter = element("progress", "meter"), used = (one.spent[unit] ?? 0) + (one.held[unit] ?? 0);
      meter.max = granted || 1; meter.value = used;
      return [link(this.page.model.name(one.owner), () => this.page.choose(one.owner)), unit, used, granted, meter, one.waiting || ""];
    })))];
  }

  // What waits for a person: the question of the chosen agent, or the oldest, stands below; the inbox has all of them.
  async ask() {
    const waiting = await get("questions").catch(() => []), calls = waiting.every(one => one.kind === "approve");
    this.inbox.take(waiting);
    $("asked").hidden = !waiting.length;
    $("asked").textContent = calls ? `? ${waiting.length} ${waiting.length === 1 ? "call asks" : "calls ask"}` : `? ${waiting.length} in the inbox`;
    this.below();
    if (this.name === "questions") await this.show("questions");
  }

  below() {
    const { waiting } = this.inbox, mine = waiting.find(one => one.agent === this.page.chosen) ?? waiting[0];
    this.asking = mine ?? null;
    $("question").hidden = !mine || this.name === "questions";
    if (!$("question").hidden && $("question").firstChild !== this.inbox.box(mine)) $("question").replaceChildren(this.inbox.box(mine));
  }

  async questions() {
    const { waiting } = this.inbox;
    if (!waiting.length) return [element("p", "", "Nothing waits for a person. Calls that wait for approval, and questions of models and programs, come here.")];
    return waiting.map(one => this.inbox.box(one));
  }

  // The buttons of the call that stands below, or is alone in the inbox, by their keys.
  press(place) {
    if (this.asking?.kind === "approve") this.inbox.box(this.asking).querySelectorAll("button")[place]?.click();
  }
}

function table(heads, rows) {
  const box = element("table", ""), top = element("tr", "");
  for (const head of heads) top.append(element("th", "", head));
  box.append(top);
  for (const cells of rows) {
    const row = element("tr", "");
    for (const cell of cells) { const one = element("td", ""); one.append(cell instanceof Node ? cell : String(cell)); row.append(one); }
    box.append(row);
  }
  return box;
}

function link(text, act) {
  const button = element("button", "link", text);
  button.addEventListener("click", act);
  return button;
}

// The lines of two texts, by what they have in common at both ends: enough for what agents change in a document.
function lines(before, now) {
  const a = before.split("\n"), b = now.split("\n");
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  return [...b.slice(0, start).map(line => ["", line]), ...a.slice(start, a.length - end).map(line => ["removed", line]),
    ...b.slice(start, b.length - end).map(line => ["added", line]), ...b.slice(b.length - end).map(line => ["", line])];
}
