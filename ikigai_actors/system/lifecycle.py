"""The commands of handles on the lifecycle of agents: signals, supervision settings, births."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from ikigai_actors.actors.clock import Clock
from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.turn import events as on
from ikigai_actors.arguments import check_choice, check_count, check_flag, check_seconds, shown
from ikigai_actors.attachments import Attachment, attachments
from ikigai_actors.errors import BadInput
from ikigai_actors.records.agents import registry
from ikigai_actors.records.agents.identity import check_name
from ikigai_actors.records.agents.labels import check_labels, check_number
from ikigai_actors.records.budgets.budget import Budget, as_budget, encode_budget
from ikigai_actors.records.messages.blob_references import stored_in
from ikigai_actors.records.messages.settings import check_settings
from ikigai_actors.store.base import Store
from ikigai_actors.store.writer import Writer
from ikigai_actors.text import check_text
from supervisors.children import RestartType
from supervisors.orphans import OrphanPolicy
from supervisors.signals import Signal
from supervisors.strategies import Strategy

if TYPE_CHECKING:
    from ikigai_actors.agent.actor import AgentActor
    from ikigai_actors.records.lives.deaths import LifecycleChange
    from ikigai_actors.records.lives.supervision import SetSupervision

T = TypeVar("T")

GRACE = 30.0
"""Seconds that an agent has to finish its turn after TERM."""

MOST_RESTARTS = 1_000_000
"""The highest intensity: this many restarts within a period are as good as no limit."""


class Lifecycle:
    """Commits the signals and supervision settings that handles send to the agents of one system."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        clock: Clock,
        host: str | None,
        here: "Callable[[str], AgentActor | None]",
    ) -> None:
        """Make the object.

        Args:
            store: where descendants are looked up.
            writer: commits the signals.
            clock: gives the time of a signal.
            host: the id of the host; None in a process that runs no agents.
            here: gives the actor of an agent, when this process runs it.
        """
        self._store, self._writer, self._clock = store, writer, clock
        self._host, self._here = host, here

    def signal(
        self,
        uuid: str,
        signal: Signal,
        make: "Callable[[LifecycleChange], T]",
        *,
        cascade: bool = False,
        reason: str = "",
        grace: float = GRACE,
    ) -> Future[T]:
        """Send a signal; after the commit, the returned future has the value that ``make`` returns for the change.

        Args:
            uuid: the target.
            signal: the signal.
            make: converts the committed change to the value of the future.
            cascade: the signal hits all descendants of the target too.
            reason: the reason, for people.
            grace: seconds after which TERM becomes KILL.

        Raises:
            BadInput: an argument cannot be used.
        """
        from ikigai_actors.records.lives.signals import SendSignal, milliseconds

        signal = Signal(check_choice(signal, "signal", tuple(Signal)))
        check_text(reason, "reason")
        now, limit = self._clock.now_ms(), milliseconds(grace)
        spread = check_flag(cascade, "cascade")
        unit = SendSignal(uuid, signal, now, spread=spread, reason=reason, grace=limit, host=self._host)
        return self._writer.ask(unit, make)

    def interrupt_here(self, uuid: str, turn: int = 0) -> Future[bool] | None:
        """Interrupt the turn in progress of an agent of this process, or only ``turn``.

        Without a turn in progress, the turn that the oldest earlier prompt opens is interrupted. Return a future of
        whether a turn ended; None if the agent has no actor here. Never waits.
        """
        if (actor := self._here(uuid)) is None:
            return None
        ended: Future[bool] = Future()
        inbox = actor.actor_inbox
        inbox.put_urgent(on.Interrupt(ended, turn=turn, behind=inbox.latest))
        return ended

    def interrupt(self, uuid: str, *, cascade: bool = False, begun: Future[bool] | None = None) -> Future[bool]:
        """Send INT; return a future of whether it ended a turn.

        In the process that runs the agents the actors get it first, and the row of the signal is written afterwards.

        Args:
            uuid: the target.
            cascade: whether it hits all descendants too.
            begun: the answer of `interrupt_here` for the target, when that was called already.
        """
        ended = begun or self.interrupt_here(uuid)
        if cascade and self._host is not None:
            for record in self._store.read(lambda tx: registry.descendants(tx, uuid)):
                below = self._here(record.uuid) if record.living else None
                if below is not None and (record.turn or not below.is_idle):
                    self.interrupt_here(record.uuid, record.turn)
        sent = self.signal(uuid, Signal.INT, had_effect, cascade=cascade)
        return ended or sent


def new_children(
    fresh: Callable[[], str],
    prompt: str | None = None,
    name: str | None = None,
    *,
    count: int | None = None,
    prompts: Sequence[str | None] | None = None,
    names: Sequence[str | None] | None = None,
) -> list[on.NewChild]:
    """Return the children that a fork will make; ``fresh`` draws a uuid, and the rest is as for `AgentRef.fork`.

    Raises `BadInput`, before a uuid is drawn.
    """
    if count is None and prompts is None:
        if names is not None:
            raise BadInput("Expected names together with count or prompts, got names. For one child, use name=.")
        return [on.NewChild(fresh(), *_checked(name, prompt, "name", "prompt"))]
    if count is not None and prompts is not None:
        raise BadInput("Expected count or prompts, got both. A list of prompts says how many children there are.")
    if name is not None:
        raise BadInput("Expected names=[...], one for each child, got name: no two agents that live have the same.")
    if prompts is None:
        number = check_count(count, "count", least=1, most=on.MOST_CHILDREN)
        said = [prompt] * number
    elif prompt is not None:
        raise BadInput("Expected prompt or prompts, got both.")
    else:
        said = list(_listed(prompts, "prompts"))
        number = check_count(len(said), "the number of prompts", least=1, most=on.MOST_CHILDREN)
    called = list(_listed(names, "names")) if names is not None else [None] * number
    if len(called) != number:
        raise BadInput(f"Expected {number} names, one for each child, got {len(called)}. None is no name.")
    both = [
        _checked(wanted, text, f"names[{place}]", f"prompts[{place}]" if prompts is not None else "prompt")
        for place, (wanted, text) in enumerate(zip(called, said, strict=True))
    ]
    known: set[str] = set()
    for wanted, _ in both:
        if wanted is not None and wanted in known:
            raise BadInput(f"Expected each child to have another name, got {wanted!r} twice.")
        known |= {wanted} if wanted is not None else set()
    return [on.NewChild(fresh(), wanted, text) for wanted, text in both]


def _listed(value: Any, what: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise BadInput(f"Expected {what} as a list, one for each child, got {shown(value)}.")
    return value


def _checked(name: Any, prompt: Any, named: str, prompted: str) -> tuple[str | None, str | None]:
    if prompt is not None and not check_text(prompt, prompted).strip():
        wanted = "a prompt" if prompted == "prompt" else prompted
        raise BadInput(f"Expected {wanted} for the child, got blank text. Leave it out to fork without one.")
    try:
        return check_name(name) if name is not None else None, prompt
    except BadInput as error:
        raise (error if named == "name" else BadInput(f"{named}: {error}")) from None


def new_fork(
    children: Sequence[on.NewChild],
    *,
    model: str | None = None,
    system: str | None = None,
    restart: str = RestartType.TRANSIENT,
    on_orphan: str | None = None,
    output: object = None,
    attach: object = (),
    at: int | None = None,
    budget: Budget | Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    skills: Mapping[str, Any] = MappingProxyType({}),
    kind: str | None = None,
) -> Callable[[on.Caller], on.Fork]:
    """Return a function that makes the fork command for a caller; arguments as for `AgentRef.fork`.

    ``skills``: the prompts' data with the texts of skills. ``kind``: the kind of the children. Raises `BadInput`.
    """
    kind_name = "" if kind is None else check_text(kind, "kind")
    if kind_name and at is not None:
        raise BadInput("Expected kind or at: a child of a kind begins without the history; got both.")
    if (output is not None or attach != () or skills) and any(child.prompt is None for child in children):
        raise BadInput("Expected a prompt for the child, to go with its output, attachments or skills; got none.")
    check_choice(restart, "restart", _RESTART_TYPES)
    policy = check_policy(on_orphan)
    own = {key: value for key, value in (("model", model), ("system", system)) if value is not None}
    settings, (data, blobs) = check_settings(own), data_of(output, attach)
    data = {**data, **skills}
    limits, paid_by = encode_budget(as_budget(budget)), check_labels(labels)
    first, *siblings = children
    more = tuple(siblings)
    if at is None:
        return lambda caller: on.Fork(
            *first, settings, restart, caller, policy, data, more, blobs, limits, paid_by, kind_name
        )
    then = check_count(at, "at")
    return lambda caller: on.ForkAt(
        *first, settings, restart, caller, policy, data, more, blobs, limits, paid_by, at=then
    )


_RESTART_TYPES = tuple(RestartType)


def prompt_text(text: str) -> str:
    """Check the text of a prompt, and return it. Raises `BadInput` if it is blank or cannot be stored."""
    if not (checked := check_text(text, "prompt")).strip():
        raise BadInput("Expected a prompt, got blank text. Say something.")
    return checked


def data_of(output: object, attach: object) -> tuple[Mapping[str, Any], tuple[Attachment, ...]]:
    """Return the data of a prompt, and its attachments. Raises `BadInput`.

    Args:
        output: the type of which the turn must give a value; None for any answer.
        attach: paths and bytes.
    """
    from ikigai_actors.records.messages.outputs import expected

    typed = {} if output is None else {"output": expected(output).stored()}
    if attach == ():
        return typed, ()
    attached = attachments(attach)
    return {**typed, **stored_in(attached)}, attached


def labels_over(own: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a prompt after a check. Together with the agent's ``own`` they must not be too many.

    Raises `BadInput`.
    """
    own_labels = check_labels(labels)
    check_number({**own, **own_labels})
    return own_labels


def supervision(
    uuid: str, now: int, strategy: str | None, intensity: int | None, period: float | None, on_orphan: str | None
) -> "SetSupervision":
    """Return the unit that sets how an agent supervises its children; None leaves a setting as it is.

    Raises `BadInput`.
    """
    from ikigai_actors.records.lives.supervision import SetGroupSupervision, SetSupervision

    if strategy is not None:
        check_choice(strategy, "strategy", [*Strategy])
    if intensity is not None:
        check_count(intensity, "intensity", most=MOST_RESTARTS)
    milliseconds = None if period is None else max(1, int(check_seconds(period, "period", zero=False) * 1000))
    unit = SetSupervision if strategy in (None, Strategy.ONE_FOR_ONE) else SetGroupSupervision
    return unit(uuid, now, strategy, intensity, milliseconds, check_policy(on_orphan))


def check_policy(on_orphan: str | None) -> str | None:
    """Check that a value is an orphan policy or None, and return it. Raises `BadInput`."""
    return None if on_orphan is None else check_choice(on_orphan, "on_orphan", [*OrphanPolicy])


def had_effect(change: "LifecycleChange") -> bool:
    """Return whether a signal has changed the status of an agent or ended it."""
    return not change.ignored
