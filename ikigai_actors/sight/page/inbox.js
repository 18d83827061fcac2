// The inbox: a box for each question that waits for a person, with its exact call or its form. Texts are never HTML.
import { clock } from "./model.js";
import { post } from "./net.js";
import { element } from "./reader.js";

export class Inbox {
  constructor(page) {
    this.page = page;
    this.waiting = [];
    this.boxes = new Map();
  }

  // A box stays while its question waits, so nothing that somebody writes in it is lost.
  take(waiting) {
    this.waiting = waiting;
    const open = new Set(waiting.map(one => one.question));
    for (const id of this.boxes.keys()) if (!open.has(id)) this.boxes.delete(id);
  }

  box(question) {
    if (!this.boxes.has(question.question)) this.boxes.set(question.question, this.make(question));
    return this.boxes.get(question.question);
  }

  make(question) {
    const isCall = question.kind === "approve", box = element("form", "asks"), name = this.page.model.name(question.agent);
    const command = question.tool === "bash" ? question.input.command : JSON.stringify(question.input, null, 1);
    const next = question.next_at === null ? "" : `, ${question.next} at ${clock(question.next_at)}`;
    const change = question.change ? [element("p", "", "The tool has changed since you were asked:"), element("pre", "", question.change)] : [];
    const fields = isCall ? null : fieldsOf(question.form ?? { type: "string" }), wrong = element("p", "wrong", "");
    wrong.setAttribute("role", "alert");
    box.append(
      element("h3", "", isCall ? `? ${name} asks: ${question.tool}` : `? ${name} asks`),
      element("p", "terms", `asked at ${clock(question.asked_at)}, of ${question.asks.join(" and ")}${next}`),
      ...change, element("pre", "", isCall ? command ?? "" : question.text), ...fields?.nodes ?? [],
      element("p", "terms", `digest ${question.digest.slice(0, 16)}`), wrong);
    if (!this.page.model.readOnly) box.append(...this.deciding(question, isCall, box, wrong));
    else for (const one of box.querySelectorAll("input, select, textarea")) one.disabled = true;
    box.addEventListener("submit", event => {
      event.preventDefault();
      this.answer(question, { answer: isCall ? "allow" : fields.read() }, wrong);
    });
    return box;
  }

  deciding(question, isCall, box, wrong) {
    const reason = element("input", ""), buttons = element("div", "");
    reason.placeholder = isCall ? "Why, if you deny it" : "Why, if you decline";
    reason.setAttribute("aria-label", reason.placeholder);
    reason.maxLength = 2000;
    const button = (word, act) => {
      const one = element("button", "", word);
      one.type = act ? "button" : "submit";
      if (act) one.addEventListener("click", act);
      buttons.append(one);
    };
    button(isCall ? "Yes, once (y)" : "Answer");
    button(isCall ? "No (n)" : "Decline", () => this.answer(question, { answer: isCall ? "deny" : null, reason: reason.value }, wrong));
    const always = question.always.at(-1), word = { tool: `Always ${question.tool} (a)`, exact: "Always this command (a)" }[always];
    if (word) button(word, () => this.answer(question, { answer: "allow", always }, wrong));
    return [reason, buttons];
  }

  async answer(question, how, wrong) {
    try {
      const done = await post("answer", { question: question.question, digest: question.digest, ...how });
      if (!done.answered) this.page.notice(`It was ${done.how} before by ${done.by ?? "nobody"}.`);
    } catch (error) { wrong.textContent = error.message; return; }
    await this.page.panels.ask();
  }
}

// The fields of a form, and the value that somebody has written into them: a field of its own, or an object of them.
function fieldsOf(form) {
  if (form.type !== "object") {
    const one = field("", form, true);
    return { nodes: [one.node], read: one.read };
  }
  const needed = new Set(form.required ?? []), all = Object.entries(form.properties).map(([name, one]) => [name, field(name, one, needed.has(name))]);
  const read = () => Object.fromEntries(all.map(([name, one]) => [name, one.read()]).filter(([, value]) => value !== undefined));
  return { nodes: all.map(([, one]) => one.node), read };
}

function field(name, terms, needed) {
  const label = element("label", ""), choices = terms.enum ?? (terms.type === "boolean" ? [true, false] : null);
  const input = element(choices ? "select" : terms.type === "string" ? "textarea" : "input", "");
  if (choices) for (const word of ["", ...choices.map(said)]) input.append(element("option", "", word));
  else if (terms.type === "string") input.rows = 2;
  else { input.type = "number"; input.step = terms.type === "integer" ? "1" : "any"; }
  input.required = needed && terms.type !== "string";
  input.name = name;
  label.append(element("span", "", terms.title ?? (name || "Your answer")), terms.description ? element("span", "terms", terms.description) : "", input);
  const read = () => {
    if (choices) return choices[input.selectedIndex - 1];
    if (terms.type === "string") return input.value || needed ? input.value : undefined;
    return input.value === "" ? undefined : Number(input.value);
  };
  return { node: label, read };
}

const said = value => value === true ? "yes" : value === false ? "no" : String(value);
