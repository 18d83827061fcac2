"""Nobody's runtime: threads and a dictionary. Its row shows that the judge convicts."""

import threading
import time

from benchmarks.durability import kit

results: dict[str, str] = {}
approvals: dict[str, threading.Event] = {}
questions: set[str] = set()


def work(run: str, name: str, text: str) -> str:
    messages: list[kit.Message] = [{"role": "user", "content": text}]
    while True:
        messages.append(kit.ask(messages))
        if not (calls := kit.calls(messages[-1])):
            return str(messages[-1]["content"])
        for call_id, tool, arguments in calls:
            messages.append(kit.result(call_id, act(run, name, call_id, tool, arguments)))


def act(run: str, name: str, call_id: str, tool: str, arguments: dict[str, float]) -> str:
    if tool == "pause":
        time.sleep(arguments["seconds"])
        return "over"
    if tool == "charge_big":
        questions.add(run)
        approvals.setdefault(run, threading.Event()).wait()
        questions.discard(run)
    return kit.charge(run, name, call_id)


def lead(run: str) -> None:
    messages = [kit.prompt(run, "lead")]
    messages.append(kit.ask(messages))
    calls = kit.calls(messages[-1])
    texts: dict[str, str] = {}

    def delegate(call_id: str, arguments: dict[str, str]) -> None:
        texts[call_id] = work(run, arguments["worker"], arguments["prompt"])

    threads = [threading.Thread(target=delegate, args=(call_id, arguments)) for call_id, _, arguments in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    messages += [kit.result(call_id, texts[call_id]) for call_id, _, _ in calls]
    results[run] = kit.ask(messages)["content"]


def start(run: str) -> None:
    threading.Thread(target=lead, args=(run,), daemon=True).start()


def approve(run: str) -> bool:
    approvals.setdefault(run, threading.Event()).set()
    return True


kit.serve(start=start, result=results.get, waiting=questions.__contains__, approve=approve)
