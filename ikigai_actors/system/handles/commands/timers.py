"""The commands that set and cancel the timers of an agent."""

from datetime import datetime

from ikigai_actors.actors.futures import Future
from ikigai_actors.arguments import check_flag
from ikigai_actors.programs.acts import VerbAct, program_frame
from ikigai_actors.records.mail.schedules import times
from ikigai_actors.records.mail.timers import CancelTimer, check_timer_id, reminder
from ikigai_actors.system.handles.base import H
from ikigai_actors.system.handles.commands.base import CommandBase


class TimerCommands(CommandBase[H]):
    """The commands that set and cancel the timers of an agent."""

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
        """Remind the agent of something at a later time, once or repeatedly, on whatever host runs it then.

        The agent gets a mail (of kind ``notice``) or a prompt. If reminders are missed while no host runs, one comes as
        soon as a host runs, and says how many were missed. While the latest reminder of a schedule is unread, no
        further one is added. The timer ends with the agent.

        Args:
            text: the text of the reminder, at most 64 KiB in UTF-8, and not blank.
            at: the time of a single reminder: a `datetime`, or a text such as ``"2026-11-26 09:00"`` or ``"09:00"``.
                Without its own zone, it is a time in ``zone``.
            after: the seconds until a single reminder.
            every: a schedule: the five fields of cron, such as ``"0 9 * * 1-5"`` for nine o'clock on workdays; or a
                period, such as ``"36h"``: a whole number of ``s``, ``m``, ``h``, ``d`` or ``w``.
            zone: the time zone, by its IANA name, such as ``"Europe/Berlin"``; None is the zone of this machine.
            prompt: whether the reminder is a prompt, which begins a turn when the agent is idle. Otherwise it is mail,
                which waits until it is read.
            key: 1 to 200 printable characters that name this timer for the agent. A second call with the key, in any
                process and after any crash, sets no timer, and returns the number of the first one.
            timeout: seconds to wait; None waits forever.

        Returns:
            After the commit, the number of the timer among those of the agent.

        Raises:
            AgentNotFound, AgentDead: there is no such living agent.
            BadInput: not exactly one of ``at``, ``after`` and ``every`` is set; the time is past, or more than ten
                years ahead; there is no such zone; or the text cannot be sent. `KeyTaken`: the key names another call.
            TooManyTimers: the agent has 100 timers.
        """
        check_flag(prompt, "prompt")
        if (frame := program_frame("remind", key=key, timeout=timeout)) is not None:
            when = {"at": None if at is None else str(at), "after": after, "every": every, "zone": zone}
            return VerbAct(frame, "remind", {"agent": self.uuid, "text": text, "prompt": prompt or None, **when})
        now = self.system._clock.now_ms()
        unit = reminder(self.uuid, text, now, prompt=prompt, at=at, after=after, every=every, zone=zone)
        arguments = {"text": text, "prompt": prompt, **times(at, after, zone, every)}
        return self._write(unit, timeout, lambda timer: timer.id, self._call(key, "remind", arguments, text))

    def cancel_timer(self, number: int, timeout: float | None = None) -> Future[None]:
        """Cancel a timer of the agent.

        Args:
            number: the number of the timer, as `remind` and `send` return it.
            timeout: seconds to wait; None waits forever.

        Raises:
            TimerNotFound: there is no such timer. Perhaps it has fired.
        """
        return self._write(
            CancelTimer(self.uuid, check_timer_id(number), self.system._clock.now_ms()), timeout, lambda _: None
        )
