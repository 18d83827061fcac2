"""The agents of the database: table ``agents``, and the tables about single agents.

    identity    uuids, their short forms, the clock of ids
    words       two words for the beginning of a uuid
    registry    an agent's row, and how agents are found
    lists       some of very many agents: those that were used last, or that a text finds
    called      units about agents by what they are called
    rules       which calls of its tools run, are asked about, or are denied: table ``rules``
    trees       which layers of changes its directory has: tables ``trees`` and ``tree_merges``
    labels      on whose account an agent works
    former      what stood in rows that change in place: table ``former``

A row is written once, at birth; afterwards only its status, name, turn and shard change.
"""
