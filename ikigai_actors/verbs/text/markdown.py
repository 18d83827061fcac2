"""The histories of a branch as Markdown for people. Programs cannot read it back."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ikigai_actors.arguments import as_path
from ikigai_actors.reach.scrollback import Scrollback
from ikigai_actors.records.messages.messages import Kind, Message, new_message
from ikigai_actors.records.transfer.export import Branch
from ikigai_actors.records.transfer.format import ORIGIN
from ikigai_actors.store.base import Store, Transaction
from ikigai_actors.store.new_file import new_file
from ikigai_actors.verbs.text.pages import NameOf, message_words

_AT_ONCE = 500
"""Messages that are read at once."""


def export_markdown(store: Store, agent: str, file: Path) -> int:
    """Write the histories of an agent and all below it to a new file; return the number of agents.

    Raises what `ikigai_actors.records.transfer.export.export_file` does.
    """
    with new_file(file, "an export") as part:

        def work(tx: Transaction) -> int:
            branch = Branch(tx, agent, from_clear=False)
            part.seek(0)
            part.truncate()
            part.writelines(f"{text}\n\n".encode(errors="replace") for text in _paragraphs(branch))
            return len(branch.agents)

        return store.read(work)


def export_talk(scrollback: Scrollback, name: str, called: NameOf, file: str) -> int:
    """Write the history of one agent, with its inherited part, to a new file; return the number of messages.

    Raises what `export_markdown` does.
    """
    count = 0
    with new_file(as_path(file), "an export") as part:
        part.write(f"# {name}\n\n".encode(errors="replace"))
        while messages := scrollback.between(count, count + _AT_ONCE):
            texts = (text for message in messages for text in _message_paragraphs(message, called))
            part.writelines(f"{text}\n\n".encode(errors="replace") for text in texts)
            count = messages[-1].id
    return count


def _paragraphs(branch: Branch) -> Iterator[str]:
    yield f"# {branch.called(branch.top.uuid)} and all below it"
    log = ""
    for kind, fields in branch.texts():
        if kind == "mail":
            who = fields["sender"] and branch.called(fields["sender"])
            whose = branch.called(fields["recipient"])
            yield f"## Mail {fields['id']} to {whose} from {who or fields['outside'] or 'a person'}"
            yield _quoted(fields["body"])
            continue
        if fields["agent"] != log:
            log = fields["agent"]
            yield _heading(branch, log)
        yield from _message(fields, branch)


def _heading(branch: Branch, log: str) -> str:
    of = branch.agents[log.removeprefix(ORIGIN)]
    if log.startswith(ORIGIN):
        others = len(branch.origins[of.uuid].agents) - 1
        return f"## What {branch.called(of.uuid)} {f'and {others:,} more inherit' if others else 'inherits'}"
    state = f"{of.status}{f': {of.exit_reason}' if of.exit_reason else ''}"
    where = f", forked from {branch.called(of.parent_uuid)} at {of.fork_message_id}" if of.parent_uuid else ""
    return f"## {branch.called(of.uuid)}\n\n{state}{where}"


def _message(fields: dict[str, Any], branch: Branch) -> Iterator[str]:
    data = fields["data"] if isinstance(fields["data"], dict) else {}
    message: Message = new_message("", fields["id"], fields["kind"], fields["content"], data, fields["created_at"])
    yield from _message_paragraphs(message, branch.called)


def _message_paragraphs(message: Message, called: NameOf) -> Iterator[str]:
    when = datetime.fromtimestamp(message.created_at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    yield f"**{message.id} {message.kind}** {when} UTC"
    entry = message_words(message, called).entry
    if entry.strip():
        yield entry if message.kind == Kind.ASSISTANT else _quoted(entry)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
