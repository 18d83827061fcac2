"""What a model is told of the calls that its agent performs itself. The same schemas check their arguments."""

from collections.abc import Mapping
from typing import Any

from ikigai_actors.tools.policy import (
    CHECK_MAIL,
    DOCUMENT_DELETE,
    DOCUMENT_LIST,
    DOCUMENT_READ,
    DOCUMENT_WRITE,
    EXIT,
    FORK,
    KILL,
    READ_MAIL,
    SEND,
    WAIT,
)

WAIT_TIMEOUT = 600
"""Seconds of a ``wait`` that does not say how long."""

LONGEST_WAIT = 7 * 24 * 3600
"""The most seconds of a ``wait``."""

Description = Mapping[str, Any]


def _text(description: str) -> Description:
    return {"type": "string", "description": description}


def _flag(description: str) -> Description:
    return {"type": "boolean", "description": description}


def _whole(description: str) -> Description:
    return {"type": "integer", "description": description}


def _described(name: str, description: str, needs: tuple[str, ...] = (), /, **properties: Description) -> Description:
    """A description with its schema; ``needs`` are the arguments that it cannot do without."""
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if needs:
        schema["required"] = list(needs)
    return {"name": name, "description": description, "input_schema": schema}


_AGENT = "Its id, the beginning of the id, or its name."
_PATH = "A relative path, such as plan/mast.md."

_ALL = (
    _described(
        FORK,
        "Make a copy of yourself that goes on beside you, like fork() in Unix. Both of you return from this call: you "
        "with the child's id, the child with the news that it is the child. It remembers all that you remember now. "
        "Give it a prompt that says what it is to do; without one it goes on with what you are doing.",
        prompt=_text("What the child is to do."),
        name=_text("A name for the child, unique among living agents."),
    ),
    _described(
        EXIT,
        "End yourself: your work is done. Whoever supervises you gets the result by mail. Nothing comes after this "
        "call.",
        result=_text("What you found or did."),
    ),
    _described(
        KILL,
        "End another agent at once, whatever it does. Not yourself, and nobody who supervises you.",
        ("agent",),
        agent=_text(_AGENT),
        reason=_text("Why."),
        cascade=_flag("End all its descendants too."),
    ),
    _described(
        SEND,
        "Send a mail to another agent. It stays in the agent's mailbox until it is read; the agent is not interrupted. "
        "For what is long, write a document and send its path.",
        ("to", "body"),
        to=_text(f"Who gets it. {_AGENT}"),
        body=_text("What it says; at most 64 KiB."),
    ),
    _described(
        CHECK_MAIL,
        "Look at your mailbox: how much mail is unread, of whom, and how the oldest begin. Marks nothing as read.",
    ),
    _described(
        READ_MAIL,
        "Read your unread mail, oldest first, and mark it as read. When there is much of it you get as many whole "
        "mails as fit, and are told how many remain.",
        sender=_text(f"Only mail of this agent. {_AGENT} Empty text means a person outside of any agent."),
    ),
    _described(
        WAIT,
        "Wait for other agents, or for mail. With agents or children: until each of them has sent you mail that you "
        "have not read, has nothing to do, or has ended. Without: until you have unread mail. Tells for each agent: "
        "mail, idle, stopped, dead, unknown, or timeout. Calls after it in the same reply run when it is over, so "
        "fork, wait with children, and read_mail can stand in one reply.",
        agents={
            "type": "array",
            "items": {"type": "string"},
            "description": "Whom to wait for: ids, beginnings of ids, or names.",
        },
        children=_flag("Wait for all your children, those too that you forked earlier in this reply."),
        timeout={
            "type": "number",
            "description": f"The most seconds to wait; {WAIT_TIMEOUT} when left out, 0 looks once.",
        },
    ),
    _described(
        DOCUMENT_WRITE,
        "Write a markdown document that all agents can read: the whole text. Every write makes a version. Give expect "
        "when you change what you have read: then nobody's work is lost.",
        ("path", "body"),
        path=_text(_PATH),
        body=_text("The whole text; at most 1 MiB."),
        expect=_whole(
            "The version that your text is based on; 0 when there must be none yet. Else nothing is written."
        ),
    ),
    _described(
        DOCUMENT_READ,
        "Read a document, and which version it is.",
        ("path",),
        path=_text(_PATH),
        version=_whole("An earlier version; the latest when left out."),
    ),
    _described(
        DOCUMENT_LIST,
        "List the documents: path, version, author, time.",
        prefix=_text("Only paths that begin with this."),
    ),
    _described(
        DOCUMENT_DELETE,
        "Delete a document. Its versions stay readable.",
        ("path",),
        path=_text(_PATH),
        expect=_whole("Delete only this version."),
    ),
)

DESCRIPTIONS: Mapping[str, Description] = {one["name"]: one for one in _ALL}
"""Each as a Messages-API dict, by name."""
