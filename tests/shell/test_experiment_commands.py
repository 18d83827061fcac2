"""Experiments at a terminal, with a person as the judge."""

import re

import pytest

from ikigai_actors import Request, ScriptedProvider
from ikigai_actors.behaviour.book import Book
from tests.kit.sessions import OpenSession


def clerk(request: Request) -> str:
    """Quotes in dollars once a customer from Texas was there; with a system prompt it is polite."""
    said = [part["text"] for message in request.messages if message["role"] == "user" for part in message["content"]]
    currency = "dollars" if any("Texas" in text for text in said[:-1]) else "euros"
    return f"{'Please: ' if request.system else ''}{said[-1]} {currency}"


@pytest.mark.slow("takes a tenth of a second")
def test_a_person_bisects_a_history_and_the_next_session_goes_on(open_session: OpenSession, database: str) -> None:
    session = open_session(ScriptedProvider(clerk))
    for text in ("Assam", "from Texas", "Ceylon", "Keemun"):
        session(text)
    bad = [message.id for message in session.system.root.history() if message.kind == "assistant"][1]
    lines = session('/bisect "In which currency?"')
    assert lines[0] == "At most 60 trials, 60 requests to scripted; no tokens on record."
    for _ in range(20):
        if "/good, /bad or /skip?" not in lines[-1]:
            break
        verdict = "bad" if "dollars" in " ".join(lines) else "good"
        lines = session(f"/{verdict}")
        assert re.fullmatch(rf"trial \d+: {verdict}", lines[0])
    assert re.fullmatch(rf"Message {bad} ends the first bad turn \(99\.\d % sure, \d+ answers\)\.", lines[-1])
    [line] = session("/experiments")
    assert "bisect of" in line
    assert "No bisection" in session("/good")[-1]


@pytest.mark.slow("takes a tenth of a second")
def test_of_two_bisections_that_which_was_shown_last_is_judged(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider(clerk))
    for text in ("Assam", "Ceylon"):
        session(text)
    lines = session("/bisect one?", "/bisect two?", "/good", "/bisect one?", "/bad", "/experiments")
    first, second = lines[-2:]
    assert [line for line in lines if line.startswith("trial")] == ["trial 1: good", "trial 1: bad"]
    assert "1 of 2 trials judged" in first
    assert "1 of 2 trials judged" in second
    experiments = (session.system.handle(record.uuid) for record in session.system.agents() if record.name)
    books = [Book(experiment.uuid, experiment.history(all=True)) for experiment in experiments]
    probes = {(book.terms or {})["probe"]: book.judged[1].verdict.score for book in books}
    assert probes == {"one?": 0.0, "two?": 1.0}


@pytest.mark.slow("takes a tenth of a second")
def test_a_verdict_too_many_is_none_on_an_answer_that_nobody_has_seen(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider(clerk))
    session("Assam")
    lines = session("/bisect one?", "/bisect two?", *["/good"] * 9)
    ended = next(place for place, line in enumerate(lines) if line.startswith("No step: nothing"))
    assert lines[ended + 1 : ended + 4] == ["one? euros", "Answer 1 to “one?”: /good, /bad or /skip?", "trial 1: good"]


def test_a_person_replays_the_turns_of_an_agent_with_another_setting(open_session: OpenSession) -> None:
    session = open_session(ScriptedProvider(clerk))
    assert session("/experiments") == ["There is no experiment."]
    assert "no turn" in session("/replay")[-1]
    session("Assam")
    *_, line, counts = session("/replay")
    assert re.fullmatch(r"turn \d+ of [\w-]+: same", line)
    assert counts == "1 replayed, none differs."
    said, *lines = session('/replay "system=Be polite."')
    assert said == "At most 1 trial, 1 request to scripted; no tokens on record."
    assert "text: Assam euros → Please: Assam euros" in lines[0]
    assert lines[-1] == "1 replayed, 1 differ: 1 text."
    assert "SETTING=VALUE" in session("/replay system")[-1]
    assert len(session("/experiments")) == 2
