"""The soak's short form, and its judge: what it is there to find, it finds."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ikigai_actors import AgentRecord, Message
from ikigai_actors.records.documents import Document
from ikigai_actors.records.mail.mail import MAIL, PROMPT, Mail
from ikigai_actors.records.messages.messages import Kind
from tests.soak import judge
from tests.soak.conductor import SHORT, soak
from tests.soak.disturbances import CUT, END, FILL, FREEZE, KILL, RESTART
from tests.soak.holdings import Holdings
from tests.soak.ledger import (
    Asked,
    Buried,
    Complaint,
    Did,
    Ended,
    Entry,
    Figures,
    Forked,
    Ledger,
    LedgerReader,
    Refused,
    Sent,
    Took,
    Trying,
    Wrote,
)
from tests.soak.model import Order, order_of, reply

KINDS = {"sqlite": {KILL, END, FREEZE, FILL}, "postgres": {KILL, END, FREEZE, CUT, RESTART}}


@pytest.mark.thorough("a soak of seconds; its judge, hands and model are tested beside it")
@pytest.mark.parametrize("kind", KINDS)
def test_a_short_soak_finds_nothing(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IKIGAI_TEST_DATABASE_URL", raising=False)  # a server that may be restarted
    report = soak(kind, SHORT, 1, tmp_path)
    assert report.violations == []
    assert json.loads(json.dumps(report.as_json()))["counts"] == report.counts
    assert report.summary().endswith("violations    none")
    assert set(report.disturbances) == KINDS[kind]
    assert report.counts["most waits at once"] >= SHORT.crowd
    assert min(report.counts[what] for what in ("prompts acknowledged", "mails acknowledged", "deaths")) > 0


# The judge. A small life, told twice: what was acknowledged, and what the database holds.


class Life(NamedTuple):
    """What there is to judge."""

    entries: list[Entry]
    now: Holdings
    ran: Counter[str]
    before: Holdings

    def faults(self) -> list[str]:
        """The first word of each violation."""
        faults = [
            *judge.complaints(self.entries),
            *judge.mail(self.entries, self.now),
            *judge.readings(self.entries, self.entries, self.now),
            *judge.prompts(self.entries, self.now),
            *judge.tools(self.ran, self.now),
            *judge.lives(self.entries, self.before, self.now),
            *judge.documents(self.entries, self.now),
        ]
        return sorted({fault.split(":")[0] for fault in faults})

    def also(self, *entries: Entry) -> "Life":
        """Something more was acknowledged."""
        return self._replace(entries=[*self.entries, *entries])

    def put(self, message: Message) -> "Life":
        """A message is there, perhaps in the place of another."""
        log = {**self.now.logs[message.agent_uuid], message.id: message}
        return self._replace(now=self.now._replace(logs={**self.now.logs, message.agent_uuid: log}))

    def without(self, agent: str, position: int) -> "Life":
        """A message is not there."""
        log = {place: message for place, message in self.now.logs[agent].items() if place != position}
        return self._replace(now=self.now._replace(logs={**self.now.logs, agent: log}))

    def mailed(self, mail: Mail) -> "Life":
        """A mail is there, perhaps in the place of another."""
        return self._replace(now=self.now._replace(mails={**self.now.mails, (mail.recipient, mail.id): mail}))

    def version(self, number: int, body: str) -> "Life":
        """A version of the document says something else."""
        versions = list(self.now.documents["d"])
        versions[number - 1] = replace(versions[number - 1], body=body)
        return self._replace(now=self.now._replace(documents={"d": versions}))

    def record(self, uuid: str, **changes: Any) -> "Life":
        """An agent's row says something else."""
        records = {**self.now.records, uuid: replace(self.now.records[uuid], **changes)}
        return self._replace(now=self.now._replace(records=records))


def agent(uuid: str, parent: str | None, dead: bool = False) -> AgentRecord:
    status, ended = ("dead", 5) if dead else ("running", None)
    return AgentRecord(uuid, None, parent, parent, 0, status, 0, "transient", None, 1, ended, 0, "host", 1)


def log(uuid: str, *said: tuple[str, str, dict[str, Any]]) -> dict[int, Message]:
    return {place: Message(uuid, place, kind, text, data, 1) for place, (kind, text, data) in enumerate(said, 1)}


def result(call: str, name: str, text: str, **data: Any) -> tuple[str, str, dict[str, Any]]:
    return Kind.TOOL_RESULT, text, {"tool_use_id": call, "name": name, **data}


def started(call: str, name: str) -> tuple[str, str, dict[str, Any]]:
    return Kind.TOOL_CALL, name, {"tool_use_id": call, "name": name}


@pytest.fixture
def life() -> Life:
    root = log(
        "root",
        (Kind.USER, "p/1.0.1", {}),
        started("k1", "once"),
        result("k1", "once", "did k1"),
        result("k2", "send", "Sent"),
        result("k3", "read_mail", "mail 2 from somebody:\nh/1.0.3"),
        result("k4", "document_write", "Version 2."),
        result("k5", "send", "It is dead.", is_error=True),
        (Kind.ASSISTANT, "done", {}),
        (Kind.USER, "o/2", {}),
        (Kind.ASSISTANT, "done too", {}),
    )
    mails = [
        Mail("root", 1, "a", MAIL, "h/1.0.2", 1, 1),
        Mail("root", 2, "a", MAIL, "h/1.0.3", 1, 1),
        Mail("root", 3, None, PROMPT, "o/2", 1, 1),
        Mail("a", 1, "root", MAIL, "m/k2", 1, None),
    ]
    versions = [Document("d", 1, "a", 1, "h/1.0.4"), Document("d", 2, "root", 1, "h/1.0.4\nm/k4")]
    holdings = Holdings(
        {"root": agent("root", None), "a": agent("a", "root", dead=True)},
        {"root": root, "a": log("a", (Kind.FORK, "", {}))},
        {(mail.recipient, mail.id): mail for mail in mails},
        {"d": versions},
    )
    entries: list[Entry] = [
        Forked(0, "root", "a"),
        Ended(0, "root", "p/1.0.1", Kind.ASSISTANT, "done"),
        Sent(0, "a", "root", 1, "h/1.0.2"),
        Sent(0, "a", "root", 2, "h/1.0.3"),
        Asked("root", 3, "o/2"),
        Trying(0, "read", "root"),
        Took(0, "root", [1]),
        Wrote(0, "d", 1, "h/1.0.4"),
        Buried(0, {"a": 1}),
        Did(0, "check"),
    ]
    return Life(entries, holdings, Counter({"once k1": 1}), holdings)


def test_the_judge_has_nothing_to_say_of_a_sound_life(life: Life) -> None:
    assert life.faults() == []
    assert list(judge.wrote_after(1, life.before, life.now)) == []


DAMAGES: list[tuple[str, Callable[[Life], Life]]] = [
    ("complaint", lambda life: life.also(Complaint("something broke"))),
    ("mail", lambda life: life.also(Sent(0, None, "root", 9, "h/1.0.9"))),
    ("mail", lambda life: life.mailed(replace(life.now.mails["root", 1], sender="root"))),
    ("mail", lambda life: life.mailed(Mail("a", 2, "a", MAIL, "h/1.0.2", 1, None))),  # twice
    ("mail", lambda life: life.also(Sent(0, "a", "root", 1, "h/1.0.2"))),  # an earlier number, later
    ("mail", lambda life: life.also(Refused(0, "send", "1.0.2", "AgentDead", True))),
    ("mail", lambda life: life.put(Message("root", 4, *result("k2", "send", "Refused", is_error=True), 1))),
    ("mail", lambda life: life.mailed(Mail("a", 2, "root", MAIL, "m/k5", 1, None))),
    ("mail", lambda life: life.mailed(Mail("a", 2, "root", MAIL, "m/k9", 1, None))),  # of a call that is not there
    ("mail", lambda life: life.without("root", 4)),
    ("mail", lambda life: life.put(Message("root", 4, *result("k9", "send", "Sent"), 1))),
    ("mail", lambda life: life.also(Took(0, "root", [2]))),  # shown twice
    ("mail", lambda life: life.also(Took(0, "root", [9]))),
    ("mail", lambda life: life.mailed(replace(life.now.mails["root", 2], read_at=None))),
    ("mail", lambda life: life.mailed(replace(life.now.mails["a", 1], read_at=1))),  # shown to nobody
    ("prompt", lambda life: life.without("root", 8)),
    ("prompt", lambda life: life.without("root", 10)),
    ("prompt", lambda life: life.also(Ended(0, "root", "p/1.0.1", Kind.ASSISTANT, "otherwise"))),
    ("prompt", lambda life: life.put(Message("root", 9, Kind.USER, "p/1.0.1", {}, 1))),  # twice
    ("prompt", lambda life: life.mailed(replace(life.now.mails["root", 3], read_at=None))),
    ("prompt", lambda life: life.mailed(replace(life.now.mails["root", 3], body="o/3"))),
    ("prompt", lambda life: life.also(Asked("root", 3, "o/3"))),
    ("tool", lambda life: life._replace(ran=Counter({"once k1": 2}))),
    ("tool", lambda life: life._replace(ran=Counter({"again k7": 1}))),  # no record says that it starts
    ("life", lambda life: life.also(Forked(0, "root", "b"))),
    ("life", lambda life: life.also(Buried(0, {"root": 10}))),
    ("life", lambda life: life.also(Buried(0, {"b": 10}))),
    ("life", lambda life: life.put(Message("a", 2, Kind.ASSISTANT, "still here", {}, 1))),
    ("life", lambda life: life.record("a", status="running")),
    ("life", lambda life: life.put(replace(life.now.logs["root"][8], content="I never said that."))),
    ("document", lambda life: life.version(2, "m/k4")),
    ("document", lambda life: life.version(2, "h/1.0.4\nh/1.0.4")),
    ("document", lambda life: life.version(1, "h/1.0.5\nh/1.0.4")),
    ("document", lambda life: life.also(Wrote(0, "d", 3, "h/1.0.6"))),
    ("document", lambda life: life.also(Refused(0, "write", "1.0.4", "DocumentChanged", True))),
    ("document", lambda life: life.put(Message("root", 6, *result("k4", "document_write", "No", is_error=True), 1))),
]


@pytest.mark.parametrize(("expected", "damage"), DAMAGES)
def test_the_judge_sees_damage(life: Life, expected: str, damage: Callable[[Life], Life]) -> None:
    assert expected in damage(life).faults()


def test_mail_that_a_reader_was_cut_off_from_is_excused(life: Life) -> None:
    read = life.mailed(replace(life.now.mails["a", 1], read_at=1))
    assert read.faults() == ["mail"]
    assert read.also(Trying(1, "read", "a")).faults() == []
    assert read.also(Trying(1, "read", "a"), Refused(1, "read", "1.1.1", "SystemClosed", False)).faults() == []
    assert read.also(Trying(1, "read", "a"), Refused(1, "read", "1.1.1", "AgentDead", True)).faults() == ["mail"]


def figures(*rounds: tuple[int, int, int], end: tuple[int, int] = (1, 10)) -> list[Figures]:
    readings = [Figures("round", memory << 20, threads, files, 0, 0) for memory, threads, files in rounds]
    return [Figures("start", 50 << 20, 1, 10, 0, 0), *readings, Figures("closed", 90 << 20, *end, 0, 0)]


def test_the_judge_sees_what_grows_from_round_to_round() -> None:
    level = [(90, 9, 20), (120, 12, 25), (121, 12, 26), (119, 13, 25), (120, 12, 25)]
    assert list(judge.leaks(figures(*level))) == []
    assert list(judge.leaks(figures(level[0], *((120 + 12 * n, 12, 25) for n in range(4))))) != []
    assert list(judge.leaks(figures(level[0], *((120, 12 + 3 * n, 25) for n in range(4))))) != []
    assert list(judge.leaks(figures(level[0], *((120, 12, 25 + 3 * n) for n in range(4))))) != []
    assert list(judge.leaks(figures(level[0], (999, 99, 99)))) == []  # too few to tell
    assert len(list(judge.leaks(figures(*level, end=(9, 99))))) == 2


# What it stands on.


def test_a_ledger_gives_back_what_was_written_and_waits_for_whole_lines(tmp_path: Path) -> None:
    reader = LedgerReader(tmp_path / "ledger")
    assert reader.read() == []
    written: list[Entry] = [Sent(1, None, "a", 2, "h/1"), Buried(0, {"a": 3}), Took(2, "a", [1, 2]), Complaint("“so”")]
    ledger = Ledger(tmp_path / "ledger")
    for entry in written:
        ledger.write(entry)
    ledger.close()
    with (tmp_path / "ledger").open("a") as file:
        file.write('["Did", 0, "ch')
    assert reader.read() == written
    with (tmp_path / "ledger").open("a") as file:
        file.write('eck"]\n')
    assert reader.read() == [Did(0, "check")]
    assert reader.entries == [*written, Did(0, "check")]


def test_the_model_answers_the_same_request_alike_and_different_ones_with_other_calls() -> None:
    def request(token: str) -> dict[str, Any]:
        text = str(Order(token, "somebody", "d.md"))
        return {"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]}

    assert order_of(str(Order("p/1", "a", "b"))) == Order("p/1", "a", "b")
    assert order_of("Go on.") is None
    said = [reply(request(f"p/{number}")) for number in range(40)]
    assert said == [reply(request(f"p/{number}")) for number in range(40)]
    ids = [block["id"] for entry in said for block in entry.blocks if block["type"] == "tool_use"]
    assert len(ids) == len(set(ids)) > 40
