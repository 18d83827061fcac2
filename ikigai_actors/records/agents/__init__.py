"""The agents of the database: table ``agents``, and the tables about single agents.

    identity    uuids, their short forms, the clock of ids
    words       two words for the beginning of a uuid
    registry    table ``agents``, and ways to find an agent
    lists       lists of a limited number of agents: the latest used ones, or ones that a text finds
    called      units about agents that are named by a text
    rules       rules that allow, ask about or deny calls of tools: table ``rules``
    trees       the layers of changes that make up an agent's directory: tables ``trees`` and ``tree_merges``
    labels      labels: the account for which an agent works
    former      former values of rows that change in place: table ``former``

A row is written once, at birth; afterwards only its status, name, turn and shard change.
"""
