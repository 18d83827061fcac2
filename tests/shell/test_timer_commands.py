"""Timers at a terminal: /timer, ikigai timers."""

import json

import pytest
from click.testing import CliRunner

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.shell.cli.main import cli
from tests.kit.sessions import OpenSession


@pytest.mark.slow("takes a tenth of a second")
def test_a_person_sets_lists_and_cancels_timers_of_the_current_agent(open_session: OpenSession) -> None:
    session = open_session(OfflineProvider())
    assert session("/timer") == ["No timers."]
    [line] = session('/timer --every "0 9 * * 1-5" --zone Europe/Berlin --prompt look at the build')
    assert line.startswith("timer 1  ")
    assert line.endswith("09:00 Europe/Berlin, then 0 9 * * 1-5  prompt: look at the build")
    first, *times = session('/timer --every "0 9 * * 1-5" --zone Europe/Berlin')
    assert (first, len(times)) == ("With a TEXT it would fire, by the clocks of Europe/Berlin:", 5)
    assert all(" 09:00 +0" in line for line in times)
    session("/timer --after 2h tea")
    other = session.system.root.fork(name="other")
    other.send(session.system.root, "later", after=9_000)
    assert [line.rsplit("  ", 1)[1] for line in session("/timer") if "build" not in line] == [
        "reminder: tea",
        "mail from other: later",
    ]
    assert session("/timer --cancel 1") == ["timer 1 is cancelled"]
    for wrong, message in (
        ("/timer --after soon tea", "Expected a length of time"),
        ("/timer tea", "one of at, after and every"),
        ("/timer --at 2020-01-01 tea", "a time to come"),
        ("/timer --after 10m", "Say of what"),
        ("/timer --every 5s", "at least 1 minute apart"),
        ("/timer --cancel 1", "has no timer 1"),
    ):
        assert message in " ".join(session(wrong))
    assert len(session("/timer")) == 2


def test_a_person_sends_mail_later_or_hears_why_not(open_session: OpenSession) -> None:
    session = open_session(OfflineProvider())
    buyer = session.system.root.fork(name="buyer")
    [line] = session("/send --after 10m buyer The fair begins.")
    assert line.startswith("timer 1  ")
    assert line.endswith(f"mail from {session.system.root.record.short}: The fair begins.")
    [line] = session("/send --at 2030-01-01T09:00 --zone Europe/Berlin buyer tea")
    assert "2030-01-01 09:00 Europe/Berlin" in line
    for wrong, message in (
        ("/send --after soon buyer tea", "Expected a length of time"),
        ("/send --after 10m --at 09:00 buyer tea", "one of at, after"),
        ("/send --at 2020-01-01 buyer tea", "a time to come"),
        ("/send --at 09:00 --zone Mars/Olympus buyer tea", "the name of a time zone"),
        ("/send --zone Europe/Berlin buyer tea", "--zone is for --at"),
        ("/send --after 10m group:tasters tea", "members of a group may change"),
        ("/send --after 10m nobody tea", "nobody"),
        ("/send --after 10m buyer", "TEXT"),
    ):
        assert message in " ".join(session(wrong))
    assert [timer.body for timer in buyer.timers()] == ["The fair begins.", "tea"]
    assert not buyer.record.unread


def ikigai(database: str, *words: str) -> str:
    result = CliRunner().invoke(cli, ["--database", database, *words])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.slow("takes a tenth of a second")
def test_timers_are_set_listed_and_cancelled_beside_a_running_system_and_without_one(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as system:
        system.root.fork(name="buyer")
        assert ikigai(durable, "timers") == "No timers.\n"
        assert len(json.loads(ikigai(durable, "timers", "--every", "36h", "--json"))) == 5
        assert " 09:00 +0000" in ikigai(durable, "timers", "--every", "0 9 * * *", "--zone", "UTC")
        assert "reminder: look at it" in ikigai(durable, "timers", "buyer", "--after", "2h", "look", "at", "it")
        system.root.send("buyer", "tea", after=600)
    [first, second] = ikigai(durable, "timers").splitlines()
    assert (first.split()[:3], second.split()[:3]) == (["buyer", "timer", "2"], ["buyer", "timer", "1"])
    rows = json.loads(ikigai(durable, "timers", "buyer", "--json"))
    assert [(row["id"], row["as"], row["text"]) for row in rows] == [(2, "mail", "tea"), (1, "notice", "look at it")]
    assert ikigai(durable, "timers", "buyer", "--cancel", "2") == "timer 2 of buyer is cancelled\n"
    line = ikigai(durable, "send", "--at", "2030-01-01T09:00", "--zone", "Europe/Berlin", "buyer", "the", "fair")
    assert line == "buyer: timer 3  2030-01-01 09:00 Europe/Berlin  mail from a person: the fair\n"
    for late, message in (
        (["--after", "10m", "group:tasters"], "members of a group may change"),
        (["--zone", "Europe/Berlin", "buyer"], "--zone is for --at."),
        (["--after", "soon", "buyer"], "a length of time"),
    ):
        refused = CliRunner().invoke(cli, ["--database", durable, "send", *late, "tea"])
        assert message in f"{refused.exception}{refused.output}"
    for wrong in (["--cancel", "1"], ["buyer", "--after", "2h"], ["nobody"], ["buyer", "--after", "x", "tea"]):
        assert CliRunner().invoke(cli, ["--database", durable, "timers", *wrong]).exit_code != 0
