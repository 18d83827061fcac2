"""The built-in calls about timers: remind, cancel_reminder."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ikigai_actors.agent.builtin_calls.base import Argument, BuiltinCall, Given, text
from ikigai_actors.records.mail.timers import MOST_TIMERS, CancelTimer, Timer, reminder
from ikigai_actors.store.base import Transaction
from ikigai_actors.store.unit import LockedRows, Unit

LEAST_APART = 600
"""The least seconds between two times of a schedule that a model sets. Each may begin a turn, which costs money."""


class RemindCall(BuiltinCall):
    """The call ``remind``: set a timer of the calling agent."""

    name = "remind"
    description = (
        "Remind yourself of something later: give one of after, at and every. Use prompt to be woken up: it begins a "
        "turn of yours when you are idle. Without it the reminder is mail, which waits until you look, and ends a wait "
        f"of yours. You can have {MOST_TIMERS} timers; they outlive a restart, and end with you."
    )
    arguments: ClassVar = {
        "text": Argument("string", "Of what.", required=True),
        "after": Argument("number", "Seconds from now on."),
        "at": Argument("string", "When, as 2026-11-26 09:00, or as 09:00 for the next time it is nine."),
        "every": Argument(
            "string",
            'Again and again, in five fields as of cron: "0 9 * * 1-5" is at nine on workdays; or an interval, as '
            f'"36h". At least {LEAST_APART // 60} minutes apart.',
        ),
        "zone": Argument(
            "string", "The time zone of at and every, as Europe/Berlin; without it, that of this machine."
        ),
        "prompt": Argument("boolean", "Whether it is a prompt. Mail if left out."),
    }

    def act(self, agent: str, arguments: Given, now: int) -> "Remind":
        return Remind(agent, arguments, now)

    def to_model(self, answer: Timer) -> str:
        return f"Timer {answer.id}: {answer.when}, as {'a prompt' if answer.fires_as == 'prompt' else 'mail'}."


class CancelReminderCall(BuiltinCall):
    """The call ``cancel_reminder``: cancel a timer of the calling agent."""

    name = "cancel_reminder"
    description = "Cancel one of your timers, by its number."
    arguments: ClassVar = {"timer": Argument("integer", "Its number.", required=True)}

    def act(self, agent: str, arguments: Given, now: int) -> CancelTimer:
        return CancelTimer(agent, arguments["timer"], now)

    def to_model(self, answer: None) -> str:
        return "Cancelled."


CALLS = (RemindCall(), CancelReminderCall())


@dataclass(frozen=True, slots=True)
class Remind(Unit):
    """The unit that sets a timer for the call ``remind``; answered with the `Timer`.

    Raises `BadInput` and the errors of `SetTimer`.
    """

    agent: str
    arguments: Given
    now: int

    concerns_others = True

    def write(self, tx: Transaction, locked: LockedRows) -> Timer:
        when: dict[str, Any] = {key: self.arguments.get(key) for key in ("at", "after", "every", "zone")}
        prompt = bool(self.arguments.get("prompt"))
        unit = reminder(self.agent, text(self.arguments, "text"), self.now, prompt=prompt, least=LEAST_APART, **when)
        return unit.write(tx, locked)
