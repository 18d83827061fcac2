"""Readings of a system for shells, pages and doors, and the agents that these may reach.

access    the agents that a client reaches, and calls that are done once under a key
turns     turns for clients: a handle made from rows, and the present state of a turn
rows      the rows of the observer's page: one for each agent, each field with the version of its latest change
reading   the answers of the observer's page, as values for JSON
views     readings of a system for shells, pages and doors, a function each
histories   readings of histories, a function each
scrollback   any part of a history, without the rest of it
databases   the paths of databases, and the folder for files of the user
states    classifies the states of agents, which are texts
sessions   the part of a history that goes into a file of another program
agent_lists   lists of agents: some with all agents above them, or all agents in pages
notebooks   the notebooks of experiments: their logs
trials    readings of a system, and births of trials, for experiments
statistics   the figures of a database
turn_sources   the parts of logs from which turns are made, for example as spans
listing   agents and messages in pages
snapshots  snapshots of the registry and the host, for the bars and screens of a shell
conversation   turns as they happen, and calls that wait for approval
replies_on_their_way   the replies in progress, each with its text so far
news      the news of agents, shared by all who wait or stream on an event loop
branch_feed   the events of all agents in reach, one after the other
guest_logs   the logs of other libraries; each method is one transaction
following   follows the commits of hosts on the calling thread, for commands without a system
asked     a request of a client: its key, its first unit, and its stored result
metrics   metrics for Prometheus: figures of a database and of a host
files     uploads of a principal, and files of messages in reach
question_links   signed links, each to one question
account_flows    the pages of the API by which people connect accounts at remote MCP servers
shown_questions   a question as any door shows it, and the form of its answer
keys      idempotency keys: a repeated request of a principal is done once
readable   the argument type of views: a system, or a client
contexts   the contexts and tasks of agents of other systems
apps      apps: functions that return the arguments of `open`, and the files that define them
"""
