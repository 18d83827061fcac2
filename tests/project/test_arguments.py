"""Wrong arguments of the public interface: refused at once, with the argument's name, and nothing is stored."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    BadInput,
    FunctionProvider,
    Future,
    IkigaiError,
    OfflineProvider,
    PendingCall,
    ScriptedProvider,
    Signal,
)
from ikigai_actors.arguments import LONGEST_TIME, check_count, check_seconds, check_timeout, shown
from ikigai_actors.records.documents import Documents
from ikigai_actors.store import Store
from ikigai_actors.system.approvals import Approvals
from ikigai_actors.system.attached.system import AttachedSystem
from tests.kit.databases import sql

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
    ({"tools": 5}, "Expected tools to be a list of tools; got 5"),
    ({"provider": 5}, r"Expected provider to be a provider, .*; got 5 \(int\)"),
    ({"provider": OfflineProvider}, "got the class OfflineProvider. Make one of it"),
    ({"provider": plain}, r"Put a function into FunctionProvider\(...\)"),
    ({"provider": Nameless()}, r"Expected the name of a provider .*; got None \(NoneType\)"),
    ({"provider": "claude"}, "There is no provider 'claude'"),
    ({"providers": {"a:b": OfflineProvider()}}, "Expected the name of a provider without a colon, .*; got 'a:b'"),
    ({"providers": {"": OfflineProvider()}}, "Expected the name of a provider"),
    ({"providers": {"a": 5}}, r"Expected providers\['a'\] to be a provider"),
    ({"providers": [OfflineProvider()]}, "Expected providers to be a dict from names to providers"),
    ({"workers": 0}, "Expected workers to be a whole number from 1 to 1,000; got 0"),
    ({"workers": -1}, "Expected workers"),
    ({"workers": 10**30}, "Expected workers"),
    ({"workers": True}, "Expected workers"),
    ({"patience": "1"}, "Expected patience in seconds, 0 or more"),
    ({"patience": NAN}, "Expected patience"),
    ({"lease": 0}, "Expected lease in seconds, above 0"),
    ({"lease": INFINITE}, "Expected lease"),
    ({"approvals": 5}, "Expected approvals to be a function, 'ask', 'deny' or 'allow'; got 5"),
    ({"approvals": ["ask"]}, "Expected approvals"),
    ({"on_orphan": "bury"}, "Expected on_orphan to be one of reparent, cascade, stop, continue; got 'bury'"),
    ({"resume": "no"}, "Expected resume to be True or False; got 'no'"),
    ({"database": 5}, "Expected a path, .*, got 5"),
    ({"database": b"a.db"}, "Expected a path"),
]


@pytest.mark.parametrize(("arguments", "said"), OPENING, ids=[said[:60] for _, said in OPENING])
def test_a_system_is_not_opened_with_a_wrong_argument_and_the_database_stays_free(
    durable: str, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        ActorSystem.open(**{"database": durable, "provider": "offline"} | arguments)
    ActorSystem.open(durable, "offline").close()


CALLS: list[tuple[Callable[[ActorSystem], Any], str]] = [
    (lambda system: system.agent(None), "Expected agent to be a uuid, .*; got None"),  # type: ignore[arg-type]
    (lambda system: system.agents(status="zzz"), "Expected status to be one of running, stopped, terminating, dead"),
    (lambda system: system.subscribe(5), "Expected callback to be a function that takes an event; got 5"),  # type: ignore[arg-type]
    (lambda system: system.root.fork(name=5), r"Expected name to be text; got 5 \(int\)"),  # type: ignore[arg-type]
    (lambda system: system.root.fork(timeout="1"), "Expected timeout in seconds, 0 .*; got '1'"),  # type: ignore[arg-type]
    (lambda system: system.root.fork(timeout=NAN), "Expected timeout in seconds"),
    (lambda system: system.root.mark(timeout=-1), "Expected timeout in seconds, 0 or more"),
    (lambda system: system.root.mark(0), "Expected label to be text; got 0"),  # type: ignore[arg-type]
    (lambda system: system.root.rewind(0), "Expected label to be text; got 0"),  # type: ignore[arg-type]
    (lambda system: system.root.wait("kid"), "Expected agents to be a list of agents, .*; got 'kid'"),
    (lambda system: system.root.wait(5), "Expected agents to be a list"),  # type: ignore[arg-type]
    (lambda system: system.root.mails(latest=-1), "Expected latest to be a whole number from 0 on; got -1"),
    (lambda system: system.root.history(all="yes"), "Expected all to be True or False"),  # type: ignore[arg-type]
    (lambda system: system.root.supervise(period=NAN), "Expected period in seconds, above 0"),
    (lambda system: system.root.supervise(period=1e300), "Expected period in seconds"),
    (lambda system: system.root.supervise(intensity=10**30), "Expected intensity to be a whole number from 0 to"),
    (lambda system: system.root.supervise(strategy=["one_for_one"]), "Expected strategy to be one of"),  # type: ignore[arg-type]
    (lambda system: system.root.signal("STOP"), "Expected a Signal, one of INT"),  # type: ignore[arg-type]
    (lambda system: system.root.signal(Signal.STOP, grace=NAN), "Expected grace in seconds"),
    (lambda system: system.root.kill(cascade="no"), "Expected cascade to be True or False; got 'no'"),  # type: ignore[arg-type]
    (lambda system: system.documents.write("a", "b", expect=-1), "Expected expect to be a whole number from 0 on"),
    (lambda system: system.documents.write("a", "b", timeout="1"), "Expected timeout"),  # type: ignore[arg-type]
    (lambda system: system.approvals.approve("1"), "Expected call to be one of those that `pending` gives"),  # type: ignore[arg-type]
    (lambda system: Future[int]().get(timeout="1"), "Expected timeout"),  # type: ignore[arg-type]
    (lambda system: FunctionProvider(5), "Expected fn to be a function that takes a request; got 5"),  # type: ignore[arg-type]
    (lambda system: ScriptedProvider(5), "Expected a script as a list of replies or a function, got 5"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "said"), CALLS, ids=[said[:50] for _, said in CALLS])
def test_a_wrong_argument_is_named_with_what_was_expected_and_what_came(
    call: Callable[[ActorSystem], Any], said: str
) -> None:
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        before = stored(system)
        with pytest.raises(BadInput, match=said):
            call(system)
        assert stored(system) == before


TABLES = ("agents", "messages", "mail", "documents", "signals", "requests")


def stored(system: ActorSystem) -> list[Any]:
    """All that the database holds."""
    store: Store = system.store
    return store.read(lambda tx: [sorted(map(repr, sql(tx, f"SELECT * FROM {table}"))) for table in TABLES])


Good = Mapping[str, Any]
"""Arguments that are right."""


class Subject:
    """A system with a child, and the right arguments for all that can be called of it."""

    def __init__(self, system: ActorSystem) -> None:
        self.system, self.kid = system, system.root.fork(name="kid")
        self.kid.mark("here")
        system.root.send(self.kid, "tea")
        system.documents.write("plan.md", "text")
        call = PendingCall(self.kid.uuid, 1, "1", "knock", {})
        alone: dict[str, Good] = {name: {} for name in ("close", "statistics", "check_open", "resume", "hosts")}
        self.of_system: dict[str, Good] = alone | {
            "agent": {"text": "kid"},
            "agents": {"status": None},
            "send": {"recipient": self.kid, "body": "text", "timeout": None},
            "subscribe": {"callback": print},
            "handle": {"uuid": self.kid.uuid},
            "actor": {"uuid": self.kid.uuid},
            "target": {"uuid": self.kid.uuid},
            "move": {"agent": self.kid, "host": "b", "timeout": None},
            "drain": {"timeout": None},
            "statistics_of": {"uuid": self.kid.uuid, "record": None},
            "state_of": {"record": self.kid.record},
            "touch": {"agent": self.kid},
        }
        commands: dict[str, Good] = {
            "prompt": {"text": "hello"},
            "fork": {
                "prompt": None, "name": "other", "model": None, "system": None, "restart": "transient",
                "on_orphan": None,
            },
            "reply": {},
            "clear": {},
            "mark": {"label": "here"},
            "rewind": {"label": None},
            "configure": {"model": "offline", "max_tokens": 5, "tools": []},
            "resume": {},
            "move": {"host": "b"},
            "rename": {"name": "kid"},
            "undo": {},
            "send": {"recipient": system.root, "body": "text"},
            "read_mail": {"sender": None},
            "wait": {"agents": [system.root], "timeout": 0},
            "signal": {"signal": Signal.STOP, "cascade": False, "reason": "", "grace": 1.0},
            "kill": {"cascade": False, "reason": ""},
            "exit": {"result": ""},
        }  # fmt: skip
        self.of_ask: dict[str, Good] = commands
        blocking = {
            name: {**good, "timeout": None} for name, good in commands.items() if name not in ("prompt", "wait")
        }
        readings: dict[str, Good] = {
            name: {} for name in ("children", "statistics", "settings_at_hand", "tools", "ranges", "context")
        }
        self.of_agent: dict[str, Good] = readings | commands | blocking | {
            "check_mail": {"timeout": None},
            "open_mail": {"number": 1, "timeout": None},
            "delete_mail": {"number": 1, "timeout": None},
            "mails": {"sender": None, "latest": None},
            "history": {"all": False},
            "supervise": {"strategy": None, "intensity": 3, "period": 5.0, "on_orphan": None, "timeout": None},
            "adopt": {"child": self.kid, "timeout": None},
        }  # fmt: skip
        change = {"path": "plan.md", "author": None, "expect": None, "timeout": None}
        self.of_documents: dict[str, Good] = {
            "write": {**change, "body": "text"},
            "delete": change,
            "read": {"path": "plan.md", "version": None},
            "list": {"prefix": ""},
            "log": {"path": "plan.md"},
        }
        self.of_approvals: dict[str, Good] = {
            "pending": {},
            "approve": {"call": call, "always": False, "timeout": None},
            "deny": {"call": call, "reason": "", "timeout": None},
        }

    def calls(self) -> list[tuple[object, str, Good]]:
        """What can be called, with its right arguments."""
        owners = (
            (self.system, self.of_system),
            (self.kid, self.of_agent),
            (self.kid.ask, self.of_ask),
            (self.system.documents, self.of_documents),
            (self.system.approvals, self.of_approvals),
        )
        return [(owner, name, good) for owner, methods in owners for name, good in methods.items()]


@contextmanager
def subject(open_system: Callable[[], ActorSystem]) -> Iterator[Subject]:
    with open_system() as system:
        yield Subject(system)


in_memory = partial(ActorSystem.open, ":memory:", OfflineProvider())


def methods(kind: type) -> set[str]:
    """The public methods of a class that belong to its objects."""
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name for name, _ in found if not name.startswith("_")}


def test_every_public_method_is_tried() -> None:
    with subject(in_memory) as tried:
        assert set(tried.of_system) == methods(ActorSystem)
        assert set(tried.of_agent) == methods(AgentRef)
        assert set(tried.of_ask) == methods(type(tried.kid.ask))
        assert set(tried.of_documents) == methods(Documents)
        assert set(tried.of_approvals) == methods(Approvals)
        for owner, name, good in tried.calls():
            known = inspect.signature(getattr(owner, name)).parameters
            if name != "configure":
                assert set(good) == set(known), name


THINGS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from((0, -1, 1, 2**31, 2**63, 10**30)),
    st.floats(),
    st.sampled_from((1e300, NAN, INFINITE, -0.5, LONGEST_TIME)),
    st.text(st.characters(), max_size=5),
    st.sampled_from(("", " ", "\0", "\ud800", "x" * 100_000, "kid", "a" * 22, "../etc")),
    st.binary(max_size=3),
    st.lists(st.integers() | st.text(max_size=3) | st.none() | st.lists(st.none()), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers() | st.floats(), max_size=2),
    st.builds(object),
    st.sampled_from((print, int, Signal.STOP, Signal, OfflineProvider(), ..., ("kid",), {"kid"}, plain)),
)


def attempt(tried: Subject, owner: object, name: str, arguments: Good) -> None:
    """Call with arguments, perhaps wrong ones: an error is one of ours, and a refused call has stored nothing."""
    before = stored(tried.system)
    try:
        answer = getattr(owner, name)(**arguments)
        if isinstance(answer, Future):
            answer.get(timeout=30)
    except BadInput:
        refused = True
    except IkigaiError:
        refused = False
    else:
        refused = False
    assert not refused or stored(tried.system) == before


@settings(max_examples=150)
@given(st.data())
def test_whatever_is_given_to_a_public_method_it_answers_or_raises_an_error_of_ours(data: st.DataObject) -> None:
    with subject(in_memory) as tried:
        owner, name, good = data.draw(st.sampled_from(tried.calls()), "method")
        which = data.draw(st.sampled_from(sorted(good)), "argument") if good else None
        arguments = dict(good)
        if which:
            arguments[which] = data.draw(THINGS, which)
        if which == "agents":
            arguments["timeout"] = 0
        attempt(tried, owner, name, arguments)


def test_none_and_nothing_are_refused_or_taken_by_every_argument_of_every_public_method() -> None:
    for thing in (None, NAN, -1, "", object(), [[]]):
        with subject(in_memory) as tried:
            for owner, name, good in tried.calls():
                if name in ("close", "kill", "exit", "signal"):
                    continue
                for which in good:
                    arguments = {**good, which: thing}
                    if name != "wait" or which != "timeout" or thing is not None:
                        attempt(tried, owner, name, arguments)


def test_an_attached_system_refuses_wrong_arguments_alike(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as system, AttachedSystem.open(durable) as attached:
        before = stored(system)
        calls: list[Callable[[], object]] = [
            lambda: attached.agent(None),  # type: ignore[arg-type]
            lambda: attached.agents("zzz"),
            lambda: attached.subscribe(5),  # type: ignore[arg-type]
            lambda: attached.root.send(attached.root, "x", timeout=NAN),
            lambda: attached.root.prompt(5),  # type: ignore[arg-type]
            lambda: attached.root.signal(Signal.STOP, timeout="1"),  # type: ignore[arg-type]
            lambda: attached.root.supervise(intensity=-1),
            lambda: attached.documents.write("a", "b", timeout=-1),
        ]
        for call in calls:
            with pytest.raises(BadInput):
                call()
        assert stored(system) == before


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
