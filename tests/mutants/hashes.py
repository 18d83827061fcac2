"""Mutants of the hashes of histories.

nice python -m tests.mutants --hashes --examples 200
"""

from tests.mutants import Edit, Mutant

HASH_MUTANTS = (
    Mutant(
        "a child goes on from the hash of its parent's head",
        "records/log/append.py",
        "chain.bear(tx, birth.parent_uuid, birth.fork_message_id, first)",
        "chain.bear(tx, birth.parent_uuid, rows[-1][1] if rows else birth.fork_message_id, first)",
    ),
    Mutant(  # positions are found by key: the last one known is taken in place of the one before
        "appends of one transaction go on from one hash",
        "records/log/chain.py",
        "            before = self._known[uuid, row[1]] = hash_after(before, row)\n",
        "            self._known[uuid, row[1]] = hash_after(before, row)\n",
        (
            Edit(
                "records/log/chain.py",
                "            linked.append((*row, before))",
                "            linked.append((*row, self._known[uuid, row[1]]))",
            ),
        ),
    ),
    Mutant(
        "the message of an act is not linked",
        "records/log/append.py",
        "        tx.append(locked.part(HashChain, HashChain).link(tx, [message.row()], row.head_hash))",
        "        tx.append(HashChain().link(tx, [message.row()], bytes(32)))",
    ),
    Mutant(
        "an inherited fork point is looked for in the parent's log alone",
        "store/queries.sql",
        "     WHERE line.fork >= CAST(:position AS BIGINT))\nSELECT m.hash",
        "     WHERE 1 = 0)\nSELECT m.hash",
    ),
    Mutant(
        "the time is not part of the hash",
        "records/log/chain.py",
        'for value in (row[1], row[5], row[2], row[3], row[4] or "")',
        'for value in (row[1], row[2], row[3], row[4] or "")',
    ),
)
"""All of them."""
