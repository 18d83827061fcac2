"""The timers of an agent."""

from datetime import datetime

from ikigai_actors.actors.futures import Future
from ikigai_actors.arguments import check_flag
from ikigai_actors.programs.acts import VerbAct, program_frame
from ikigai_actors.records.mail.schedules import times
from ikigai_actors.records.mail.timers import CancelTimer, check_timer_id, reminder
from ikigai_actors.system.handles.base import H
from ikigai_actors.system.handles.commands.base import CommandBase


class TimerCommands(CommandBase[H]):
    """The timers of an agent."""

    __slots__ = ()

    def remind(
        self,
        text: str,
        *,
        at: datetime | str | None = None,
        after: float | None = None,
        every: str | None = None,
        zone: str | None = None,
        prompt: bool = False,
        key: str | None = None,
        timeout: float | None = None,
    ) -> Future[int]:
        """Remind the agent of something later, once or again and again, whichever host runs it then.

        It gets a mail (of kind ``notice``) or a prompt. What is missed while no host runs comes once, as soon as one
        does, and says how much that was. While the latest one of a schedule is unread no other one is added. The timer
        ends with the agent.

        Args:
            text: of what; at most 64 KiB in UTF-8, and not blank.
            at: when, once: a `datetime`, or a text such as ``"2026-11-26 09:00"`` or ``"09:00"``; by the clocks of the
                zone, unless it says of which.
            after: so many seconds from now on, once.
            every: again and again, in five fields as of cron: ``"0 9 * * 1-5"`` is at nine on workdays; or each time
                that so much has passed, as ``"36h"``: a whole number of ``s``, ``m``, ``h``, ``d`` or ``w``.
            zone: whose clocks are meant, by its IANA name, such as ``"Europe/Berlin"``; None is the zone of this
                machine.
            prompt: whether it is a prompt, which begins a turn when the agent is idle. Mail waits until it is read.
            key: 1 to 200 printable characters that name this timer for the agent. A second call with the key sets none,
                and returns the number of the first one, in any process and after any crash.
            timeout: seconds to wait; None waits forever.

        Returns:
            After the commit, the number of the timer among those of the agent.

        Raises:
            AgentNotFound, AgentDead: there is no such living agent.
            BadInput: not one of ``at``, ``after`` and ``every`` is given; the time is over, or more than ten years
                ahead; there is no such zone; or the text cannot be sent. `KeyTaken`: the key names another call.
            TooManyTimers: it has 100 timers.
        """
        check_flag(prompt, "prompt")
        if (frame := program_frame("remind", key=key, timeout=timeout)) is not None:
            when = {"at": None if at is None else str(at), "after": after, "every": every, "zone": zone}
            return VerbAct(frame, "remind", {"agent": self.uuid, "text": text, "prompt": prompt or None, **when})
        now = self.system._clock.now_ms()
        unit = reminder(self.uuid, text, now, prompt=prompt, at=at, after=after, every=every, zone=zone)
        given = {"text": text, "prompt": prompt, **times(at, after, zone, every)}
        return self._write(unit, timeout, lambda timer: timer.id, self._call(key, "remind", given, text))

    def cancel_timer(self, number: int, timeout: float | None = None) -> Future[None]:
        """Cancel one of its timers.

        Args:
            number: the number of the timer, as `remind` and `send` return it.
            timeout: seconds to wait; None waits forever.

        Raises:
            TimerNotFound: there is no such timer; it may have fired.
        """
        return self._write(
            CancelTimer(self.uuid, check_timer_id(number), self.system._clock.now_ms()), timeout, lambda _: None
        )
