"""DBOS: an agent is a workflow, each request and effect a step; workers are child workflows, approval a message."""

from dbos import DBOS, DBOSConfig, SetWorkflowID

from benchmarks.durability import kit

URL = (
    kit.STORE.replace("postgresql://", "postgresql+psycopg://")
    if kit.STORE.startswith("postgresql")
    else f"sqlite:///{kit.STORE}/dbos.db"
)
config: DBOSConfig = {
    "name": "durability",
    "system_database_url": URL,
    "log_level": "ERROR",
    "run_admin_server": False,
    "application_version": "1",
    "executor_id": kit.HOST,
}
DBOS(config=config)


@DBOS.step()
def ask(messages: list[kit.Message]) -> kit.Message:
    return kit.ask(messages)


@DBOS.step()
def charge(run: str, worker: str) -> str:
    return kit.charge(run, worker, f"{DBOS.workflow_id}-{DBOS.step_id}")


@DBOS.workflow()
def work(run: str, name: str, text: str) -> str:
    messages: list[kit.Message] = [{"role": "user", "content": text}]
    while True:
        messages.append(ask(messages))
        if not (calls := kit.calls(messages[-1])):
            return str(messages[-1]["content"])
        for call_id, tool, arguments in calls:
            messages.append(kit.result(call_id, act(run, name, tool, arguments)))


def act(run: str, name: str, tool: str, arguments: dict[str, float]) -> str:
    if tool == "pause":
        DBOS.sleep(arguments["seconds"])
        return "over"
    if tool == "charge_big":
        DBOS.set_event("waiting", True)
        DBOS.recv("approval", timeout_seconds=3_600)
        DBOS.set_event("waiting", False)
    return str(charge(run, name))


@DBOS.workflow()
def lead(run: str) -> str:
    messages = [kit.prompt(run, "lead")]
    while True:
        messages.append(ask(messages))
        if not (calls := kit.calls(messages[-1])):
            return str(messages[-1]["content"])
        handles = []
        for call_id, _, arguments in calls:
            with SetWorkflowID(f"{run}-{arguments['worker']}"):
                handles.append((call_id, DBOS.start_workflow(work, run, arguments["worker"], arguments["prompt"])))
        messages += [kit.result(call_id, handle.get_result()) for call_id, handle in handles]


def start(run: str) -> None:
    with SetWorkflowID(run):
        DBOS.start_workflow(lead, run)


def result(run: str) -> str | None:
    handle = DBOS.retrieve_workflow(run)
    return str(handle.get_result()) if handle.get_status().status == "SUCCESS" else None


def waiting(run: str) -> bool:
    return bool(DBOS.get_event(f"{run}-b", "waiting", timeout_seconds=0))


def approve(run: str) -> bool:
    DBOS.send(f"{run}-b", True, "approval", idempotency_key=f"{run}-b")
    return True


def cancel(run: str) -> None:
    DBOS.cancel_workflow(run, cancel_children=True)


DBOS.launch()
kit.serve(start=start, result=result, waiting=waiting, approve=approve, cancel=cancel)
