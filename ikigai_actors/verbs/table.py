"""Every verb: where it is declared, what it does in a line, and who may call it. Imports nothing else.

The line is the first sentence of the verb's docstring (held by a test), and ``usage`` is what follows the word in a
script. For more, load the verb.
"""

from enum import Flag, auto
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ikigai_actors.verbs.verb import Verb, VerbGroup


class Callers(Flag):
    """Callers that may use a verb."""

    PEOPLE = auto()
    """By a slash command."""
    SCRIPTS = auto()
    """By a subcommand of ``ikigai``."""
    PROTOCOLS = auto()
    """By a tool of a protocol."""
    ALL = PEOPLE | SCRIPTS | PROTOCOLS


class VerbLine(NamedTuple):
    """The entry of a verb in the table."""

    module: str
    """The module that declares the verb, below ``ikigai_actors``: its subject may be a face."""
    usage: str
    """The arguments of its subcommand."""
    line: str
    callers: Callers = Callers.ALL


TABLE = {
    "approvals": VerbLine("verbs.approvals", "", "List the calls that wait for approval."),
    "approve": VerbLine("verbs.approvals", "AGENT", "Let a call run that waits for approval."),
    "bad": VerbLine("behaviour.verbs", "AGENT", "Call the latest answer of a bisection bad."),
    "bisect": VerbLine(
        "behaviour.verbs",
        "",
        "Find the first bad turn of this agent: forks of it are asked a QUESTION, and you judge the answers.",
        Callers.PEOPLE,
    ),
    "budget": VerbLine(
        "verbs.budgets", "[ID] [+AMOUNT|LIMIT]", "Show the nearest budget of an agent, or grant more of it."
    ),
    "check-mail": VerbLine("verbs.mail", "AGENT", "Show how much mail the agent has not read."),
    "delete-mail": VerbLine("verbs.mail", "AGENT MAIL-ID", "Delete a mail for good."),
    "deny": VerbLine("verbs.approvals", "AGENT [N] [REASON]", "Refuse a call that waits for approval."),
    "doc": VerbLine(
        "verbs.documents", "COMMAND [ARGS]...", "List, show, write and delete the documents that all agents share."
    ),
    "experiments": VerbLine(
        "behaviour.verbs", "", "Show the experiments that live: what each looks at, and how far it is."
    ),
    "export": VerbLine(
        "verbs.files",
        "",
        "Write an agent, else the current one, and all below it to a new file, for /import or ikigai import.",
        Callers.PEOPLE,
    ),
    "filter-mail": VerbLine("verbs.mail", "AGENT", "List the agent's latest mail, read or not."),
    "good": VerbLine("behaviour.verbs", "AGENT", "Call the latest answer of a bisection good."),
    "group": VerbLine("verbs.groups", "[join|leave] [NAME]", "Show all groups, or let an agent join or leave one."),
    "hosts": VerbLine("verbs.hosts", "", "Show which processes run the agents, or did within the last hour."),
    "import": VerbLine(
        "verbs.files", "", "Bring the agents of a file of /export here: all of them, or none.", Callers.PEOPLE
    ),
    "monitor": VerbLine("verbs.groups", "AGENT ID", "Send an agent a mail when another one dies."),
    "move": VerbLine(
        "verbs.hosts", "AGENT HOST", "Move an agent to another host, with those below it that live on the same host."
    ),
    "notify": VerbLine(
        "verbs.mail", "AGENT {on|off}", "Give the agent a line when it is idle and has unread mail; or stop that."
    ),
    "read-mail": VerbLine("verbs.mail", "AGENT [MAIL-ID]", "Read the oldest unread mail, all of it, or one."),
    "replay": VerbLine(
        "behaviour.verbs",
        "",
        "Replay the turns of this agent, with other settings, and show what differs.",
        Callers.PEOPLE,
    ),
    "rules": VerbLine(
        "verbs.rules",
        "AGENT [add|remove] [allow|ask|deny|N] [TOOL] [PATTERN]",
        "List the rules in force for an agent, add one, or remove one by its number.",
    ),
    "send": VerbLine("verbs.mail", "ID TEXT...", "Send a mail, now or later."),
    "skip": VerbLine("behaviour.verbs", "AGENT", "Say of the latest answer of a bisection that it cannot be judged."),
    "timer": VerbLine(
        "verbs.timers", "", "Remind an agent of something later; without TEXT its timers are listed.", Callers.PEOPLE
    ),
    "timers": VerbLine(
        "verbs.timers",
        "[AGENT] [TEXT]...",
        "Show the timers of all agents, or of an AGENT; with a TEXT remind the AGENT of it later.",
        Callers.SCRIPTS | Callers.PROTOCOLS,
    ),
    "wait": VerbLine(
        "verbs.mail",
        "AGENT SECONDS [ID…]",
        "Wait until each of these agents has sent mail, has nothing to do, or has ended.",
    ),
    "agents": VerbLine("shell.walking", "", "Show the tree of agents.", Callers.PEOPLE),
    "child": VerbLine("shell.walking", "", "Go down: to the newest child of this agent.", Callers.PEOPLE),
    "clear": VerbLine("verbs.memory", "AGENT", "Start over: the agent forgets the conversation."),
    "compact": VerbLine(
        "verbs.memory",
        "AGENT [WHAT MATTERS]",
        "Let the model summarise the history, so that the next request is smaller.",
    ),
    "context": VerbLine("verbs.memory", "AGENT", "Show the agent's context."),
    "diff": VerbLine(
        "verbs.branches", "AGENT ID", "Show where an agent's history and another's part, and what each has said since."
    ),
    "exit": VerbLine("shell.walking", "", "Leave.", Callers.PEOPLE),
    "fork": VerbLine(
        "verbs.branches", "AGENT [PROMPT]...", "Fork an agent: make a child that remembers all that was said before."
    ),
    "help": VerbLine(
        "shell.walking", "", "List the first commands, explain one, or list all under headings.", Callers.PEOPLE
    ),
    "editor": VerbLine("verbs.editing", "", "Write a prompt in your editor.", Callers.PEOPLE),
    "find": VerbLine("verbs.finding", "", "Find a TEXT in what was said, in capitals or not.", Callers.PEOPLE),
    "history": VerbLine("verbs.memory", "AGENT [N]", "Show the latest N messages of the agent's history."),
    "mark": VerbLine("verbs.memory", "AGENT [LABEL]...", "Set a mark to which rewind comes back."),
    "merge": VerbLine(
        "verbs.branches",
        "AGENT ID",
        "Take in what an agent below this one has said, as a quotation that the model sees from then on.",
    ),
    "model": VerbLine("verbs.settings", "AGENT [NAME]", "Show the agent's model, or set it as provider:model."),
    "next": VerbLine("shell.walking", "", "Go to the next sibling, from the last to the first.", Callers.PEOPLE),
    "parent": VerbLine("shell.walking", "", "Go up: to the supervisor of this agent.", Callers.PEOPLE),
    "prev": VerbLine("shell.walking", "", "Go to the previous sibling, from the first to the last.", Callers.PEOPLE),
    "prompt": VerbLine("verbs.branches", "AGENT TEXT...", "Prompt an agent.", Callers.SCRIPTS | Callers.PROTOCOLS),
    "quit": VerbLine("shell.walking", "", "Leave: the same as /exit.", Callers.PEOPLE),
    "copy": VerbLine(
        "verbs.copying",
        "",
        "Copy the latest answer to the clipboard of the terminal, or the Nth latest.",
        Callers.PEOPLE,
    ),
    "queue": VerbLine(
        "verbs.queue", "", "Prompt this agent after its turn, or list the prompts that wait.", Callers.PEOPLE
    ),
    "resume": VerbLine(
        "verbs.branches", "AGENT", "Go on with the latest turn: one that a crash cut off, or that ended with an error."
    ),
    "rewind": VerbLine("verbs.memory", "AGENT [LABEL]...", "Go back to the latest mark, or to the one named LABEL."),
    "set": VerbLine("verbs.settings", "AGENT NAME [VALUE]...", "Show one of the agent's settings, or set it."),
    "settings": VerbLine(
        "verbs.settings",
        "AGENT",
        "Show the settings that are in force, and where each comes from: an agent, or the start of ikigai.",
    ),
    "switch": VerbLine("shell.walking", "", "Go to an agent.", Callers.PEOPLE),
    "system": VerbLine("verbs.settings", "AGENT [TEXT]...", "Show the agent's system prompt, or set it."),
    "tools": VerbLine(
        "verbs.settings",
        "AGENT [NAME]",
        "List the tools that the agent's model is offered, or explain one.",
        Callers.PEOPLE,  # only the process that runs the agents knows them
    ),
    "uncompact": VerbLine(
        "verbs.memory",
        "AGENT",
        "Take off the latest summary: the model sees the messages again that it replaced, and everything since.",
    ),
    "undo": VerbLine("verbs.memory", "AGENT", "Take back the latest prompt, and everything after it."),
    "adopt": VerbLine("verbs.life", "AGENT ID", "Let an agent supervise another one, which goes on if it was stopped."),
    "finish": VerbLine("verbs.life", "AGENT [TEXT]...", "End an agent after its turn: the normal end."),
    "kill": VerbLine("verbs.life", "AGENT", "End an agent at once."),
    "orphans": VerbLine(
        "verbs.life",
        "AGENT [reparent|cascade|stop|continue]",
        "Show or set what becomes of an agent's children when it dies.",
    ),
    "rename": VerbLine("verbs.life", "AGENT NAME", "Give an agent another name, unique among the living."),
    "signal": VerbLine("verbs.life", "INT|STOP|CONT|TERM|KILL AGENT", "Send a signal to an agent."),
    "supervise": VerbLine("verbs.life", "AGENT", "Show or set how an agent restarts its children when they crash."),
}


def names(callers: Callers) -> list[str]:
    """The words that these may call, in alphabetical order."""
    return sorted(name for name, entry in TABLE.items() if entry.callers & callers)


def load(name: str) -> "Verb | VerbGroup":
    """Import the verb of a word, which the table has."""
    from ikigai_actors.verbs.verb import Verb, VerbGroup

    module = import_module(f"ikigai_actors.{TABLE[name].module}")
    return next(one for one in vars(module).values() if isinstance(one, Verb | VerbGroup) and one.name == name)
