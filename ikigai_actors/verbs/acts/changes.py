"""Acts that change the rights, the budget or the life of an agent."""

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired, TypedDict

from pydantic import Field, WithJsonSchema

from ikigai_actors.agent.remote_commands import encode
from ikigai_actors.agent.turn import events as on
from ikigai_actors.agent.turn.calls import EXACT
from ikigai_actors.agent.turn.ways import WAYS
from ikigai_actors.errors import BadInput, IkigaiError
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.shown_questions import waits_in_inbox
from ikigai_actors.records.budgets.budget import Budget
from ikigai_actors.records.budgets.grants import Grant, Served
from ikigai_actors.records.hosts.remote_commands import AddRemoteCommand
from ikigai_actors.records.questions.asked import question_id
from ikigai_actors.verbs.act import ENDS, FOR_MODELS, act
from ikigai_actors.verbs.acts.looking import SHOWN_LENGTH
from ikigai_actors.verbs.acts.turns import MOST_POSITION, NamedAgent
from ikigai_actors.verbs.principal import check_may_decide
from ikigai_actors.verbs.signals import send_signal
from supervisors.signals import Signal

Always = Annotated[
    bool | Literal["tool", "exact"], Field(json_schema_extra={FOR_MODELS: {"type": "boolean"}}, union_mode="smart")
]
"""A flag for a model; people pass one of the words that the call accepts."""


class MergeSeen(TypedDict):
    """The answer to a merge: its request, whether the merge is done, and then its message."""

    agent: str
    request: int
    done: bool
    position: NotRequired[int]
    text: NotRequired[str]


class GrantedBudget(TypedDict):
    """The answer to a grant: the limits of the budget after the grant, and the amounts spent."""

    agent: str
    granted: Mapping[str, float]
    spent: Mapping[str, float]


@act("merge", "Merge a child", verb="merge", gives=MergeSeen, keyed=True)
def merge_from_below(
    reach: Access,
    agent: NamedAgent,
    child: NamedAgent,
    how: Annotated[str, WithJsonSchema({"type": "string", "enum": [*WAYS]})] = WAYS[0],
    positions: list[int] | None = None,
) -> MergeSeen:
    """Let an agent take in what one below it has said, as a quotation.

    A busy agent does it after its turn: call again with the same key until done is true.

    Args:
        how: Its result, a summary by its model, or some of its messages.
        positions: For pick: the messages.
    """

    def unit() -> AddRemoteCommand:
        kind, body = encode(on.Merge(reach.find(child).uuid, how, tuple(positions or ()), None))
        return AddRemoteCommand(reach.find(agent).uuid, kind, body, reach.client.now_ms())

    asked = reach.asked(unit)
    answer = reach.answer(asked, reach.quick)
    if answer is None:
        return {"agent": asked.agent, "request": asked.id, "done": False}
    if isinstance(answer.value, IkigaiError):
        raise answer.value
    merged, text = answer.value["position"], answer.value["text"][:SHOWN_LENGTH]
    return {"agent": asked.agent, "request": asked.id, "done": True, "position": merged, "text": text}


@act("signal", "Send a signal", verb="signal", gives=list[str], hints=ENDS)
def signal(
    reach: Access,
    agent: NamedAgent,
    signal: Annotated[str, WithJsonSchema({"type": "string", "enum": [*Signal]})],
    cascade: bool = False,
    reason: str = "",
) -> list[str]:
    """INT ends the turn of an agent. STOP pauses it after its step, CONT lets it go on.

    TERM lets it finish its turn and die. KILL ends it at once. Answers with the agents that died.

    Args:
        signal: The signal.
        cascade: Whether all below it get it, too.
        reason: Why, for the registry.
    """
    return [*send_signal(reach.ref(agent), Signal(signal), cascade=cascade, reason=reason).dead]


@act("kill", "End an agent", verb="kill", gives=list[str], hints=ENDS)
def kill(reach: Access, agent: NamedAgent, cascade: bool = False, reason: str = "") -> list[str]:
    """End an agent at once. Answers with the agents that died.

    Args:
        cascade: Whether all below it die, too.
        reason: Why.
    """
    return [*send_signal(reach.ref(agent), Signal.KILL, cascade=cascade, reason=reason).dead]


@act("decide", "Decide on a call", verb="approve", gives=bool)
def decide_named_call(
    reach: Access, agent: NamedAgent, call: str, allow: bool, reason: str = "", always: Always = False
) -> bool:
    """Let a call of a tool run that waits for a decision (asks), or refuse it. Answers whether it was open.

    Args:
        call: The call, by the text that asks has for it: its reply, id and digest.
        allow: Whether it runs.
        reason: Why not, for the agent's model.
        always: Whether such calls run from now on, for this agent and all below it.
    """
    uuid = reach.find(agent).uuid
    if reach.system.approvals.find(uuid, call) is None:
        for asked in reach.system.questions.calls():
            if (asked.agent, asked.full_name) == (uuid, call):
                raise BadInput(waits_in_inbox(question_id(uuid, asked.asked_at)))
        return False
    reach.check_hosted(reach.quick)
    return decide_on(reach, uuid, call, allow, reason=reason, always=always)


def decide_on(
    reach: Access, uuid: str, call: str, allow: bool, *, reason: str = "", always: bool | str = False
) -> bool:
    """Approve or deny a call of an agent. While no host runs the agents, the decision waits for the next host.

    Args:
        reach: the access of the person or program that decides.
        uuid: the uuid of the agent.
        call: the text that names the call: its reply, id and digest.
        allow: whether the call runs.
        reason: the reason for a refusal, for the agent's model.
        always: the rule for later calls, one of `PendingCall.always`. True means ``exact`` where the call takes
            that, and else for ``tool``.

    Returns:
        Whether the call was still undecided.
    """
    approvals = reach.system.approvals
    if (asking := approvals.find(uuid, call)) is None:
        return False
    check_may_decide(reach.system, asking, reach.by, reach.roles)
    if not allow:
        return approvals.deny(asking, reason, by=reach.by, timeout=reach.quick)
    if always is True and EXACT in asking.always:
        always = EXACT
    return approvals.approve(asking, always=always, by=reach.by, timeout=reach.quick)


@act("grant", "Grant a budget", verb="budget", gives=GrantedBudget, keyed=True)
def grant(
    reach: Access,
    agent: NamedAgent,
    usd: Annotated[float, Field(ge=0)] | None = None,
    tokens: Annotated[int, Field(ge=0, le=MOST_POSITION)] | None = None,
) -> GrantedBudget:
    """Grant more of what the nearest budget of an agent limits; those who wait for it go on.

    Args:
        usd: How many more dollars.
        tokens: How many more tokens.
    """

    def unit() -> Grant:
        more = Budget(tokens=tokens, usd=usd).limits()
        if not any(more.values()):
            raise BadInput("Say how much to grant: usd or tokens.")
        return Grant(reach.find(agent).uuid, more)

    granted = reach.once(unit, _budget)
    return {"agent": granted["agent"], "granted": granted["granted"], "spent": granted["spent"]}


def _budget(unit: Grant, served: Served) -> GrantedBudget:
    assert served.status is not None
    return {
        "agent": served.status.owner, "granted": dict(served.status.granted), "spent": dict(served.status.spent),
    }  # fmt: skip
