"""Pictures, PDFs and sounds: stored once, referred to by messages, sent to the model with the text."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import (
    ActorSystem,
    AgentRef,
    BadInput,
    OfflineProvider,
    Reply,
    Request,
    ScriptedProvider,
    Signal,
    ToolCall,
    attachment,
    tool,
)
from ikigai_actors.providers import PictureBlock
from ikigai_actors.providers.attachment_limits import MESSAGES_LIMITS
from ikigai_actors.providers.base import SUMMARISE, OnDelta
from ikigai_actors.providers.blocks import TextBlock, blobs_in
from ikigai_actors.records.fsck.check import check
from ikigai_actors.records.messages.blobs import drop_unreferenced, referenced
from ikigai_actors.store import open_store
from ikigai_actors.store.copy import copy_database
from ikigai_actors.system.attached import AttachedSystem
from ikigai_actors.testing import CrashPoint, ProcessCrashed, simulated
from ikigai_actors.testing.simulation.messages_api import violations
from ikigai_actors.tools import Result
from ikigai_actors.types import Attachment
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import eventually, sql
from tests.kit.pictures import GIF, MP3, PDF, PNG, painted
from tests.kit.programs import cheaper


def blobs(system: Any) -> list[tuple[str, int]]:
    """The type of each blob, and how many bytes it has."""
    rows = system._store.read(lambda tx: sql(tx, "SELECT media, bytes FROM blobs ORDER BY media"))
    return [(media, len(data)) for media, data in rows]


def seen(request: Request) -> list[Any]:
    """What the latest message of a request shows: texts, and the bytes of all else."""
    return [
        block["text"] if block["type"] == "text" else (block["type"], b64decode(block["source"]["data"]))
        for block in request.messages[-1]["content"]
    ]


def ask(agent: AgentRef, text: str, *attach: Any) -> Reply:
    return agent.prompt(text, attach=attach).get(timeout=DEADLINE)


def test_the_model_sees_what_is_attached_before_the_text(tmp_path: Path) -> None:
    (tmp_path / "plan.png").write_bytes(PNG)
    provider = ScriptedProvider(["a plan", "the same"])
    with ActorSystem.open(provider=provider) as system:
        ask(system.root, "What is this?", tmp_path / "plan.png", PDF)
        ask(system.root, "And this?", str(tmp_path / "plan.png"), MP3)
        assert seen(provider.requests[0]) == [("image", PNG), ("document", PDF), "What is this?"]
        assert seen(provider.requests[1]) == [("image", PNG), "(A sound: this model takes no audio)", "And this?"]
        assert blobs(system) == [("application/pdf", len(PDF)), ("audio/mpeg", len(MP3)), ("image/png", len(PNG))]
        first = system.root.history()[0].data["attached"][0]
        assert (first["name"], first["media"], first["size"]) == ("plan.png", "image/png", len(PNG))
        block = provider.requests[0].conversation[0].blocks[0]
        assert isinstance(block, PictureBlock)
        assert provider.requests[0].blobs[block.blob.sha256] == PNG
        assert check(system._store) == []
        body = {"model": "m", "max_tokens": 1, "messages": list(provider.requests[1].messages)}
        assert violations(json.loads(json.dumps(body))) == []


@pytest.mark.slow("takes a tenth of a second")
@cheaper("many", 10, 1_000, "a thousand forks")
def test_forks_after_a_picture_add_no_blob_and_further_mentions_neither(many: int) -> None:
    with ActorSystem.open(provider=OfflineProvider()) as system:
        ask(system.root, "Look.", PNG)
        for place in range(many):
            system.root.fork(name=f"kid{place}")
        for _ in range(many // 10):
            ask(system.agent("kid7"), "Look again.", PNG)
        assert blobs(system) == [("image/png", len(PNG))]


def test_a_child_is_forked_with_a_picture_and_inherits_that_of_its_parent() -> None:
    provider = ScriptedProvider(["one", "two"])
    with ActorSystem.open(provider=provider) as system:
        ask(system.root, "Look.", PNG)
        system.root.fork("And here?", attach=[GIF]).reply(timeout=DEADLINE)
        assert seen(provider.requests[1]) == [("image", GIF), "And here?"]
        assert [block["type"] for block in provider.requests[1].messages[0]["content"]] == ["image", "text"]


def test_what_cannot_be_attached_is_refused_before_anything_is_written() -> None:
    mistakes: list[Any] = ["plan.png", [b"text"], [PNG + b"x" * 2**25], ["nowhere.png"], [5], None]
    with ActorSystem.open(provider=OfflineProvider()) as system:
        for attach in mistakes:
            for act in (system.root.prompt, system.root.fork, system.root.aio.prompt, system.root.aio.fork):
                with pytest.raises(BadInput):
                    act("Look.", attach=attach)
        with pytest.raises(BadInput, match="Expected a prompt for the child"):
            system.root.fork(attach=[PNG])
        assert (system.root.history(), len(system.agents()), blobs(system)) == ([], 1, [])


def test_the_result_of_a_tool_may_have_pictures() -> None:
    @tool
    def chart() -> Attachment:
        """Draw a chart."""
        return attachment(PNG, "chart.png")

    @tool
    def charts() -> Result:
        """Draw charts."""
        return Result("two charts", attached=(attachment(PNG), attachment(GIF)))

    calls = Reply(tool_calls=(ToolCall("chart", {}, "a"), ToolCall("charts", {}, "b")))
    provider = ScriptedProvider([calls, "nice"])
    with ActorSystem.open(provider=provider, tools=[chart, charts]) as system:
        ask(system.root, "Draw.")
        first_result, two = sorted(
            provider.requests[1].messages[-1]["content"], key=lambda block: str(block["tool_use_id"])
        )
        assert [part["type"] for part in first_result["content"]] == ["image", "text"]
        assert first_result["content"][1]["text"] == f"chart.png, image/png, {len(PNG)} bytes"
        assert [part["type"] for part in two["content"]] == ["image", "image", "text"]
        assert [media for media, _ in blobs(system)] == ["image/gif", "image/png"]
        assert check(system._store) == []


@pytest.mark.sample(1, "attachments")
@pytest.mark.parametrize("attached", [(PNG,), ["x"], 5])
def test_wrong_attachments_of_a_tool_are_an_error_of_that_call(attached: Any) -> None:
    @tool
    def chart() -> Result:
        """Draw a chart."""
        return Result("a chart", attached=attached)

    with ActorSystem.open(
        provider=ScriptedProvider([Reply(tool_calls=(ToolCall("chart", {}, "a"),)), "so"]), tools=[chart]
    ) as system:
        assert ask(system.root, "Draw.").text == "so"
        [result] = [message for message in system.root.history() if message.kind == "tool_result"]
        assert result.data["is_error"]


@pytest.mark.thorough("what is attached, as above, from elsewhere")
def test_another_process_attaches_and_a_prompt_that_waits_for_cont_keeps_what_it_has(durable: str) -> None:
    provider = ScriptedProvider(["one", "two", "three"])
    with ActorSystem.open(durable, provider) as host, AttachedSystem.open(durable) as system:
        ask(system.root, "Look.", PNG)
        system.root.fork("And here?", attach=[GIF]).reply(timeout=DEADLINE)
        kid = host.root.fork()
        kid.signal(Signal.STOP)
        answer = kid.prompt("Later.", attach=[PDF])
        kid.signal(Signal.CONT)
        assert answer.get(timeout=DEADLINE).text == "three"
        assert [seen(request)[0] for request in provider.requests] == [
            ("image", PNG),
            ("image", GIF),
            ("document", PDF),
        ]


@pytest.mark.slow("takes a tenth of a second")
def test_blobs_are_copied_and_fsck_finds_one_that_is_missing_or_changed(tmp_path: Path) -> None:
    with ActorSystem.open(str(tmp_path / "a.db"), OfflineProvider()) as system:
        ask(system.root, "Look.", PNG, GIF)
    source, target = open_store(str(tmp_path / "a.db")), open_store(str(tmp_path / "b.db"))
    assert copy_database(source, target)["blobs"] == 2
    assert check(target) == []
    target.write(lambda tx: tx.schema.execute("UPDATE blobs SET bytes = x'00' WHERE media = 'image/gif'"))
    target.write(lambda tx: tx.schema.execute("DELETE FROM blobs WHERE media = 'image/png'"))
    text = " ".join(violation.text for violation in check(target))
    assert len(check(target)) == 2
    assert "to which message 1 refers; there is none" in text
    assert "they were changed" in text
    for store in (source, target):
        store.close()
    with ActorSystem.open(str(tmp_path / "b.db"), provider := ScriptedProvider(["well"])) as system:
        assert ask(system.root, "And now?").text == "well"
        assert "its bytes are missing" in provider.requests[0].messages[0]["content"][0]["text"]


def test_only_blobs_to_which_nothing_refers_are_dropped() -> None:
    with ActorSystem.open(provider=OfflineProvider()) as system:
        ask(system.root, "Look.", PNG, GIF)
        kid = system.root.fork()
        kid.signal(Signal.STOP)
        kid.prompt("Later.", attach=[PDF])
        eventually(
            lambda: len(set(system._store.read(lambda tx: list(referenced(tx))))) == 3, "the prompt that is kept"
        )
        assert system._store.write(drop_unreferenced) == 0
        system._store.write(lambda tx: tx.schema.execute("UPDATE messages SET data = NULL WHERE kind = 'user'"))
        assert system._store.write(drop_unreferenced) == 2
        assert [media for media, _ in blobs(system)] == ["application/pdf"]


@pytest.mark.sample(2, "commits")
@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("commit", [1, 2, 3])
def test_after_a_crash_a_message_and_its_picture_are_both_there_or_neither(commit: int, committed: bool) -> None:
    with simulated() as world:
        system = world.open(ScriptedProvider(lambda request: "seen"))
        world.crash_at(CrashPoint(commit, committed=committed))
        answer = system.root.prompt("Look.", attach=[PNG])
        try:
            world.settle()
        except ProcessCrashed:
            world.recover()
        system = world.system
        prompts = [message for message in system.root.history() if message.kind == "user"]
        assert len(blobs(system)) == len(prompts)
        assert check(system._store) == []
        if prompts:
            assert system.root.reply().text == "seen"
            assert seen(world.requests[-1]) == [("image", PNG), "Look."]
        del answer


class Picky(ScriptedProvider):
    """A model whose service takes what the Messages API takes, and refuses all else."""

    attachments = MESSAGES_LIMITS

    async def respond(self, request: Request, on_delta: OnDelta) -> Reply:
        body = {"model": "m", "max_tokens": 1, "messages": list(request.messages)}
        assert violations(json.loads(json.dumps(body))) == []
        return await super().respond(request, on_delta)


def pictures_in(request: Request) -> list[str]:
    """The names of the pictures that a request has."""
    blocks = [block for message in request.conversation for block in message.blocks]
    return [blob.name for block in blocks for blob in blobs_in(block)]


@pytest.mark.slow("takes a tenth of a second")
def test_an_agent_that_looks_at_many_large_pictures_goes_on_and_can_look_at_an_old_one_again() -> None:
    wide = painted([[(0, 0, 0, 255)] * 3_000])
    taken = 0

    @tool
    def shot() -> Result:
        """Take a screenshot."""
        nonlocal taken
        taken += 1
        return Result("seen", taken % 3 == 0, (attachment(wide + bytes([taken]), f"{taken}.png"),))

    def script(request: Request) -> Reply | str:
        latest = request.conversation[-1].blocks
        asked = latest[-1].text if isinstance(latest[-1], TextBlock) else ""
        if asked.startswith(SUMMARISE):
            assert pictures_in(request) == []
            return "notes"
        if taken < 22:
            return Reply(tool_calls=(ToolCall("shot"),))
        return Reply(tool_calls=(ToolCall("recall", {"message": 4}),)) if asked.startswith("The first") else "well"

    with ActorSystem.open(provider=(model := Picky(script)), tools=[shot]) as system:
        ask(system.root, "Look 22 times.")
        assert pictures_in(model.requests[-1])[-1] == "22.png"
        assert "(1.png, image/png" in str(model.requests[-1].messages)
        assert system.root.history()[3].data["attached"][0]["pixels"] == 3_000
        ask(system.root, "The first again, please.")
        assert pictures_in(model.requests[-1])[-1] == "1.png"
        system.root.compact()
        ask(system.root, "And now?")
        assert check(system._store) == []


@pytest.mark.slow("takes a tenth of a second")
def test_a_picture_that_the_service_does_not_take_is_a_line_of_text_to_its_model_alone() -> None:
    large = PNG + bytes(4 * 2**20)
    providers = {"picky": (picky := Picky(["no"])), "other": (other := ScriptedProvider(["yes"]))}
    with ActorSystem.open(provider="picky", providers=providers) as system:
        ask(system.root, "Look.", large)
        assert picky.requests[0].messages[0]["content"][0]["text"] == "(image/png, 4.0 MB: too large for this model)"
        system.root.configure(model="other")
        ask(system.root, "And you?")
        block = other.requests[0].messages[0]["content"][0]
        assert b64decode(block["source"]["data"]) == large
