// A client of the network API without a package: prompts under a key, and waits for the turn.
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
  for (let attempt = 0; ; attempt++) {
    const answer = await fetch(`${url}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (answer.ok) return (await answer.json()) as T;
    const problem = (await answer.json()) as Problem;
    // The same key does nothing twice, so a request that was refused for the moment is sent again.
    if (![429, 503].includes(answer.status) || attempt === 5) throw new Error(`${problem.type}: ${problem.detail}`);
    await new Promise((resolve) => setTimeout(resolve, 1000 * Number(answer.headers.get("Retry-After") ?? 1)));
  }
}

const prompted = await ask<Prompted>("/v1/agents/~/prompt", { text: "Good morning" }, "morning-1");
let outcome = await ask<Outcome>(`/v1/turns/${prompted.turn}?wait=60`);
while (outcome.status === "working") outcome = await ask<Outcome>(`/v1/turns/${prompted.turn}?wait=60`);
console.log(outcome.status, outcome.text ?? outcome.error ?? "");
