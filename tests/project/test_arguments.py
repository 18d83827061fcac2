"""Wrong arguments of the public interface: refused at once, with the argument's name, and nothing is stored."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis.stateful import RuleBasedStateMachine

import ikigai_actors
import ikigai_actors.budgets
import ikigai_actors.cluster
import ikigai_actors.events
import ikigai_actors.providers
import ikigai_actors.testing
import ikigai_actors.tools
from ikigai_actors import (
    ActorSystem,
    AgentRef,
    AsyncActorSystem,
    AsyncAgentRef,
    BadInput,
    Child,
    Future,
    IkigaiError,
    OfflineProvider,
    PendingCall,
    Signal,
    SystemClosed,
)
from ikigai_actors.arguments import LONGEST_TIME, check_count, check_seconds, check_timeout, shown
from ikigai_actors.cluster import Fleet
from ikigai_actors.events import AsyncEventFeed, EventFeed, Subscription
from ikigai_actors.reach.databases import place_of
from ikigai_actors.records.messages.settings import SETTINGS
from ikigai_actors.store import Store
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.system.handles.ref import System
from ikigai_actors.tools import FunctionTool
from ikigai_actors.types import AsyncReplyStream, Documents, ReplyStream, Tally
from tests.kit.databases import eventually, sql
from tests.kit.mistakes import VALUES, fits, parts_of
from tests.kit.pictures import PNG
from tests.kit.programs import cheaper

NAN, INFINITE = float("nan"), float("inf")


class Nameless:
    """Answers, and cannot be named."""

    async def respond(self, request: object, on_delta: object) -> None: ...

    async def close(self) -> None: ...


def plain(text: str) -> str:
    """A function that nobody made a tool."""
    return text


OPENING: list[tuple[dict[str, Any], str]] = [
    ({"tools": [plain]}, "Expected each of tools to be a tool or a toolset; .* Put @tool on the function"),
    ({"tools": "read"}, "Expected tools to be a list of tools; got 'read'"),
    ({"provider": 5}, r"Expected provider to be a provider, .*; got 5 \(int\)"),
    ({"provider": OfflineProvider}, "got the class OfflineProvider. Make one of it"),
    ({"provider": plain}, r"Put a function into FunctionProvider\(...\)"),
    ({"provider": Nameless()}, r"Expected the name of a provider .*; got None \(NoneType\)"),
    ({"provider": "claude"}, "There is no provider 'claude'"),
    ({"providers": {"a:b": OfflineProvider()}}, "without colons and commas, .*; got 'a:b'"),
    ({"providers": {"": OfflineProvider()}}, "Expected the name of a provider"),
    ({"workers": 0}, "Expected workers to be a whole number from 1 to 1,000; got 0"),
    ({"lease": 0}, "Expected lease in seconds, above 0"),
    ({"lease": INFINITE}, "Expected lease"),
    ({"approvals": 5}, "Expected approvals to be a function, 'ask', 'deny' or 'allow'; got 5"),
    ({"rules": "bash"}, "Expected rules to be a list of rules; got 'bash'"),
    ({"rules": ["deny bash"]}, r"Expected each of rules to be \(decision, tool\), .*; got 'deny bash'"),
    ({"rules": [("deny",)]}, "Expected each of rules to be"),
    ({"rules": [(5, "bash")]}, "Expected decision to be one of"),
    ({"rules": [("allow", "bash", "a;b")]}, "Expected a pattern for bash"),
    ({"on_orphan": "bury"}, "Expected on_orphan to be one of reparent, cascade, stop, continue; got 'bury'"),
]


@pytest.mark.sample(6, "an argument each")
@pytest.mark.parametrize(("arguments", "said"), OPENING, ids=[said[:60] for _, said in OPENING])
def test_a_system_is_not_opened_with_a_wrong_argument_and_the_database_stays_free(
    tmp_path: Path, arguments: dict[str, Any], said: str
) -> None:
    database = str(tmp_path / "a.db")
    with pytest.raises(BadInput, match=said):
        ActorSystem.open(**{"database": database, "provider": "offline"} | arguments)
    ActorSystem.open(database, "offline").close()


CALLS: list[tuple[Callable[[ActorSystem], Any], str]] = [
    (lambda system: system.agents(status="zzz"), "Expected status to be one of running, stopped, terminating, dead"),
    (lambda system: system.root.wait("kid"), "Expected agents to be a list of agents, .*; got 'kid'"),
    (lambda system: system.root.supervise(period=1e300), "Expected period in seconds"),
    (lambda system: system.root.supervise(intensity=10**30), "Expected intensity to be a whole number from 0 to"),
    (lambda system: system.root.supervise(strategy="one"), "Expected strategy to be one of"),
    (lambda system: Future[int]().get(timeout="1"), "Expected timeout"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "said"), CALLS, ids=[said[:50] for _, said in CALLS])
def test_a_value_that_is_out_of_bounds_is_refused(call: Callable[[ActorSystem], Any], said: str) -> None:
    with ActorSystem.open(":memory:", OfflineProvider()) as system, pytest.raises(BadInput, match=said):
        call(system)


TABLES = ("agents", "messages", "mail", "documents", "signals", "groups", "monitors", "requests", "timers")


def stored(system: ActorSystem) -> list[Any]:
    """All that the database holds."""
    store: Store = system._store
    return store.read(lambda tx: [sorted(map(repr, sql(tx, f"SELECT * FROM {table}"))) for table in TABLES])


BESIDE: dict[str, dict[str, Any]] = {
    "supervise": {"intensity": 3},
    "wait": {"timeout": 0},
    "grant": {"tokens": 5},
    "remind": {"after": 5},
}
"""What makes a right call of those whose parameters all have defaults."""


class Subject:
    """A system with a child, and what is right for the parameters of all that can be called."""

    def __init__(self, running: ActorSystem, system: System) -> None:
        kid = running.root.fork()
        kid.mark("here")
        running.root.send(kid, "tea")
        running.documents.write("plan.md", "text")
        answered = Future[int]()
        answered.set(1)
        self.running, self.kid = running, system.handle(kid.uuid)
        self.owners: list[object] = [system, self.kid, self.kid.aio, system.documents, system.approvals]
        self.owners += [system.questions, answered]
        self.known: Mapping[str, Any] = {
            "agent": kid, "app": "a:b", "body": "text", "budget": {"tokens": 5},
            "call": PendingCall(kid.uuid, 1, "1", "knock", {}), "callback": print,
            "child": kid, "children": [Child(kid)], "command": "true", "url": "https://example.com",
            "data": {"rating": 4}, "directory": ".", "file": "/dev/null/x", "fn": print, "function": plain,
            "decision": "deny", "group": "team", "model": "offline", "tool": "bash",
            "host": "b", "hosts": 1, "label": "here", "name": "other", "number": 1, "other": kid, "output": int,
            "path": "plan.md", "place": "docs", "question": "0" * 24, "answer": "allow", "seconds": 1,
            "recipient": kid, "full_name": "3/call_0/1a2b3c4d", "query": "mast",
            "settings": {"model": "offline"},
            "record": kid.record, "replies": ["text"], "scenario": print, "signal": Signal.STOP, "source": PNG,
            "text": kid.uuid, "uuid": kid.uuid, "watched": running.root, "writers": ["offline:"],
        }  # fmt: skip

    def right(self, call: Callable[..., Any]) -> dict[str, Any]:
        """Arguments that are right: a parameter without a default needs one, by its name."""
        known = inspect.signature(call).parameters.values()
        needed = [
            parameter.name
            for parameter in known
            if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        ]
        return {name: self.known[name] for name in needed} | BESIDE.get(call.__name__, {})

    def methods(self) -> Iterator[tuple[str, Callable[..., Any]]]:
        """All that can be called, with a name for it."""
        for owner in self.owners:
            kind = type(owner)
            for name, _ in inspect.getmembers(kind, inspect.isfunction):
                if not name.startswith("_") and (kind is not Future or name == "get"):
                    yield f"{kind.__name__}.{name}", getattr(owner, name)


@contextmanager
def subject() -> Iterator[Subject]:
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        yield Subject(system, system)


FLEET = Fleet(place_of("postgresql://someone@nowhere/team"), None)


def public() -> dict[str, Callable[..., Any]]:
    """The functions, and the classes whose objects a program makes, that the packages hand on."""
    doors = (ikigai_actors.providers, ikigai_actors.tools, ikigai_actors.budgets, ikigai_actors.events)
    packages = (ikigai_actors, *doors, ikigai_actors.cluster, ikigai_actors.testing)
    named: dict[str, Any] = {name: getattr(package, name) for package in packages for name in package.__all__}
    callables = {name: call for name, call in named.items() if is_called(call)}
    return callables | {
        "open": ActorSystem.open,
        "attach": ActorSystem.attach,
        "scale": FLEET.scale,
        "drain": FLEET.drain,
    }


def is_called(call: Any) -> bool:
    """Whether programs call it, and it looks at its arguments at once."""
    if not inspect.isclass(call):
        return inspect.isfunction(call) and not re.search("Strategy|Iterator", str(inspect.signature(call)))
    by_functions = (
        ActorSystem, AgentRef, AsyncActorSystem, AsyncAgentRef, AsyncEventFeed, AsyncReplyStream, Documents, EventFeed,
        Fleet, FunctionTool, Future, ReplyStream, Subscription,
        Tally,
    )  # fmt: skip
    if issubclass(call, (*by_functions, RuleBasedStateMachine, BaseException, Enum)) or getattr(
        call, "_is_protocol", False
    ):
        return False
    return not is_dataclass(call) or hasattr(call, "__post_init__")  # others are checked where they are handed in


def hints(call: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of something that can be called, with their types."""
    types = get_type_hints(call.__init__ if inspect.isclass(call) else call)
    known = inspect.signature(call).parameters.values()
    return {parameter.name: types[parameter.name] for parameter in known if parameter.kind is not parameter.VAR_KEYWORD}


def carried_out(call: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call it with arguments that are given by name."""
    known = inspect.signature(call).parameters
    first = [value for name, value in arguments.items() if known[name].kind is inspect.Parameter.POSITIONAL_ONLY]
    return call(*first, **{name: value for name, value in arguments.items() if name not in [*known][: len(first)]})


def taken(calls: Iterable[tuple[str, Callable[..., Any]]], these: Subject) -> Iterator[str]:
    """Call each with a value of a wrong type in the place of each argument; name what was not refused as bad input."""
    for name, call in calls:
        for parameter, hint in hints(call).items():
            for value in VALUES:
                if not any(fits(value, part) for part in parts_of(hint)):
                    try:
                        answer = carried_out(call, {**these.right(call), parameter: value})
                        if isinstance(answer, Future):
                            answer.get(timeout=30)
                    except Exception as error:
                        if not isinstance(error, BadInput) or not re.match(r"Expected .* got ", str(error)):
                            yield f"{name}({parameter}={shown(value)}): {error!r}"
                    else:
                        yield f"{name}({parameter}={shown(value)})"


@pytest.mark.slow("takes half a second")
def test_every_value_of_a_wrong_type_is_bad_input_to_every_parameter_of_all_that_is_public() -> None:
    with subject() as these:
        before = stored(these.running)
        assert list(taken([*these.methods(), *public().items()], these)) == []
        assert stored(these.running) == before


@pytest.mark.thorough("a second system; every run has the first")
def test_an_attached_system_refuses_wrong_arguments_alike(tmp_path: Path) -> None:
    database = str(tmp_path / "a.db")
    with ActorSystem.open(database, OfflineProvider()) as system, AttachedSystem.open(database) as attached:
        these = Subject(system, attached)
        before = stored(system)
        assert list(taken(these.methods(), these)) == []
        assert stored(system) == before


ODD: tuple[Any, ...] = (0, 1, 2**62, True, None, "", "\0", "\ud800", "x" * 100_000, {}, [], {"a": object()})
"""Values of right types that are hardly right."""


@pytest.mark.thorough("made-up arguments; every run has each wrong type for each parameter")
@cheaper("step", 5, 1, "each method; every run has a fifth")
def test_whatever_is_given_to_a_method_it_answers_or_raises_an_error_of_ours(step: int) -> None:
    with subject() as these:
        names = [name for name, _ in these.methods() if name != "ActorSystem.close"]
    for name in names[::step]:
        with subject() as these:
            call = dict(these.methods())[name]
            of_settings = dict.fromkeys(SETTINGS, Any) if name.endswith(".configure") else {}
            for parameter, hint in (hints(call) | of_settings).items():
                for value in odd(hint, these.known.get(parameter)):
                    attempt(these, call, {**these.right(call), parameter: value})


def odd(hint: Any, right: Any) -> Iterator[Any]:
    """Odd values of a type, and a record that came from us with something else in a field."""
    yield from (value for value in ODD if hint is Any or any(fits(value, part) for part in parts_of(hint)))
    if is_dataclass(right) and not isinstance(right, type):
        for field in fields(right):
            yield from (replace(right, **{field.name: value}) for value in (None, -1, [5], object()))


def is_at_rest(system: ActorSystem) -> bool:
    """Whether nobody has a turn, in rows and in memory: a prompt may not have begun yet."""
    return all(process.is_idle for process in system._processes) and not any(record.turn for record in system.agents())


def attempt(these: Subject, call: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Call with odd arguments: an error is one of ours, and a refused call has stored nothing."""
    eventually(lambda: is_at_rest(these.running), "the end of what was asked before")
    before = stored(these.running)
    try:
        answer = call(**arguments)
        if isinstance(answer, AsyncReplyStream):  # it opens beside the event loop
            answer._opening.get(timeout=30)
        if isinstance(answer, Future):
            answer.get(timeout=30)
    except BadInput:
        assert stored(these.running) == before
    except IkigaiError:
        pass


def answered_after_close(these: Subject) -> Iterator[str]:
    """What of a closed system answers all the same."""
    for name, call in these.methods():
        try:
            answer = call(**these.right(call))
            if isinstance(answer, Future):
                answer.get(timeout=30)
        except SystemClosed:
            continue
        yield name


def test_after_close_all_that_is_asked_raises_system_closed(tmp_path: Path) -> None:
    database = str(tmp_path / "a.db")
    with ActorSystem.open(database, OfflineProvider()) as system:
        with AttachedSystem.open(database) as attached:
            beside = Subject(system, attached)
        these = Subject(system, system)
    assert list(answered_after_close(these)) == ["ActorSystem.close", "Future.get"]
    assert list(answered_after_close(beside)) == ["AttachedSystem.close", "Future.get"]
    for closed in (system, attached):
        with pytest.raises(SystemClosed), closed:
            pytest.fail("it was entered")


@pytest.mark.parametrize("fine", [0, 0.0, 1, 2.5, LONGEST_TIME])
def test_a_time_in_seconds_is_taken_as_it_is(fine: float) -> None:
    assert check_seconds(fine, "period") == fine
    assert check_timeout(fine) == fine


@pytest.mark.parametrize("wrong", [None, "1", True, NAN, INFINITE, -INFINITE, -1, 2 * LONGEST_TIME, 1j, [1]])
def test_what_is_no_time_in_seconds_is_refused(wrong: object) -> None:
    with pytest.raises(BadInput, match="Expected period in seconds, 0 or more"):
        check_seconds(wrong, "period")


def test_a_number_that_no_database_holds_is_refused() -> None:
    assert check_count(2**63 - 1, "version") == 2**63 - 1
    with pytest.raises(BadInput, match="Expected version to be a whole number from 0 on; got 9223372036854775808"):
        check_count(2**63, "version")


class Broken:
    """Cannot be shown."""

    def __repr__(self) -> str:
        raise LookupError("no")


@pytest.mark.parametrize("value", ["x" * 1_000_000, [0] * 1_000_000, 10**4_000, Broken()])
def test_a_value_is_shown_in_a_few_words_whatever_it_is(value: object) -> None:
    assert len(shown(value)) < 200
