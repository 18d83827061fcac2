// What @ag-ui/client does with streams of events, or with a server; imported from the directory in argv[2].
//
//   judge            lines of JSON on standard input, each {"messages", "events"}: prints {"at", "messages", "warnings"} for
//                    each, where ``at`` is the number of the event that was refused, or null
//   talk URL STEPS TOKEN
//                    an HttpAgent does the steps of a JSON list, and prints its messages: {"say"} prompts, {"decide"}
//                    approves or denies what waits

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [, , home, command, url, steps, token] = process.argv;
const require = createRequire(home + "/");
const { HttpAgent, verifyEvents, enforceEvents, defaultApplyEvents } = require("@ag-ui/client");
const { from, concatMap, lastValueFrom, tap, map } = require("rxjs");
let warnings = [];
console.warn = (...words) => warnings.push(words.join(" "));

async function judge({ messages, events }) {
  let taken = 0;
  warnings = [];
  const shown = { messages };
  const input = { threadId: "t", runId: "r", messages, state: {}, tools: [], context: [] };
  const source = from(events).pipe(enforceEvents(), verifyEvents(), tap(() => { taken += 1; }));
  const applied = defaultApplyEvents(input, source, { messages, state: {} }, []);
  try {
    await lastValueFrom(applied.pipe(map((one) => { if (one.messages) shown.messages = one.messages; })), { defaultValue: 0 });
    return { at: null, messages: shown.messages, warnings };
  } catch (error) {
    return { at: taken, why: error.message, messages: shown.messages, warnings };
  }
}

async function talk() {
  const agent = new HttpAgent({ url, threadId: "t", headers: { Authorization: `Bearer ${token}` } });
  let number = 0;
  for (const step of JSON.parse(steps)) {
    number += 1;
    const runId = step.run ?? `run-${number}`;
    if ("say" in step) {
      agent.addMessage({ id: `user-${number}`, role: "user", content: step.say });
      await agent.runAgent({ runId });
    } else {
      const answered = (one) => ({ interruptId: one.id, status: "resolved", payload: { approved: step.decide } });
      await agent.runAgent({ runId, resume: agent.pendingInterrupts.map(answered) });
    }
  }
  console.log(JSON.stringify({ messages: agent.messages, warnings }));
}

if (command === "judge") {
  for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(await judge(JSON.parse(line))));
} else {
  await talk();
}
