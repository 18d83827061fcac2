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
)
"""All of them."""
