// A client of the network API without a package: prompts under a key, and follows the turn until it is over.
// node api_client.ts, with IKIGAI_URL and IKIGAI_TOKEN. Types are erased by Node.js 24, or by tsc.

interface Outcome {
  handle: string;
  status: "working" | "asks" | "waiting_for_budget" | "done" | "failed";
  text?: string;
  error?: string;
}

interface Prompted {
  turn: string;
  outcome?: Outcome;
}

interface Sent {
  id?: string;
  event: string;
  data: unknown;
}

interface Message {
  kind: string;
  content: string;
}

interface Problem {
  type: string;
  status: number;
  detail: string;
}

const url = process.env.IKIGAI_URL ?? "http://127.0.0.1:8080";
const token = process.env.IKIGAI_TOKEN ?? "";

async function ask<T>(path: string, body?: object, key?: string): Promise<T> {
  const headers: Record<string, string> = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  if (key !== undefined) headers["Idempotency-Key"] = key;
  const method = body === undefined ? "GET" : "POST";
  for (let attempt = 0; ; attempt++) {
    const sent = await fetch(`${url}${path}`, { method, headers, body: body && JSON.stringify(body) })
      .then(async (answer) => ({ answer, value: (await answer.json()) as unknown }))
      .catch((error: Error) => error);
    let pause = 1;
    // The same key does nothing twice, so what had no answer, or was refused for the moment, is sent again.
    if (sent instanceof Error) {
      const repeatable = method === "GET" || key !== undefined;
      if (!repeatable || attempt === 10) throw sent;
      console.error(`${sent.cause ?? sent}: trying again`); // the server may be starting again
    } else {
      const { answer, value } = sent;
      if (answer.ok) return value as T;
      const problem = value as Problem;
      if (![429, 503].includes(answer.status) || attempt === 10) throw new Error(`${problem.type}: ${problem.detail}`);
      pause = Number(answer.headers.get("Retry-After") ?? 1);
    }
    await new Promise((resolve) => setTimeout(resolve, 1000 * pause));
  }
}

// The events of a stream. A chunk ends anywhere, so what has no blank line after it waits for the next one.
async function* events(path: string): AsyncGenerator<Sent> {
  const answer = await fetch(`${url}${path}`, { headers: { Authorization: `Bearer ${token}` } });
  if (!answer.ok || answer.body === null) throw new Error(`${path} was answered with ${answer.status}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const fields = new Map<string, string>();
        for (const line of block.split("\n")) fields.set(line.split(":", 1)[0], line.slice(line.indexOf(":") + 2));
        const data = fields.get("data");
        if (data === undefined) continue; // a comment, or when to connect again
        yield { id: fields.get("id"), event: fields.get("event") ?? "message", data: JSON.parse(data) };
      }
    }
  } finally {
    await reader.cancel(); // a connection that is not read to its end keeps the process
  }
}

async function followed(turn: string): Promise<Outcome> {
  for (let after = "0"; ; await new Promise((resolve) => setTimeout(resolve, 1000))) {
    try {
      for await (const sent of events(`/v1/turns/${turn}/events?after=${after}`)) {
        after = sent.id ?? after; // a stream that was cut off goes on there
        if (sent.event === "message") {
          const message = sent.data as Message;
          console.log(`${message.kind}: ${message.content}`);
        }
        if (sent.event === "turn") return sent.data as Outcome;
      }
    } catch (error) {
      console.error(`${error}: connecting again`);
    }
  }
}

const prompted = await ask<Prompted>("/v1/agents/~/prompt", { text: "Good morning" }, "morning-1");
const outcome = await followed(prompted.turn);
console.log(outcome.status, outcome.text ?? outcome.error ?? "");
