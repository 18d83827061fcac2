"""Every verb: where it is declared, what it does in a line, who may call it, and by what right. Imports nothing else.

The line is the first sentence of the verb's docstring (held by a test), and ``usage`` is what follows the word in a
script. For more, load the verb.
"""

from enum import Flag, IntEnum, auto
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


class Right(IntEnum):
    """A right of a person or a program that asks for something. Each has those before it."""

    LOOK = 0
    PROMPT = 1
    """Have agents work, and talk to them."""
    APPROVE = 2
    """Decide on calls of their models."""
    OPERATE = 3
    """Set what they may do and spend, and end them."""


class VerbLine(NamedTuple):
    """The entry of a verb in the table."""

    module: str
    """The module that declares the verb, below ``ikigai_actors``: its subject may be a face."""
    usage: str
    """The arguments of its subcommand."""
    line: str
    callers: Callers = Callers.ALL
    needs: Right = Right.OPERATE
    """The right to change something by it. `Right.LOOK` alone is shown what there is, and changes nothing."""
    for_models: bool = False
    """Whether `ikigai mcp` offers it to models as it is. What models ask for in other words is an act."""


TABLE = {
    "approvals": VerbLine("verbs.approvals", "", "List the calls that wait for approval.", needs=Right.LOOK),
    "approve": VerbLine("verbs.approvals", "AGENT", "Let a call run that waits for approval.", needs=Right.APPROVE),
    "bad": VerbLine("behaviour.verbs", "AGENT", "Call the latest answer of a bisection bad.", needs=Right.PROMPT),
    "bisect": VerbLine(
        "behaviour.verbs",
        "",
        "Find the first bad turn of this agent: forks of it are asked a QUESTION, and you judge the answers.",
        Callers.PEOPLE,
        needs=Right.PROMPT,
    ),
    "budget": VerbLine(
        "verbs.budgets",
        "[ID] [+AMOUNT|LIMIT]",
        "Show the nearest budget of an agent, or grant more of it.",
        needs=Right.OPERATE,
    ),
    "check-mail": VerbLine("verbs.mail", "AGENT", "Show how much mail the agent has not read.", needs=Right.LOOK),
    "delete-mail": VerbLine("verbs.mail", "AGENT MAIL-ID", "Delete a mail for good.", needs=Right.OPERATE),
    "deny": VerbLine(
        "verbs.approvals", "AGENT [N] [REASON]", "Refuse a call that waits for approval.", needs=Right.APPROVE
    ),
    "doc": VerbLine(
        "verbs.documents",
        "COMMAND [ARGS]...",
        "List, show, write and delete the documents that all agents share.",
        needs=Right.PROMPT,
    ),
    "endpoint": VerbLine(
        "verbs.endpoints",
        "COMMAND [ARGS]...",
        "Make, show and remove endpoints, by which signed events from outside reach agents.",
        Callers.PEOPLE | Callers.SCRIPTS,  # a secret is named as this machine finds it: no act for callers from outside
    ),
    "experiments": VerbLine(
        "behaviour.verbs",
        "",
        "Show the experiments that live: what each looks at, and how far it is.",
        needs=Right.LOOK,
    ),
    "export": VerbLine(
        "verbs.files",
        "",
        "Write an agent, else the current one, and all below it to a new file, for /import or ikigai import.",
        Callers.PEOPLE,
        needs=Right.OPERATE,
    ),
    "filter-mail": VerbLine("verbs.mail", "AGENT", "List the agent's latest mail, read or not.", needs=Right.LOOK),
    "good": VerbLine("behaviour.verbs", "AGENT", "Call the latest answer of a bisection good.", needs=Right.PROMPT),
    "group": VerbLine(
        "verbs.groups",
        "[join|leave] [NAME]",
        "Show all groups, or let an agent join or leave one.",
        needs=Right.OPERATE,
    ),
    "hosts": VerbLine(
        "verbs.hosts", "", "Show which processes run the agents, or did within the last hour.", needs=Right.LOOK
    ),
    "import": VerbLine(
        "verbs.files",
        "",
        "Bring the agents of a file of /export here: all of them, or none.",
        Callers.PEOPLE,
        needs=Right.OPERATE,
    ),
    "kinds": VerbLine(
        "verbs.kinds",
        "AGENT [use|off|look] [NAME]...",
        "List the kinds of agents that an agent can fork and those on this disk, or decide which of them it may.",
        Callers.PEOPLE | Callers.SCRIPTS,  # it reads the disk of this machine
        needs=Right.OPERATE,
    ),
    "monitor": VerbLine("verbs.groups", "AGENT ID", "Send an agent a mail when another one dies.", needs=Right.OPERATE),
    "move": VerbLine(
        "verbs.hosts",
        "AGENT HOST",
        "Move an agent to another host, with those below it that live on the same host.",
        needs=Right.OPERATE,
    ),
    "notify": VerbLine(
        "verbs.mail",
        "AGENT {on|off}",
        "Give the agent a line when it is idle and has unread mail; or stop that.",
        needs=Right.OPERATE,
    ),
    "questions": VerbLine(
        "verbs.questions",
        "COMMAND [ARGS]...",
        "List what waits for a person, and answer it.",
        needs=Right.PROMPT,
    ),
    "read-mail": VerbLine(
        "verbs.mail", "AGENT [MAIL-ID]", "Read the oldest unread mail, all of it, or one.", needs=Right.PROMPT
    ),
    "replay": VerbLine(
        "behaviour.verbs",
        "",
        "Replay the turns of this agent, with other settings, and show what differs.",
        Callers.PEOPLE,
        needs=Right.PROMPT,
    ),
    "rules": VerbLine(
        "verbs.rules",
        "AGENT [add|remove] [allow|ask|deny|N] [TOOL] [PATTERN]",
        "List the rules in force for an agent, add one, or remove one by its number.",
        needs=Right.OPERATE,
    ),
    "send": VerbLine("verbs.mail", "ID TEXT...", "Send a mail, now or later.", needs=Right.PROMPT),
    "skip": VerbLine(
        "behaviour.verbs",
        "AGENT",
        "Say of the latest answer of a bisection that it cannot be judged.",
        needs=Right.PROMPT,
    ),
    "timer": VerbLine(
        "verbs.timers",
        "",
        "Remind an agent of something later; without TEXT its timers are listed.",
        Callers.PEOPLE,
        needs=Right.PROMPT,
    ),
    "timers": VerbLine(
        "verbs.timers",
        "[AGENT] [TEXT]...",
        "Show the timers of all agents, or of an AGENT; with a TEXT remind the AGENT of it later.",
        Callers.SCRIPTS | Callers.PROTOCOLS,
        needs=Right.PROMPT,
    ),
    "wait": VerbLine(
        "verbs.mail",
        "AGENT SECONDS [ID…]",
        "Wait until each of these agents has sent mail, has nothing to do, or has ended.",
        needs=Right.LOOK,
    ),
    "agents": VerbLine("shell.walking", "", "Show the tree of agents.", Callers.PEOPLE, needs=Right.LOOK),
    "child": VerbLine(
        "shell.walking", "", "Go down: to the newest child of this agent.", Callers.PEOPLE, needs=Right.LOOK
    ),
    "clear": VerbLine("verbs.memory", "AGENT", "Start over: the agent forgets the conversation.", needs=Right.PROMPT),
    "compact": VerbLine(
        "verbs.memory",
        "AGENT [WHAT MATTERS]",
        "Let the model summarise the history, so that the next request is smaller.",
        needs=Right.PROMPT,
    ),
    "context": VerbLine("verbs.memory", "AGENT", "Show the agent's context.", needs=Right.LOOK),
    "diff": VerbLine(
        "verbs.branches",
        "AGENT ID",
        "Show where an agent's history and another's part, and what each has said since.",
        needs=Right.LOOK,
    ),
    "exit": VerbLine("shell.walking", "", "Leave.", Callers.PEOPLE, needs=Right.LOOK),
    "fork": VerbLine(
        "verbs.branches",
        "AGENT [PROMPT]...",
        "Fork an agent: make a child that remembers all that was said before.",
        needs=Right.PROMPT,
    ),
    "help": VerbLine(
        "shell.walking",
        "",
        "List the first commands, explain one, or list all under headings.",
        Callers.PEOPLE,
        needs=Right.LOOK,
    ),
    "editor": VerbLine("verbs.editing", "", "Write a prompt in your editor.", Callers.PEOPLE, needs=Right.LOOK),
    "find": VerbLine(
        "verbs.finding",
        "AGENT [TEXT]...",
        "Find a TEXT in what was said, in capitals or not.",
        needs=Right.LOOK,
        for_models=True,
    ),
    "history": VerbLine(
        "verbs.memory", "AGENT [N]", "Show the latest N messages of the agent's history.", needs=Right.LOOK
    ),
    "mark": VerbLine("verbs.memory", "AGENT [LABEL]...", "Set a mark to which rewind comes back.", needs=Right.PROMPT),
    "merge": VerbLine(
        "verbs.branches",
        "AGENT ID",
        "Take in what an agent below this one has said, as a quotation that the model sees from then on.",
        needs=Right.PROMPT,
    ),
    "model": VerbLine(
        "verbs.settings",
        "AGENT [NAME]",
        "Show the agent's model, or set it as provider:model.",
        needs=Right.OPERATE,
    ),
    "next": VerbLine(
        "shell.walking",
        "",
        "Go to the next sibling, from the last to the first.",
        Callers.PEOPLE,
        needs=Right.LOOK,
    ),
    "parent": VerbLine(
        "shell.walking", "", "Go up: to the supervisor of this agent.", Callers.PEOPLE, needs=Right.LOOK
    ),
    "prev": VerbLine(
        "shell.walking",
        "",
        "Go to the previous sibling, from the first to the last.",
        Callers.PEOPLE,
        needs=Right.LOOK,
    ),
    "prompt": VerbLine(
        "verbs.branches",
        "AGENT TEXT...",
        "Prompt an agent.",
        Callers.SCRIPTS | Callers.PROTOCOLS,
        needs=Right.PROMPT,
    ),
    "quit": VerbLine("shell.walking", "", "Leave: the same as /exit.", Callers.PEOPLE, needs=Right.LOOK),
    "copy": VerbLine(
        "verbs.copying",
        "",
        "Copy the latest answer to the clipboard of the terminal, or the Nth latest.",
        Callers.PEOPLE,
        needs=Right.LOOK,
    ),
    "queue": VerbLine(
        "verbs.queue",
        "AGENT [TEXT]...",
        "Prompt an agent after its turn, or list the prompts that wait.",
        needs=Right.PROMPT,
    ),
    "resume": VerbLine(
        "verbs.branches",
        "AGENT",
        "Go on with the latest turn: one that a crash cut off, or that ended with an error.",
        needs=Right.PROMPT,
    ),
    "rewind": VerbLine(
        "verbs.memory",
        "AGENT [LABEL]...",
        "Go back to the latest mark, or to the one named LABEL.",
        needs=Right.PROMPT,
    ),
    "set": VerbLine(
        "verbs.settings",
        "AGENT NAME [VALUE]...",
        "Show one of the agent's settings, or set it.",
        needs=Right.OPERATE,
    ),
    "settings": VerbLine(
        "verbs.settings",
        "AGENT",
        "Show the settings that are in force, and where each comes from: an agent, or the start of ikigai.",
        needs=Right.LOOK,
    ),
    "skills": VerbLine(
        "verbs.skills",
        "AGENT [use|off|look] [NAME]...",
        "List the skills of an agent and those on this disk, or decide which of them its model may load.",
        Callers.PEOPLE | Callers.SCRIPTS,  # it reads the disk of this machine
        needs=Right.OPERATE,
    ),
    "switch": VerbLine("shell.walking", "", "Go to an agent.", Callers.PEOPLE, needs=Right.LOOK),
    "system": VerbLine(
        "verbs.settings", "AGENT [TEXT]...", "Show the agent's system prompt, or set it.", needs=Right.OPERATE
    ),
    "token": VerbLine(
        "verbs.tokens",
        "COMMAND [ARGS]...",
        "Issue, list and revoke the tokens by which principals come in through ikigai api.",
        Callers.SCRIPTS,
        needs=Right.OPERATE,
    ),
    "tools": VerbLine(
        "verbs.settings",
        "AGENT [NAME]",
        "List the tools that the agent's model is offered, or explain one.",
        Callers.PEOPLE | Callers.SCRIPTS,  # it is asked by a row, which one who may only look does not write
        needs=Right.LOOK,
    ),
    "uncompact": VerbLine(
        "verbs.memory",
        "AGENT",
        "Take off the latest summary: the model sees the messages again that it replaced, and everything since.",
        needs=Right.PROMPT,
    ),
    "undo": VerbLine(
        "verbs.memory", "AGENT", "Take back the latest prompt, and everything after it.", needs=Right.PROMPT
    ),
    "adopt": VerbLine(
        "verbs.life",
        "AGENT ID",
        "Let an agent supervise another one, which goes on if it was stopped.",
        needs=Right.OPERATE,
    ),
    "finish": VerbLine(
        "verbs.life", "AGENT [TEXT]...", "End an agent after its turn: the normal end.", needs=Right.OPERATE
    ),
    "kill": VerbLine("verbs.life", "AGENT", "End an agent at once.", needs=Right.OPERATE),
    "orphans": VerbLine(
        "verbs.life",
        "AGENT [reparent|cascade|stop|continue]",
        "Show or set what becomes of an agent's children when it dies.",
        needs=Right.OPERATE,
    ),
    "rename": VerbLine(
        "verbs.life", "AGENT NAME", "Give an agent another name, unique among the living.", needs=Right.OPERATE
    ),
    "signal": VerbLine(
        "verbs.life", "INT|STOP|CONT|TERM|KILL AGENT", "Send a signal to an agent.", needs=Right.OPERATE
    ),
    "subscription": VerbLine(
        "verbs.subscriptions",
        "COMMAND [ARGS]...",
        "Make, show and remove subscriptions, by which receivers outside get signed events.",
        Callers.PEOPLE | Callers.SCRIPTS,  # as of endpoints
    ),
    "supervise": VerbLine(
        "verbs.life",
        "AGENT",
        "Show or set how an agent restarts its children when they crash.",
        needs=Right.OPERATE,
    ),
}


def names(callers: Callers) -> list[str]:
    """The words that these may call, in alphabetical order."""
    return sorted(name for name, entry in TABLE.items() if entry.callers & callers)


def load(name: str) -> "Verb | VerbGroup":
    """Import the verb of a word, which the table has."""
    from ikigai_actors.verbs.verb import Verb, VerbGroup

    module = import_module(f"ikigai_actors.{TABLE[name].module}")
    return next(one for one in vars(module).values() if isinstance(one, Verb | VerbGroup) and one.name == name)
