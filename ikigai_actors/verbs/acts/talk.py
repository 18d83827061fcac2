"""Acts about mail, and about documents that all agents share."""

from typing import Annotated, Literal, NotRequired, TypedDict

from pydantic import Field

from ikigai_actors.errors import BadInput
from ikigai_actors.reach.access import Access
from ikigai_actors.records.mail.mail import Mail, Send
from ikigai_actors.text import iso_time
from ikigai_actors.verbs.act import act
from ikigai_actors.verbs.acts.looking import MOST_SHOWN
from ikigai_actors.verbs.acts.turns import MOST_POSITION, Name, NamedAgent


class SentMail(TypedDict):
    """The answer to `send`: the number of the mail."""

    agent: str
    mail: int


_FromSender = TypedDict("_FromSender", {"from": NotRequired[Name]})


class UnreadMail(_FromSender):
    """An unread mail of an agent, in the answer to `read_mail`."""

    mail: int
    kind: str
    text: str
    at: str


class SharedDocument(TypedDict):
    """A document, or its entry in a list, in the answer to `documents`."""

    path: str
    version: int
    text: NotRequired[str]


@act("send", "Send a mail", verb="send", gives=SentMail, keyed=True)
def send(reach: Access, agent: NamedAgent, text: str) -> SentMail:
    """Send a mail to an agent, which reads it when it chooses to.

    Args:
        text: The mail, at most 64 KiB.
    """

    def unit() -> Send:
        return Send(reach.find(agent).uuid, None, text, reach.client.now_ms())

    sent = reach.once(unit, lambda unit, mail: {"agent": mail.recipient, "mail": mail.id})
    return {"agent": sent["agent"], "mail": sent["mail"]}


@act(
    "read_mail",
    "Read an agent's mail",
    verb="read-mail",
    gives=list[UnreadMail],
    hints={"readOnlyHint": False, "idempotentHint": False, "destructiveHint": True},
)
def read_mail(reach: Access, agent: NamedAgent, take: bool = False) -> list[UnreadMail]:
    """Show the unread mail of an agent.

    Args:
        take: Whether it counts as read from then on, so that the agent does not get it.
    """
    ref = reach.ref(agent)
    if take:
        return [_shown(mail) for mail in ref.read_mail()]
    known = ref.mails(latest=MOST_SHOWN)
    return [_shown(mail) for mail in known if mail.read_at is None and mail.kind != "prompt"]


def _shown(mail: Mail) -> UnreadMail:
    return {"mail": mail.id, "from": mail.sender, "kind": mail.kind, "text": mail.body, "at": iso_time(mail.created_at)}


@act(
    "documents",
    "Shared documents",
    verb="doc",
    gives=list[SharedDocument],
    hints={"readOnlyHint": False, "idempotentHint": False, "destructiveHint": False},
)
def documents(
    reach: Access,
    do: Literal["list", "read", "write"],
    path: str | None = None,
    text: str | None = None,
    version: Annotated[int, Field(ge=0, le=MOST_POSITION)] | None = None,
) -> list[SharedDocument]:
    """List, read or write the documents that all agents share. Each write makes a version.

    Args:
        do: What to do.
        path: The document; for list, the beginning of paths.
        text: For write: the whole text.
        version: For read: an earlier version. For write: the one the text is based on.
    """
    known = reach.system.documents
    if do == "list":
        return [{"path": document.path, "version": document.version} for document in known.list(path or "")]
    if path is None:
        raise BadInput(f"Give the path of the document to {do}.")
    if do == "read":
        document = known.read(path, version)
        return [{"path": document.path, "version": document.version, "text": document.body or ""}]
    if text is None:
        raise BadInput("Give the text to write.")
    return [{"path": path, "version": known.write(path, text, expect=version)}]
