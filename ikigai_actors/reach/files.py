"""Files that enter and leave through the network: uploads of principals, and attachments of messages.

    keep_upload(client, "anna", file, keyed)            # whether it was done before under its key
    uploaded_file(client, "anna", sha256)
    attached_file(access, "kid", 7, sha256)             # of message 7 of an agent in reach

A hash alone gives no access: the bytes are returned only to the principal that has uploaded them, and to those who can
reach a message with them.
"""

from ikigai_actors.attachments import Attachment
from ikigai_actors.errors import BadInput
from ikigai_actors.reach.access import Access
from ikigai_actors.reach.asked import AskedRequest
from ikigai_actors.reach.keys import RequestRepeated, known_request
from ikigai_actors.reach.views import scrollback_of
from ikigai_actors.records.messages.blob_references import blobs_of
from ikigai_actors.records.messages.blobs import read_blobs
from ikigai_actors.records.once import KeyedCall
from ikigai_actors.records.uploads import AddUpload, upload_of
from ikigai_actors.store.asker import acting_for
from ikigai_actors.system.remote.client import Client


def keep_upload(client: Client, principal: str, file: Attachment, keyed: KeyedCall | None) -> bool:
    """Store a file of a principal, once for its key; return whether it was stored before with this key.

    Raises `KeyTaken`, and `NotAllowed` for more than a principal may upload.
    """
    if known_request(client, keyed) is not None:
        return True
    try:
        with acting_for(AskedRequest(keyed, client.now_ms, principal)):
            client.write(AddUpload(principal, file, client.now_ms()))
    except RequestRepeated:  # of two at once the other one was faster
        return True
    return False


def uploaded_file(client: Client, principal: str, sha256: str) -> Attachment:
    """Return a file that a principal has uploaded. Raises `BadInput` for any other."""
    return client.read(lambda tx: upload_of(tx, principal, sha256))


def attached_file(access: Access, agent: str, position: int, sha256: str) -> Attachment:
    """Return a file of a message of a reachable agent.

    Raises `AgentNotFound`, and `BadInput` if the message has no such file.
    """
    history = scrollback_of(access.client, access.find(agent).uuid)
    for blob in (blob for message in history.between(position - 1, position) for blob in blobs_of(message)):
        if blob.sha256 == sha256:
            data = access.client.read(lambda tx: read_blobs(tx, [sha256])).get(sha256)
            if data is not None:
                return Attachment(data, blob.media, sha256, blob.name)
    raise BadInput(f"Message {position} of {agent} has no file {sha256[:80]!r}.")
