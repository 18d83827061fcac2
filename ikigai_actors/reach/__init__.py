"""Readings of a system for shells, pages and doors, and the agents that these may reach.

access    the agents that a client reaches, and calls that are done once under a key
turns     turns by handles, which name a turn forever
rows      one row an agent, each field with the version of its latest change
reading   the answers of the observer's page, as values for JSON
views     readings of a system, a function each
histories   readings of histories, a function each
scrollback   any part of a history, without the rest of it
databases   the places of databases, and of what belongs to the user
states    questions about the states of agents
sessions   the part of a history that goes into a file of another program
agent_lists   some agents with everybody above them, or all in pages
notebooks   the messages of experiments
trials    what experiments read and ask of a system
statistics   the figures of a database
turn_sources   the parts of logs that turns are made of
listing   agents and messages in pages
snapshots  one moment, for the bars and screens of a shell, again and again
conversation   turns as they come, and calls that wait for approval
replies_on_their_way   each reply on its way, with its text so far
news      the news of agents, once for all who wait or stream
branch_feed   the events of all agents in reach, one after the other
guest_logs   the logs of other libraries, a transaction a method
following   what hosts commit, for a command on its own thread
asked     a request below the verbs, and what came of it
metrics   what Prometheus scrapes
files     uploads of a principal, and files of messages in reach
question_links   signed links, each to one question
account_flows    accounts at remote MCP servers, as people connect them
shown_questions   a question as any door shows it, and the form of its answer
keys      requests that are done once under a key of their principal
readable   what views take: a system, or a client
contexts   the contexts and tasks of agents of other systems
apps      the build of a function that gives the arguments of `open`
"""
