"""Acts that agents of other systems ask for by A2A: a task, an answer, a cancellation; each once for a message.

The key is made of the agent with the card, the principal and the message's id; so two principals may use the same id.
"""

from ikigai_actors.actors.futures import TimedOut
from ikigai_actors.agent.turn.events import Fork
from ikigai_actors.frozen import replace
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.contexts import (
    A2A_ORIGIN,
    CardedAgent,
    ContextReader,
    ContextTask,
    SentMessage,
    TaskName,
    message_key,
    message_name,
)
from ikigai_actors.reach.keys import RequestRepeated
from ikigai_actors.reach.turns import MAIL, REQUEST
from ikigai_actors.records.messages.blob_references import stored_in
from ikigai_actors.records.messages.question_terms import is_asked
from ikigai_actors.records.once import KeyedCall, check_call_key
from ikigai_actors.records.questions.asked import ASK
from ikigai_actors.records.questions.forms import parsed_answer
from ikigai_actors.system.lifecycle import prompt_text
from ikigai_actors.system.questions import WaitingQuestion
from ikigai_actors.verbs.acts.turns import asked_fork, end_this_turn, kept_prompt
from ikigai_actors.verbs.principal import Principal, acting_as, words_of_roles


def open_task(reach: Access, carded: CardedAgent, principal: Principal, message: SentMessage) -> TaskName | None:
    """Open a turn for a message of another system, in its context or in a new one.

    The task is None while the agent of a new context is not born. Raises `AgentNotFound`, `AgentDead`, and `BadInput`
    for a message without text.
    """
    check_call_key(message.id)
    name = message_name(carded.record.uuid, principal.id, message.id)
    keyed = reach.under(_call(name, message))
    data = {"origin": {A2A_ORIGIN: message.id}, **stored_in(message.blobs)}
    if not message.context:

        def changed(fork: Fork) -> Fork:
            return replace(fork, settings={**fork.settings, "card": None}, data={**fork.data, **data})

        text = prompt_text(message.text)
        asked_fork(keyed, carded.record.uuid, text, child=name, blobs=message.blobs, changed=changed)
        return TaskName(name, MAIL, 0)
    context = ContextReader(reach).context(carded, message.context)
    if context is None:
        return None
    handle = kept_prompt(keyed, context.uuid, message.text, data=data, blobs=message.blobs)
    return TaskName(handle.agent, MAIL, handle.number)


def question_for(task: ContextTask, principal: Principal) -> WaitingQuestion | None:
    """Return the oldest question of a task that a principal may answer; None if there is none."""
    roles = words_of_roles(principal)
    return next((each for each in task.questions if is_asked(each.asks, principal.id, roles)), None)


def answer_a2a_task(
    reach: Access, carded: CardedAgent, name: TaskName, principal: Principal, message: SentMessage
) -> bool:
    """Answer the question of a task with a message; return whether the task had a question for this principal.

    Raises `BadInput` for what does not fit the question.
    """
    check_call_key(message.id)
    call = _call(message_name(carded.record.uuid, principal.id, message.id), message)
    if reach.under(call).was_done():
        return True
    question = question_for(ContextReader(reach).task(carded, name), principal)
    if question is None:
        return False
    said = message.answer
    if question.kind == ASK and isinstance(said, str):
        said = parsed_answer(question.form, said)
    answer = reach.system.questions.answer
    try:
        with acting_as(principal, reach, call=call):
            return answer(question.id, said, by=principal.id, roles=words_of_roles(principal), timeout=reach.quick)
    except (RequestRepeated, TimedOut):  # it is asked for, once
        return True


def cancel_a2a_task(reach: Access, carded: CardedAgent, name: TaskName) -> bool:
    """End the turn of a task; return whether there was a turn to end. Raises `BadInput` if there is no such task."""
    handle = ContextReader(reach).handle(carded, name)
    return handle.kind != REQUEST and end_this_turn(reach, handle)


def _call(name: str, message: SentMessage) -> KeyedCall:
    """Return the keyed call of a message: a later message with the same id and another text is refused."""
    said = [message.context, message.task, message.text, *(blob.sha256 for blob in message.blobs)]
    return KeyedCall(message_key(name), A2A_ORIGIN, {"said": said}, about=message.text)
