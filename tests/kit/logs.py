"""Messages put into logs by hand, each with its hash."""

from collections.abc import Iterable
from itertools import groupby

from ikigai_actors.errors import IkigaiError
from ikigai_actors.records.log.chain import EMPTY_HASH, HashChain
from ikigai_actors.records.log.lineage import read_lineage
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store import Transaction


def write_log(tx: Transaction, messages: Iterable[Message], chain: HashChain | None = None) -> None:
    """Append messages of some agents, each agent's in order. After a hole they have the hashes of a beginning."""
    chain = HashChain() if chain is None else chain
    for _, some in groupby(messages, key=lambda message: message.agent_uuid):
        rows = [message.row() for message in some]
        uuid, before = rows[0][0], rows[0][1] - 1
        try:
            lineage = read_lineage(tx, uuid, whole=True)
            holder = next((ancestor.uuid for ancestor in lineage if ancestor.fork_message_id < before), uuid)
            tx.append(chain.link(tx, rows, chain.at(tx, holder, before)))
        except IkigaiError:
            tx.append(chain.link(tx, rows, EMPTY_HASH))
