"""Remote commands in a simulation: done once at whichever commit the host ends, and as a local handle would have it."""

from collections.abc import Callable, Sequence
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, AgentRef, Request, ScriptedProvider
from ikigai_actors.agent.turn.events import Command
from ikigai_actors.errors import IkigaiError
from ikigai_actors.providers.base import REPORT, SUMMARISE
from ikigai_actors.records.hosts.remote_commands import RemoteCommandKey, answer_of, new_remote_commands
from ikigai_actors.testing import CrashPoint, Faults, ProcessCrashed, Schedule, Simulation, simulated
from tests.kit.echo import echo
from tests.kit.programs import each_commit

pytestmark = pytest.mark.slow("hundreds of simulated hosts")

CHILD = "A" * 22

ASKED: dict[str, dict[str, Any]] = {
    "fork": {"child": CHILD, "name": "b", "prompt": "go", "settings": {}, "restart": "transient", "on_orphan": None},
    "fork_at": {
        "child": CHILD,
        "name": "b",
        "prompt": "go",
        "settings": {},
        "restart": "transient",
        "on_orphan": None,
        "at": 1,
    },
    "trials": {"note": {"terms": 1}, "trials": [[CHILD, "anna", 2, "go", {}, {"effects": {"run": []}}, {"number": 1}]]},
    "clear": {},
    "compact": {"focus": ""},
    "uncompact": {},
    "merge_files": {"child": "kid"},
    "merge": {"child": "kid", "how": "summary", "positions": []},
    "mark": {"label": "there"},
    "rewind": {"label": "here"},
    "undo": {},
    "configure": {"settings": {"max_tokens": 5}},
    "resume": {},
    "exit": {"result": "done"},
}
"""Each kind of remote command that one agent can carry out, with its arguments."""


def test_every_request_that_an_agent_can_carry_out_alone_is_among_them() -> None:
    kinds = {command.travels_as for command in get_args(Command) if command.travels_as}
    assert kinds == {*ASKED, "decide"}  # which needs a call that waits for a person


def answer(request: Request) -> str:
    """A long answer; to the request for a summary a short one."""
    asked = str(request.messages[-1])
    return "notes" if SUMMARISE in asked or REPORT in asked else echo(request) * 20


def begun(world: Simulation) -> AgentRef:
    """An agent that was prompted, and has a mark and a summary."""
    anna = world.open(ScriptedProvider(answer)).root.fork(name="anna")
    anna.mark("here")
    for text in ("hello", "and", "on"):
        anna.prompt(text).get()
    anna.compact()
    for text in ("hello", "and", "on"):
        anna.prompt(text).get()
    world.settle()
    return anna


def written(system: ActorSystem, uuid: str) -> list[tuple[str, str]]:
    """What an agent has written itself."""
    return [(message.kind, message.content) for message in system.handle(uuid).history(all=True)]


def state(system: ActorSystem) -> list[Any]:
    """What there is of agents and their logs, without times and what is drawn."""
    records = [record for record in system.agents() if record.name is not None]
    return [[record.name, record.status, written(system, record.uuid)] for record in records]


def value(world: Simulation, key: RemoteCommandKey) -> Any:
    """The answer of a command, which has one."""
    answer = world.process.looked_at.read(lambda tx: answer_of(tx, key))
    assert answer is not None
    return answer.value


def carried_out(kind: str, crash: CrashPoint | None) -> tuple[bool, list[Any], Any]:
    """Whether the process has ended before all was at rest, and what there is after a command."""
    with simulated() as world:
        anna, crashed, arguments = begun(world), False, ASKED[kind]
        uuid = anna.uuid
        if kind in ("merge", "merge_files"):
            kid = anna.fork("dig", name=arguments["child"])
            kid.reply()
            arguments = {**arguments, "child": kid.uuid}
            world.settle()
        if kind == "trials":
            arguments = {"note": {}, "trials": [[CHILD, uuid, *arguments["trials"][0][2:]]]}
        if crash is not None:
            world.crash_at(crash)
        try:
            key = world.ask_from_elsewhere(uuid, kind, arguments)
            world.settle()
        except ProcessCrashed:
            crashed = True
            world.recover()
        assert world.process.looked_at.read(new_remote_commands) == []
        return crashed, state(world.system), value(world, key)


BEFORE_AND_AFTER = [
    pytest.param(kind, committed, marks=() if (place + committed) % 2 else (pytest.mark.thorough("the other side"),))
    for place, kind in enumerate(ASKED)
    for committed in (False, True)
]
"""Each command, with hosts that end before each commit, or after; the thorough tier has both of each."""


@pytest.mark.sample(1, "a run for each commit")
@pytest.mark.parametrize(("kind", "committed"), BEFORE_AND_AFTER)
@each_commit(2)
def test_a_request_is_carried_out_once_at_whichever_commit_the_host_ends(step: int, kind: str, committed: bool) -> None:
    _, plain, answer = carried_out(kind, None)
    for commit in range(1, 20, step):
        crashed, state, reply = carried_out(kind, CrashPoint(commit, committed))
        assert (state, reply) == (plain, answer)
        if not crashed:
            return
    raise AssertionError("It never came to rest.")


COMMANDS: dict[str, Callable[[AgentRef], object]] = {
    "clear": lambda agent: agent.clear(),
    "mark": lambda agent: agent.mark("there"),
    "rewind": lambda agent: agent.rewind("here"),
    "undo": lambda agent: agent.undo(),
    "configure": lambda agent: agent.configure(max_tokens=5),
    "resume": lambda agent: agent.resume(),
}


def outcome(command: Callable[[], object]) -> object:
    """What a command gives, or the kind of its refusal."""
    try:
        return command()
    except IkigaiError as error:
        return type(error)


@pytest.mark.thorough("every command")
@settings(max_examples=30, deadline=None)
@given(asked=st.lists(st.sampled_from(sorted(COMMANDS)), max_size=8), number=st.integers(0, 60))
def test_commands_from_elsewhere_leave_what_local_ones_leave(asked: Sequence[str], number: int) -> None:
    with simulated() as world:
        anna = begun(world)
        local = [outcome(lambda kind=kind: COMMANDS[kind](anna)) for kind in asked]  # type: ignore[misc]
        left = state(world.system)
    with simulated(Schedule({number: 1}), faults=Faults(busy=1, lost=1, unheard=1)) as world:
        anna = begun(world)
        remote: list[object] = []
        for kind in asked:
            key = world.ask_from_elsewhere(anna.uuid, kind, ASKED[kind])
            world.sleep(5)
            world.settle()
            kept = value(world, key)
            remote.append(type(kept) if isinstance(kept, IkigaiError) else kept)
        assert (remote, state(world.system)) == (local, left)
