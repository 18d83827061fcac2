"""Texts on their way into a database and back: the same, or refused with an error of ours and nothing stored."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.records.fsck.check import check
from tests.fuzz.hostile import fuzzed, long_texts, texts
from tests.fuzz.shells import refusals_allowed


@pytest.fixture(params=["sqlite", "postgres"], scope="module")
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ActorSystem]:
    """A system for all examples, on each database."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('fuzz') / 'agents.db'}"
    else:
        url = request.getfixturevalue("module_postgres")()
    with ActorSystem.open(url, OfflineProvider()) as opened:
        yield opened
        assert check(opened._store) == []


def refused(work: Callable[[], object]) -> bool:
    """Whether it is refused, by an error of ours that says something."""
    with refusals_allowed() as refusals:
        work()
    return bool(refusals)


@fuzzed(15)
@given(texts)
def test_a_name_is_kept_or_refused(system: ActorSystem, name: str) -> None:
    before = [record.uuid for record in system.agents()]
    if refused(lambda: system.root.fork(name=name)):
        assert [record.uuid for record in system.agents()] == before
        return
    child = system.agent(name)
    assert child.record.name == name
    child.kill()


@fuzzed(15)
@given(texts)
def test_nobody_is_found_by_a_text_that_is_nobodys(system: ActorSystem, text: str) -> None:
    assert refused(lambda: system.agent(text))
    assert refused(lambda: system.root.send(text, "x"))


@fuzzed(20)
@given(st.one_of(texts, long_texts))
def test_a_mail_arrives_as_it_was_sent_or_is_refused(system: ActorSystem, body: str) -> None:
    root = system.root
    root.read_mail()  # of the ends of other tests' agents
    if refused(lambda: root.send(root, body)):
        assert root.read_mail() == []
    else:
        assert [mail.body for mail in root.read_mail()] == [body]


@fuzzed(20)
@given(texts, st.one_of(texts, long_texts))
def test_a_document_is_read_as_it_was_written_or_is_refused(system: ActorSystem, path: str, body: str) -> None:
    documents = system.documents
    before = [version.path for version in documents.list()]
    for place in (path, "plan.md"):
        if refused(partial(documents.write, place, body)):
            assert [version.path for version in documents.list()] == before
        else:
            assert documents.read(place).body == body
            documents.delete(place)


@fuzzed(15)
@given(texts, st.dictionaries(texts, texts, max_size=2))
def test_marks_and_settings_are_kept_or_refused(system: ActorSystem, label: str, settings: dict[str, Any]) -> None:
    agent = system.root.fork()
    head = len(agent.history())
    if refused(lambda: agent.mark(label)):
        assert len(agent.history()) == head
    else:
        assert agent.context().marks[-1][0] == label
        agent.rewind(label)
    head = len(agent.history())
    kept = {key: value for key, value in settings.items() if key}
    if refused(lambda: agent.configure(**settings)):
        assert len(agent.history()) == head
    elif kept:
        assert kept.items() <= {**agent.context().settings, "": ""}.items()
    agent.kill()
