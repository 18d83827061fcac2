"""The slash commands for calls that wait for the person's approval."""

import click

from ikigai_actors.shell.text.call_page import described_call
from ikigai_actors.shell.text.naming import named
from ikigai_actors.shell.verbs.arguments import TEXT
from ikigai_actors.shell.verbs.place import ShellPlace


@click.command("/approvals")
@click.pass_obj
def list_approvals(shell: ShellPlace) -> None:
    """List the calls that wait for your approval.

    They wait until you decide, also when the shell is left and started again. Other agents go on meanwhile.
    """
    questions = shell.questions.open()
    for number, call in questions.items():
        shell.screen.line(f"{number}  {named(shell.system.handle(call.agent))}: {described_call(call)}")
    if not questions:
        shell.screen.line("No call waits for approval.")
    else:
        shell.screen.line("/approve N lets one run, /deny N does not.")


@click.command("/approve")
@click.argument("number", metavar="[N]", type=click.IntRange(min=1), required=False)
@click.option("--always", is_flag=True, help="This agent need not ask for this tool again.")
@click.pass_obj
def approve(shell: ShellPlace, number: int | None, always: bool) -> None:
    """Let a call run that waits for approval.

    N is its number in /approvals; without it, the first call of the current agent.
    """
    shell.decide(number, True, always=always)


@click.command("/deny")
@click.argument("words", metavar="[N] [REASON]", type=TEXT, nargs=-1)
@click.pass_obj
def deny(shell: ShellPlace, words: tuple[str, ...]) -> None:
    """Refuse a call that waits for approval.

    N is its number in /approvals; without it, the first call of the current agent. The model is told the REASON.
    """
    number = int(words[0]) if words and words[0].isdecimal() else None
    shell.decide(number, False, reason=" ".join(words if number is None else words[1:]))


COMMANDS = (list_approvals, approve, deny)
