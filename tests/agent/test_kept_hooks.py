"""Hooks that must be asked: nothing that an agent, its program or a look back does drops them."""

from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, Child, ScriptedProvider, current_agent
from ikigai_actors.errors import StepFailed
from ikigai_actors.programs import program
from ikigai_actors.records.fsck.check import check
from tests.kit.blocking_provider import DEADLINE
from tests.kit.echo import echo


def hooks_of(agent: Any) -> list[str]:
    return list(agent.context().settings.get("hooks") or ())


def test_a_look_back_before_the_hooks_were_set_keeps_them(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        kid = system.root.fork(name="kid")
        kid.mark("early")
        kid.prompt("one").get(timeout=DEADLINE)
        kid.configure(hooks=["after_call:audit"])
        kid.prompt("two").get(timeout=DEADLINE)
        kid.undo()
        kid.rewind("early")
        assert hooks_of(kid) == ["after_call:audit"]
        kid.clear()
        assert hooks_of(kid) == ["after_call:audit"]
        assert check(system._store) == []


def test_a_child_from_before_the_hooks_were_set_has_them_and_drops_none(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(echo)) as system:
        kid = system.root.fork(name="kid")
        kid.prompt("one").get(timeout=DEADLINE)
        at = kid.history()[-1].id
        kid.configure(hooks=["after_call:audit"], max_steps=5)
        child = kid.fork(at=at)
        assert hooks_of(child) == ["after_call:audit"]
        with pytest.raises(BadInput, match="can only add hooks: after_call:audit"):
            child.configure(hooks=None)
        child.configure(hooks=["after_call:audit", "after_call:more"])
        child.configure(hooks=["after_call:audit"])
        for lost in ({"hooks": None}, {"hooks": ["after_call:more"]}):
            with pytest.raises(BadInput, match="child can only add hooks: after_call:audit"):
                kid.fork_many([Child(kid, settings=lost)])
        [born] = kid.fork_many([Child(kid, at=at, settings={"hooks": ["after_call:audit", "after_call:more"]})])
        assert hooks_of(born) == ["after_call:audit", "after_call:more"]
        assert check(system._store) == []


@program
def careless(prompt: str) -> str:
    me = current_agent()
    me.configure(hooks=["after_call:audit", "after_call:more"])
    try:
        me.configure(hooks=["after_call:more"])
    except StepFailed as error:
        return str(error)
    return "dropped"


def test_a_program_adds_hooks_to_its_own_agent_and_drops_none(database: str) -> None:
    with ActorSystem.open(database, ScriptedProvider(echo), programs=[careless]) as system:
        kid = system.root.fork(name="kid", model=careless)
        kid.configure(hooks=["after_call:audit"])
        assert "only add hooks to its own agent: after_call:audit" in kid.prompt("go").get(timeout=DEADLINE).text
        assert hooks_of(kid) == ["after_call:audit", "after_call:more"]
        assert check(system._store) == []
