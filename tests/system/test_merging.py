"""Branches of a conversation come back together: diffs and merges, of programs, people and models."""

import asyncio
import json
import re
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    BadInput,
    Budget,
    BudgetExceeded,
    Message,
    ProviderError,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    TurnInterrupted,
    Usage,
)
from ikigai_actors.errors import AlreadyMerged, HeadMoved, NotBelow, NothingToMerge, TurnOpen
from ikigai_actors.providers.base import REPORT, OnDelta
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.log.merge_source import MergeSource
from ikigai_actors.store import Transaction, open_store
from ikigai_actors.store.base import T
from ikigai_actors.store.forwarding import ForwardingStore
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.types import MergedDocument
from tests.kit.blocking_provider import DEADLINE, Gate, Hanging
from tests.kit.echo import echo
from tests.kit.open_on import open_on
from tests.kit.sessions import OpenSession
from tests.kit.tool_scripts import calling, faults, prompts, requests_of, results, scripted


@pytest.mark.slow("takes a tenth of a second")
def test_a_diff_tells_what_is_in_common_and_what_each_has_said_since(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        root = system.root
        root.prompt("tea").get(timeout=DEADLINE)
        root.mark("here")
        child = root.fork("coffee", name="kid")
        child.reply(timeout=DEADLINE)
        root.prompt("milk").get(timeout=DEADLINE)
        diff = root.diff("kid")
        assert (diff.common, diff.holder) == (3, root.uuid)
        assert [message.kind for message in diff.a.messages] == ["fork", "user", "assistant"]
        assert [message.content for message in diff.b.messages] == ["", "coffee", "coffee / 3"]
        assert (diff.b.agent, diff.b.name, diff.b.head, diff.b.forgets) == (child.uuid, "kid", 6, False)
        child.rewind()
        back = child.diff(root)
        assert back.b == diff.a
        assert ([message.kind for message in back.a.messages], back.a.forgets) == (["rewind"], False)
        child.clear()
        child.kill()
        assert root.diff(child).b.messages == ()
        assert root.diff(child).b.forgets
        assert root.diff(root).common == root.diff(root).a.head
        with AttachedSystem.open(durable) as attached:
            assert attached.root.diff("kid") == root.diff("kid")


def test_a_model_sees_the_diff_of_its_child(database: str) -> None:
    provider = scripted(["tea", calling(("diff", {"agent": "kid"})), calling(("diff", {"agent": "nobody"})), "done"])
    with ActorSystem.open(database, provider) as system:
        system.root.prompt("brew").get(timeout=DEADLINE)
        child = system.root.fork(name="kid")
        child.mark()
        system.root.prompt("look").get(timeout=DEADLINE)
    [seen] = results(requests_of(provider, None)[2])
    assert seen.content.splitlines() == [
        "In common: the messages up to 2.",
        "",
        "You: 2 more",
        "  4 user: look",
        "  5 assistant: [calls diff]",
        "",
        "kid: nothing more",
    ]
    assert results(requests_of(provider, None)[3])[0].is_error


def test_the_shell_shows_a_diff(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider(echo))
    lines = session("tea", "/fork --name kid --no-follow", "/diff kid", "/diff nobody")
    root = words_of(session.system.root.uuid)
    at = lines.index("In common: the messages up to 2.")
    assert lines[at + 1 : -1] == [
        "",
        f"{f'{root}: 1 more':<38} │ kid: 1 more",
        "   3  fork  forked kid                 │    3  fork  inherited: 2 messages from",
        f"                                       │       {root}",
    ]
    assert lines[-1].startswith("error: No agent is named 'nobody'")


def test_line_mode_names_the_documents_of_a_merged_branch_and_conflicts(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider(echo))
    root, documents = session.system.root, session.system.documents
    kid = root.fork("dig", name="kid")
    kid.reply(timeout=DEADLINE)
    documents.write("map.md", "v1", author=kid)
    documents.write("map.md", "v2", author=root)
    documents.write("plan.md", "v1", author=kid)
    assert session("/merge kid") == [
        "merged kid: /history 1 shows it",
        "map.md, version 1, a conflict: somebody else has written version 2",
        "plan.md, version 1",
    ]


def last(agent: AgentRef) -> Message:
    """The latest message of its history."""
    return agent.history()[-1]


def test_a_parent_takes_in_what_its_child_has_said_once_for_each_head(durable: str) -> None:
    provider = ScriptedProvider(echo)
    with ActorSystem.open(durable, provider) as system:
        root = system.root
        root.prompt("tea").get(timeout=DEADLINE)
        child = root.fork("coffee", name="kid")
        child.reply(timeout=DEADLINE)
        done = root.merge(child)
        assert (done.position, done.head, done.text, done.documents, done.usage) == (4, 5, "coffee / 3", (), None)
        assert (last(root).kind, last(root).content) == ("merge", "coffee / 3")
        assert last(root).data == {"from": child.uuid, "name": "kid", "head": 5, "since": 2, "how": "result"}
        with pytest.raises(AlreadyMerged, match="has said nothing since"):
            root.merge("kid", how="summary")
        child.mark()  # no word
        with pytest.raises(AlreadyMerged):
            root.merge("kid", how="pick", positions=[4])
        child.prompt("milk").get(timeout=DEADLINE)
        assert root.merge(child).text == "milk / 5"
        assert last(root).data["since"] == 5
        root.prompt("and?").get(timeout=DEADLINE)
        assert prompts(provider.requests[-1]) == [
            '<merge from="kid" messages="3–5">\ncoffee / 3\n</merge>',
            '<merge from="kid" messages="6–8">\nmilk / 5\n</merge>',
            "and?",
        ]
        assert faults(provider.requests[-1]) == []
        assert check(system._store) == []


@pytest.mark.sample(1, "an order each")
@pytest.mark.parametrize("order", [("ann", "bob"), ("bob", "ann")])
def test_children_are_merged_in_either_order(database: str, order: tuple[str, str]) -> None:
    provider = ScriptedProvider(echo)
    with ActorSystem.open(database, provider) as system:
        root = system.root
        root.prompt("tea").get(timeout=DEADLINE)
        for name in ("ann", "bob"):
            root.fork(f"{name}'s part", name=name).reply(timeout=DEADLINE)
        for name in order:
            root.merge(name)
        root.prompt("and?").get(timeout=DEADLINE)
        said = [text.splitlines()[1] for text in prompts(provider.requests[-1])[:2]]
        assert [text.partition("'")[0] for text in said] == [*order]
        assert faults(provider.requests[-1]) == []
        for name in order:
            with pytest.raises(AlreadyMerged):
                root.merge(name)
        assert check(system._store) == []


def test_messages_that_are_picked_are_quoted_with_their_roles(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        root = system.root
        root.prompt("tea").get(timeout=DEADLINE)
        child = root.fork("coffee")
        child.reply(timeout=DEADLINE)
        for wrong in ([2], [3], [9], [4, 6]):
            with pytest.raises(BadInput, match=r"cannot be picked.*Those that can be: 4, 5"):
                root.merge(child, how="pick", positions=wrong)
        done = root.merge(child, how="pick", positions=[5, 4])
        assert done.text == "[5, reply]\ncoffee / 3\n\n[4, prompt]\ncoffee"
        assert last(root).data["positions"] == [5, 4]
        for how, positions in (("pick", ()), ("result", (4,)), ("all", ()), ("pick", (0,))):
            with pytest.raises(BadInput):
                root.merge(child, how=how, positions=positions)


def test_what_cannot_be_merged_says_why_and_changes_nothing(database: str) -> None:
    gate = Gate("opened")
    with ActorSystem.open(database, ScriptedProvider(["dug"]), providers={"gate": gate.provider}) as system:
        root = system.root
        child = root.fork(name="kid", model="gate")
        head = last(root).id
        with pytest.raises(NothingToMerge, match="has given no answer since it was forked"):
            root.merge(child)
        other = root.fork()
        for agent, below in ((child, root), (child, other), (root, root)):
            with pytest.raises(NotBelow):
                agent.merge(below)
        turn = child.prompt("go")
        gate.wait_until_asked()
        with pytest.raises(TurnOpen):
            root.merge(child)
        gate.open()
        turn.get(timeout=DEADLINE)
        child.configure(model="scripted")
        child.prompt("again").get(timeout=DEADLINE)
        with pytest.raises(ProviderError):
            child.prompt("too often").get(timeout=DEADLINE)
        assert last(root).id == head + 1  # the other's birth
        assert root.merge(child).text == "dug"
        assert check(system._store) == []


def test_a_dead_child_is_merged_with_the_result_of_its_exit_and_a_grandchild_too(durable: str) -> None:
    provider = scripted(
        root=["ok"], kid=["dug", calling(("exit", {"result": "found <gold></merge>"}))], grandkid=["deep"]
    )
    with ActorSystem.open(durable, provider) as system:
        root = system.root
        child = root.fork("dig", name="kid")
        child.reply(timeout=DEADLINE)
        below = child.fork("dive", name="grandkid")
        below.reply(timeout=DEADLINE)
        with pytest.raises(Exception):  # noqa: B017,PT011 - it exits
            child.prompt("up").get(timeout=DEADLINE)
        assert root.merge(child).text == "found <gold></merge>"
        assert root.merge("grandkid").text == "deep"
        assert last(root).data["since"] == 0
        root.prompt("so?").get(timeout=DEADLINE)
        seen = requests_of(provider, None)[-1]
        assert "found <gold>&lt;/merge>" in prompts(seen)[0]
        assert check(system._store) == []


class Notes:
    """A model that answers, and writes notes about its work when it is asked for them."""

    name = "notes"
    counts = True

    def __init__(self, before: Callable[[], Awaitable[object]] | None = None) -> None:
        """Make it; ``before`` is awaited before notes are given."""
        self.asked: list[Request] = []
        self._before = before

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Answer."""
        text = prompts(request)[-1]
        if not text.startswith(REPORT):
            return Reply(f"re: {text}", usage=Usage(10, 1), model="m")
        self.asked.append(request)
        if self._before is not None:
            await self._before()
        return Reply("it dug", usage=Usage(50, 5), model="m")

    async def close(self) -> None:
        """Holds nothing."""


def test_a_summary_is_written_by_the_childs_model_with_its_settings_and_paid_by_the_parent(durable: str) -> None:
    notes = Notes()
    with ActorSystem.open(durable, notes, budget={"tokens": 1_000_000}) as system:
        root = system.root
        root.prompt("tea").get(timeout=DEADLINE)
        child = root.fork("dig here", name="kid", system="You dig.")
        child.reply(timeout=DEADLINE)
        spent = root.record.spent_tokens, child.record.spent_tokens
        done = root.merge(child, how="summary")
        assert (done.text, done.usage) == ("it dug", Usage(50, 5))
        [asked] = notes.asked
        assert (asked.agent, asked.name, asked.system) == (child.uuid, "kid", "You dig.")
        assert "since the prompt that begins with “dig here”" in prompts(asked)[-1]
        assert faults(asked) == []
        assert last(root).data["usage"]["input_tokens"] == 50
        assert (root.record.spent_tokens - spent[0], child.record.spent_tokens) == (55, spent[1])
        assert check(system._store) == []


def test_a_summary_that_no_budget_has_room_for_is_refused(database: str) -> None:
    notes = Notes()
    with ActorSystem.open(database, notes, budget=Budget(tokens=1_000_000, strict=True)) as system:
        child = system.root.fork("dig")
        child.reply(timeout=DEADLINE)
        system.root.set_budget({"tokens": 100})
        with pytest.raises(BudgetExceeded):
            system.root.merge(child, how="summary")
        assert notes.asked == []
        assert system.root.merge(child).text == "re: dig"
        assert check(system._store) == []


def test_a_child_that_goes_on_while_it_is_summarised_is_not_merged_as_it_was(database: str) -> None:
    asked, moved = threading.Event(), threading.Event()

    async def wait() -> None:
        asked.set()
        await asyncio.to_thread(moved.wait, DEADLINE)

    with ActorSystem.open(database, Notes(wait), budget={"tokens": 1_000_000}) as system:
        root, child = system.root, system.root.fork("dig")
        child.reply(timeout=DEADLINE)
        merge = root.aio.merge(child, how="summary")
        assert asked.wait(DEADLINE)
        child.mark()
        moved.set()
        with pytest.raises(HeadMoved, match="from message 3 to 4"):
            merge.get(timeout=DEADLINE)
        assert [message.kind for message in root.history()] == ["fork"]
        assert root.merge(child, how="summary").head == 4
        assert root.record.spent_tokens == 2 * 55
        assert check(system._store) == []


class Reader:
    """A model with a window: its notes are all facts that it was shown, those in its earlier notes too."""

    name = "reader"

    def __init__(self, most: int, window: int = 0) -> None:
        self.most = most
        """The service refuses a longer request, in characters."""
        self._window = window
        self.asked: list[Request] = []
        self.refused = 0

    def window(self, model: str) -> int:
        """How many tokens it takes, if it tells."""
        return self._window

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        """Answer, or refuse."""
        text = json.dumps(list(request.messages))
        if REPORT not in prompts(request)[-1]:
            return Reply("done " * 20, usage=Usage(len(text) // 3, 20))
        if len(text) > self.most:
            self.refused += 1
            raise ProviderError("prompt is too long", free=True)
        self.asked.append(request)
        return Reply(" ".join(sorted(set(re.findall(r"FACT-\d+", text)))), usage=Usage(len(text) // 3, 5))

    async def close(self) -> None:
        """Holds nothing."""


WORDS = "so much was said about it " * 20


@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.sample(1, "long histories")
@pytest.mark.parametrize(
    ("most", "window", "inherited", "own", "requests"),
    [
        (9_000, 0, 20, 4, 1),  # what both inherit is left out
        (9_000, 0, 2, 40, 5),
        (9_000, 3_000, 2, 40, 7),  # nothing leaves that is too long
        (9_000, 0, 0, 120, 8),  # so many parts are read, and no more
        (0, 0, 2, 10, 0),
    ],
)
def test_notes_of_a_history_that_is_longer_than_the_window_are_made_in_parts(
    most: int, window: int, inherited: int, own: int, requests: int
) -> None:
    reader = Reader(most, window)
    with ActorSystem.open(":memory:", reader, budget={"tokens": 10**9}) as system:
        root = system.root
        root.configure(tools=["merge"], compact="off")
        for number in range(inherited):
            root.prompt(f"FACT-1{number:02} {WORDS}").get(timeout=DEADLINE)
        child = root.fork(name="kid")
        for number in range(own):
            child.prompt(f"FACT-2{number:03} {WORDS}").get(timeout=DEADLINE)
        spent = root.record.spent_tokens
        done = root.merge(child, how="summary", timeout=DEADLINE)
        assert len(reader.asked) == requests
        assert all(faults(request) == [] for request in reader.asked)
        assert (reader.refused > 0) is not bool(window)
        facts = set(re.findall(r"FACT-2\d\d\d", done.text))
        assert facts >= {f"FACT-2{number:03}" for number in range(own)} or "Nobody could summarise this" in done.text
        assert "FACT-2000" in facts
        assert f"FACT-2{own - 1:03}" in facts
        assert "FACT-1" not in done.text
        assert (done.usage or Usage()).all_tokens == root.record.spent_tokens - spent
        assert check(system._store) == []


class GoesOn(ForwardingStore):
    """A store in which something happens between what is looked at of a child and the read of its log."""

    meanwhile: Callable[[], object] | None = None

    def read(self, work: Callable[[Transaction], T]) -> T:
        source = super().read(work)
        if self.meanwhile is not None and isinstance(source, MergeSource):
            self.meanwhile()
        return source


def test_a_child_that_goes_on_before_its_history_is_read_costs_no_summary() -> None:
    store, notes = GoesOn(open_store(":memory:")), Notes()
    with open_on(store, notes) as system, ThreadPoolExecutor() as people:
        child = system.root.fork("dig")
        child.reply(timeout=DEADLINE)
        store.meanwhile = lambda: people.submit(child.mark).result(DEADLINE)
        with pytest.raises(HeadMoved, match="from message 3 to 4"):
            system.root.merge(child, how="summary", timeout=DEADLINE)
        store.meanwhile = None
        assert notes.asked == []
        assert system.root.merge(child, how="summary").head == 4


def test_an_interrupted_merge_changes_nothing(database: str) -> None:
    hanging, again = Hanging(""), Hanging("")
    calls = scripted([calling(("merge", {"agent": "kid", "how": "summary"}))])
    with ActorSystem.open(database, Notes(), providers={"hanging": hanging, "again": again, "calls": calls}) as system:
        root, child = system.root, system.root.fork("dig", name="kid")
        child.reply(timeout=DEADLINE)
        child.configure(compact_model="hanging:m")
        merge = root.aio.merge(child, how="summary")
        hanging.wait_until_asked()
        assert root.state == "merging"
        assert root.signal(Signal.INT)
        with pytest.raises(TurnInterrupted, match="merge"):
            merge.get(timeout=DEADLINE)
        root.configure(model="calls")
        child.configure(compact_model="again:m")
        turn = root.prompt("merge")
        again.wait_until_asked()
        root.signal(Signal.INT)
        with pytest.raises(TurnInterrupted):
            turn.get(timeout=DEADLINE)
        assert root.merge(child).text == "re: dig"
        assert check(system._store) == []


@pytest.mark.thorough("a command from elsewhere, as those in test_remote_commands")
def test_a_merge_is_asked_for_from_another_process_and_answered_there(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system, AttachedSystem.open(durable) as attached:
        child = system.root.fork("dig", name="kid")
        child.reply(timeout=DEADLINE)
        done = attached.root.merge("kid", timeout=DEADLINE)
        assert (done.text, done.position) == ("dig / 1", last(system.root).id)
        with pytest.raises(AlreadyMerged):
            attached.root.merge("kid", timeout=DEADLINE)
        child.prompt("on").get(timeout=DEADLINE)
        with pytest.raises(BadInput, match="cannot be picked"):
            attached.root.merge("kid", how="pick", positions=[99], timeout=DEADLINE)


def test_a_model_merges_its_child_within_its_turn(database: str) -> None:
    calls = [
        ("merge", {"agent": "kid"}),
        ("merge", {"agent": "kid"}),
        ("merge", {"agent": "nobody"}),
        ("merge", {"agent": "kid", "how": "pick", "positions": "x"}),
        ("merge", {"agent": "kid", "how": "all"}),
    ]
    provider = scripted([calling(*calls), "done"], kid=["dug"])
    with ActorSystem.open(database, provider) as system:
        child = system.root.fork("dig", name="kid")
        child.reply(timeout=DEADLINE)
        system.root.prompt("merge").get(timeout=DEADLINE)
        asked = requests_of(provider, None)[-1]
        first, *refused = results(asked)
        assert (first.content, first.is_error) == ("Merged: what kid has said follows.", False)
        assert [result.is_error for result in refused] == [True] * 4
        assert ["said nothing since" in refused[0].content, "nobody" in refused[1].content] == [True, True]
        assert prompts(asked) == ['<merge from="kid" messages="1–3">\ndug\n</merge>']
        assert check(system._store) == []


def test_a_model_has_its_child_summarised_within_its_turn(database: str) -> None:
    merge = calling(("merge", {"agent": "kid", "how": "summary"}))
    provider = scripted([merge, "done"])
    with ActorSystem.open(database, provider, providers={"notes": Notes()}, budget={"tokens": 1_000_000}) as system:
        child = system.root.fork("dig", name="kid", model="notes:m")
        child.reply(timeout=DEADLINE)
        assert system.root.prompt("merge").get(timeout=DEADLINE).text == "done"
        assert prompts(requests_of(provider, None)[-1]) == ['<merge from="kid" messages="1–4">\nit dug\n</merge>']
        assert [message.kind for message in system.root.history()][-4:] == [
            "assistant",
            "tool_result",
            "merge",
            "assistant",
        ]
        assert check(system._store) == []


def test_documents_of_the_branch_are_named_and_so_are_conflicts(database: str) -> None:
    provider = ScriptedProvider(echo)
    with ActorSystem.open(database, provider) as system:
        root, documents = system.root, system.documents
        documents.write("plan.md", "v1", author=root)
        child = root.fork("dig", name="kid")
        child.reply(timeout=DEADLINE)
        below = child.fork()
        documents.write("plan.md", "v2", author=child)
        documents.write("map.md", "v1", author=below)
        documents.write("map.md", "v2", author=root)
        documents.write("other.md", "v1", author=root)
        assert root.merge(child).documents == (MergedDocument("map.md", 1, 2), MergedDocument("plan.md", 2))
        assert documents.read("map.md").body == "v2"
        child.prompt("on").get(timeout=DEADLINE)
        root.prompt("so?").get(timeout=DEADLINE)
        shown = prompts(provider.requests[-1])[0]
        assert shown.startswith(
            '<merge from="kid" messages="1–4" documents="map.md v1, plan.md v2" conflicts="map.md v1, by others v2">'
        )
