"""The acts, declared by `ikigai_actors.verbs.act`, a module for each subject."""

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
