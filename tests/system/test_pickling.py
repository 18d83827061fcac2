"""What goes to another process: errors do, as they are; systems and handles do not, and say what does."""

import copy
import inspect
import pickle
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ikigai_actors
import ikigai_actors.types
from ikigai_actors import ActorSystem, AgentNotFound, DocumentChanged, IkigaiError, OfflineProvider

VALUES: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(),
    int: st.integers(),
    bool: st.booleans(),
    float: st.floats(allow_nan=False),
    "dict": st.dictionaries(st.text(), st.integers(), max_size=2),
    "Sequence": st.lists(st.text(), max_size=3),
    "tuple": st.lists(st.text(), max_size=3).map(tuple),
    "frozenset": st.frozensets(st.text(), max_size=3),
}


def errors() -> list[type[Exception]]:
    """Every error that a user's program may get or raise."""
    doors = (ikigai_actors, ikigai_actors.types)
    public = [getattr(door, name) for door in doors for name in door.__all__]
    kinds = {member for member in public if isinstance(member, type) and issubclass(member, Exception)} | {
        *below(IkigaiError)
    }
    return sorted(
        (kind for kind in kinds if not kind.__name__.startswith("_")), key=lambda kind: (kind.__module__, kind.__name__)
    )


def below(kind: type[Exception]) -> Iterator[type[Exception]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from below(subclass)


def value(parameter: inspect.Parameter) -> st.SearchStrategy[Any]:
    """Something to give to an error for a parameter."""
    kind = parameter.annotation
    kinds = kind.__args__ if isinstance(kind, UnionType) else (kind,)
    names = [each if each in VALUES else getattr(each, "__origin__", each).__name__ for each in kinds]
    return st.one_of([VALUES[each] for each in names if each in VALUES])


@st.composite
def raised(draw: st.DrawFn, kind: type[Exception]) -> Exception:
    """An error of this kind, with anything in it."""
    if not inspect.isfunction(kind.__init__):
        error = kind(*draw(st.lists(st.text(), max_size=2)))
    else:
        parameters = list(inspect.signature(kind).parameters.values())
        arguments = {
            parameter.name: draw(value(parameter))
            for parameter in parameters
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        }
        error = kind(**arguments)
    if draw(st.booleans()):
        error.add_note("And more.")
    return error


@pytest.mark.sample(4, "every error is made in the same way")
@pytest.mark.parametrize("kind", errors(), ids=lambda kind: kind.__name__)
@settings(max_examples=10)
@given(st.data())
def test_an_error_arrives_as_it_was(kind: type[Exception], data: st.DataObject) -> None:
    error = data.draw(raised(kind))
    ways: list[Callable[[Exception], Exception]] = [copy.copy, copy.deepcopy]
    ways += [lambda error, n=n: pickle.loads(pickle.dumps(error, n)) for n in range(pickle.HIGHEST_PROTOCOL + 1)]  # type: ignore[misc]
    for way in ways:
        arrived = way(error)
        assert type(arrived) is kind
        assert (str(arrived), arrived.args, vars(arrived)) == (str(error), error.args, vars(error))


def test_an_error_of_a_call_arrives_with_its_attributes() -> None:
    with ActorSystem.open(":memory:", provider=OfflineProvider()) as system:
        system.documents.write("plan", "tea")
        with pytest.raises(DocumentChanged) as changed:
            system.documents.write("plan", "coffee", expect=7)
        with pytest.raises(AgentNotFound) as unknown:
            system.agent("nobody")
    arrived = pickle.loads(pickle.dumps([changed.value, unknown.value]))
    assert (arrived[0].path, arrived[0].version, arrived[1].agent) == ("plan", 1, "nobody")


@pytest.mark.parametrize("way", [pickle.dumps, copy.deepcopy])
def test_a_system_or_handle_says_what_to_hand_on_instead(way: Callable[[object], object]) -> None:
    with ActorSystem.open(":memory:", provider=OfflineProvider()) as system:
        for what in (system, system.root, system.documents, {"agents": [system.root]}):
            with pytest.raises(TypeError, match=r"belongs to this process\. Hand on ref\.uuid"):
                way(what)
        assert pickle.loads(pickle.dumps(system.root.uuid)) == system.root.uuid
        assert copy.copy(system.root) == system.root
