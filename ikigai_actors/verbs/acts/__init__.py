"""The acts, declared by `ikigai_actors.verbs.act`.

turns      fork, prompt, steer, wait
talk       send, read_mail, documents
looking    agents, history, diff, approvals
changes    merge, signal, kill, decide, grant
questions  answer
settings   settings, configure
contexts, task_pushes   requests of agents of other systems by A2A; these acts are no tools
"""

from collections.abc import Mapping

from ikigai_actors.verbs.act import Act
from ikigai_actors.verbs.acts import changes, looking, questions, settings, talk, turns

ACTS: Mapping[str, Act] = {
    each.name: each
    for each in (
        turns.fork,
        turns.prompt,
        turns.steer,
        turns.wait,
        talk.send,
        talk.read_mail,
        looking.agents,
        looking.history,
        looking.diff,
        looking.approvals,
        changes.merge_from_below,
        talk.documents,
        changes.signal,
        changes.kill,
        changes.decide_named_call,
        changes.grant,
        questions.answer_waiting_question,
        settings.read_settings,
        settings.configure,
    )
}
"""Every act, by its name."""
