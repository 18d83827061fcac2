"""Children of a kind, for all kinds and settings: none may do more than its parent."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import tool
from ikigai_actors.agent.toolbox import Toolbox
from ikigai_actors.agent.turn.kinds import messages_of_kind
from ikigai_actors.agent.turn.typed import EXIT
from ikigai_actors.frozen import NO_DATA
from ikigai_actors.records.messages.kinds import is_kind, pinned_kind
from ikigai_actors.records.messages.messages import Kind
from ikigai_actors.records.messages.settings import MAX_STEPS, check_settings


@tool
def read(path: str) -> str:
    """Read a file."""
    return path


@tool
def delete(path: str) -> str:
    """Delete a file."""
    return path


TOOLBOX = Toolbox([read, delete])
NAMES = st.lists(st.sampled_from(["read", "delete", "fork", "send", "recall", EXIT, "unknown"]), max_size=5)
STEPS = st.integers(1, 2 * MAX_STEPS)
PARENTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "tools": NAMES,
        "max_steps": STEPS,
        "max_agents": st.integers(1, 9),
        "hooks": st.just(["guard"]),
        "fork_models": st.just(["scripted:small"]),
    },
)
KINDS = st.fixed_dictionaries(
    {"name": st.just("reviewer"), "description": st.just("Reviews.")},
    optional={
        "tools": NAMES,
        "without": NAMES,
        "max_steps": STEPS,
        "system": st.just("You review."),
        "model": st.just("scripted:big"),
        "history": st.just("inherit"),
    },
)


@given(parent=PARENTS, file=KINDS, further=st.sampled_from(((), (EXIT,))))
def test_a_child_of_a_kind_never_may_more_than_its_parent(
    parent: Mapping[str, Any], file: Mapping[str, Any], further: tuple[str, ...]
) -> None:
    kind = pinned_kind(file, "here")
    assert is_kind(kind)
    traits = TOOLBOX.traits(parent)
    begin = messages_of_kind(kind, parent, traits, "Look.", NO_DATA, NO_DATA, further)
    child = dict(parent)
    for message, _, data in begin:
        child |= data if message is Kind.CONFIGURE else {}
    check_settings(child)
    assert TOOLBOX.traits(child).keys() <= traits.keys()
    assert child.get("max_steps", MAX_STEPS) <= parent.get("max_steps", MAX_STEPS)
    for name in ("max_agents", "hooks", "fork_models"):
        assert child.get(name) == parent.get(name)
