// What is asked of the server. A request whose answer was lost has happened or not: it is never sent again by itself.

export class Refused extends Error {}

async function answer(response) {
  const text = await response.text();
  let value;
  try { value = JSON.parse(text); } catch { value = { error: text.trim() || response.statusText }; }
  if (!response.ok) throw new Refused(value.error);
  return value;
}

export const get = async (path, query = {}) => answer(await fetch(`/api/${path}?${new URLSearchParams(query)}`));

export async function post(path, body) {
  let response;
  try {
    response = await fetch(`/api/${path}`, { method: "POST", headers: { "X-Ikigai": "1", "Content-Type": "application/json" }, body: JSON.stringify(body) });
  } catch {
    throw new Refused("No answer: it was perhaps done. See the transcript.");
  }
  return (await answer(response)).done;
}

// The stream of this page. It begins again by itself after the last message that it has brought.
export class Stream {
  constructor(handlers) { this.handlers = handlers; this.source = null; }

  open({ epoch, version, agents, after }) {
    this.close();
    this.source = new EventSource(`/api/events?${new URLSearchParams({ epoch, version, agents: agents.join(","), after: after.join(",") })}`);
    for (const [name, handle] of Object.entries(this.handlers)) {
      this.source.addEventListener(name, event => handle(JSON.parse(event.data)));
    }
    this.source.onerror = () => this.handlers.lost?.();
    this.source.onopen = () => this.handlers.found?.();
  }

  close() { this.source?.close(); this.source = null; }
}
