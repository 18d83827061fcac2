// The panels beside the transcript: differences, documents, experiments, budgets; and the calls that wait for a decision.
import { clock } from "./model.js";
import { get, post } from "./net.js";
import { element } from "./reader.js";

const $ = id => document.getElementById(id);

export class Panels {
  constructor(page) {
    this.page = page;
    this.name = "talk";
    this.other = null;
    for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => this.show(tab.dataset.panel));
  }

  async show(name) {
    this.name = name;
    for (const tab of document.querySelectorAll("[role=tab]")) tab.setAttribute("aria-selected", tab.dataset.panel === name);
    $("talk").hidden = name !== "talk"; $("panel").hidden = name === "talk";
    if (name === "talk") return;
    try {
      $("panel").replaceChildren(...await this[name]());
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

  // The call that waits, with all that is signed.
  async ask() {
    const waiting = await get("approvals").catch(() => []), mine = waiting.find(one => one.agent === this.page.chosen) ?? waiting[0], box = $("question");
    this.call = mine ?? null;
    $("asked").hidden = !waiting.length; $("asked").textContent = `? ${waiting.length} ${waiting.length === 1 ? "call asks" : "calls ask"}`;
    this.always = mine?.always.at(-1);
    box.hidden = !mine;
    if (!mine) return;
    const buttons = element("div", ""), text = mine.tool === "bash" ? mine.input.command : JSON.stringify(mine.input, null, 1);
    const always = { tool: `Always ${mine.tool}`, exact: "Always this command" }[this.always];
    for (const [key, word, decide] of [["y", "Yes, once", { allow: true }], ["n", "No", { allow: false }], ["a", always, { allow: true, always: this.always }]]) {
      if (!word) continue;
      const button = element("button", "", `${word} (${key})`);
      button.addEventListener("click", () => this.decide(decide));
      buttons.append(button);
    }
    if (this.page.model.readOnly) buttons.hidden = true;
    const change = mine.change ? [element("p", "", "The tool has changed since you were asked:"), element("pre", "", mine.change)] : [];
    box.replaceChildren(element("h3", "", `? ${this.page.model.name(mine.agent)} asks: ${mine.tool}`), ...change, element("pre", "", text ?? ""), buttons);
  }

  async decide(how) {
    if (!this.call) return;
    const { agent, call } = this.call;
    await this.page.act("decide", { agent, call, ...how });
    await this.ask();
  }
}

export { post };

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
