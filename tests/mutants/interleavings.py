"""Mutants of what keeps transactions apart on PostgreSQL, for the interleavings of `tests.jar`.

nice python -m tests.mutants --interleavings --examples 300
"""

from tests.mutants import Edit, Mutant

_ROWS = "  FROM agents a WHERE uuid = ANY(:uuids) ORDER BY uuid FOR NO KEY UPDATE\n"
_DYING = "FROM agents a WHERE a.uuid = ANY(:uuids) ORDER BY a.uuid FOR NO KEY UPDATE)"

INTERLEAVING_MUTANTS = (
    Mutant(
        "the rows of agents are not locked",
        "store/queries.sql",
        _ROWS,
        "  FROM agents a WHERE uuid = ANY(:uuids) ORDER BY uuid\n",
        (Edit("store/queries.sql", _DYING, "FROM agents a WHERE a.uuid = ANY(:uuids))"),),
    ),
    Mutant(
        "births do not share the tree",
        "store/unit.py",
        "    elif kept is TreeLock.SHARED:\n        tx.share_tree()\n",
        "",
    ),
    Mutant(
        "rows are locked in a random order",
        "store/queries.sql",
        _ROWS,
        "  FROM agents a WHERE uuid = ANY(:uuids) ORDER BY random() FOR NO KEY UPDATE\n",
        (
            Edit(
                "store/queries.sql",
                _DYING,
                "FROM agents a WHERE a.uuid = ANY(:uuids) ORDER BY random() FOR NO KEY UPDATE)",
            ),
        ),
    ),
    Mutant(
        "a move does not lock the tree",
        "records/lives/moves.py",
        "    tree = TreeLock.WHOLE\n",
        "    tree = TreeLock.NONE\n",
    ),
    Mutant(
        "an import does not lock the tree",
        "records/transfer/graft.py",
        "    tree = TreeLock.WHOLE\n",
        "    tree = TreeLock.NONE\n",
    ),
    Mutant(
        "moved agents are not locked",
        "records/lives/moves.py",
        "        locked.lock(tx, uuids)\n",
        "",
    ),
    Mutant(
        "the members of a group are read without its lock",
        "store/queries.sql",
        "SELECT name FROM group_names WHERE name = :name FOR NO KEY UPDATE\n",
        "SELECT name FROM group_names WHERE name = :name\n",
    ),
)
"""All of them."""
