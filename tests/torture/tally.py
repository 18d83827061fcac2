"""What a campaign has seen, counted."""

from collections import Counter
from collections.abc import Iterable

from ikigai_actors.agent.turn.calls import PERHAPS_RUN, Progress
from ikigai_actors.records.messages.messages import Kind
from tests.torture.script import IDEMPOTENT
from tests.torture.snapshot import Snapshot, open_calls, open_turns
from tests.torture.victim import (
    Bereft,
    Delta,
    Died,
    Doomed,
    Ended,
    Entered,
    Forked,
    Heard,
    Idle,
    Joined,
    Reminded,
    Report,
    Said,
    Stage,
    TookBack,
    Trying,
    Wrote,
    name_of,
)


class Tally:
    """Counts by name, and every violation."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []
        self.seconds = 0.0

    def kill(self, reports: Iterable[Report], left: Snapshot) -> None:
        """Count a kill: where it hit, what it cut off, and what was acknowledged before it."""
        counts, stage = self.counts, "boot"
        speaking: set[str] = set()
        under_way: dict[int, Trying] = {}
        for report in reports:
            match report:
                case Stage(stage):
                    pass
                case Delta(agent):
                    speaking.add(agent)
                case Heard(message):
                    counts["messages"] += 1
                    speaking.discard(message.agent_uuid)
                case Trying(hand=hand):
                    under_way[hand] = report
                case (
                    Wrote(hand=hand) | Forked(hand=hand) | Ended(hand=hand) | Died(hand=hand) | Doomed(hand=hand)
                    | Bereft(hand=hand) | Idle(hand=hand) | Said(hand=hand) | Entered(hand=hand)
                    | TookBack(hand=hand) | Reminded(hand=hand) | Joined(hand=hand)
                ):  # fmt: skip
                    counts["words"] += isinstance(report, Said | TookBack)
                    counts["receipts"] += isinstance(report, Entered)
                    counts["withdrawn"] += isinstance(report, TookBack)
                    counts["timers"] += isinstance(report, Reminded)
                    counts["groups"] += isinstance(report, Joined)
                    counts["merges"] += isinstance(report, Wrote) and report.kind == Kind.MERGE
                    counts["commands"] += not isinstance(report, Idle | Bereft)
                    under_way.pop(hand, None)
        counts["kills"] += 1
        counts[stage] += 1
        counts.update(set(open_turns(left)) or {"nothing open"})
        counts["mid-stream"] += bool(speaking)
        counts["unread"] += left.unread
        for trying in under_way.values():
            counts["prompts cut off" if trying.command == "prompt" else "other commands cut off"] += 1
            counts["committed"] += trying.command != "prompt" and _is_written(trying.token, left)
        for record in left.records.values():
            cut_off = [call for call in open_calls(left, record) if call.progress is Progress.RUNNING]
            counts["calls cut off"] += len(cut_off)
            counts["calls cut off, idempotent"] += sum(call.name in IDEMPOTENT for call in cut_off)

    def tree(self, last: Snapshot, ran: Counter[str]) -> None:
        """Count a tree that is given up, every turn at its end."""
        self.counts["trees"] += 1
        self.counts["agents"] += len(last.records)
        for record in last.records.values():
            if not record.living:
                self.counts["dead"] += 1
                self.counts[str(record.exit_cause)] += 1
        self.counts["calls ran"] += len(ran)
        self.counts["ran again"] += sum(times > 1 for times in ran.values())
        self.counts["may have run"] += sum(
            message.kind == Kind.TOOL_RESULT and message.content == PERHAPS_RUN for message in last.messages
        )

    def summary(self, name: str, seed: int) -> str:
        """All of it, for a person."""
        seen = self.counts
        each = self.seconds / max(1, seen["kills"])
        return f"""\
{name}: {seen["kills"]} kills, {each:.2f} s each, seed {seed}
  hit          boot {seen["boot"]}, resume {seen["resume"]}, work {seen["work"]}
  open then    tool running {seen["tool running"]}, between calls {seen["between calls"]}, \
model asked {seen["model asked"]}, of which in mid-stream {seen["mid-stream"]}; nothing {seen["nothing open"]}
  commands     {seen["commands"]:,} acknowledged; cut off: {seen["prompts cut off"]:,} prompts and \
{seen["other commands cut off"]:,} others, of which {seen["committed"]:,} were committed
  messages     {seen["messages"]:,} acknowledged
  words        {seen["words"]:,} kept, {seen["receipts"]:,} receipts, {seen["withdrawn"]:,} withdrawn; \
{seen["unread"]:,} unread at a kill
  and          {seen["timers"]:,} timers, {seen["groups"]:,} memberships, {seen["merges"]:,} merges acknowledged
  deaths       {seen["dead"]:,}: {seen["killed"]:,} killed, {seen["terminated"]:,} terminated, \
{seen["exited"]:,} exited, {seen["orphaned"]:,} orphaned
  calls        {seen["calls ran"]:,} ran; {seen["calls cut off"]:,} cut off, \
of which {seen["calls cut off, idempotent"]:,} idempotent; {seen["ran again"]:,} ran again, \
{seen["may have run"]:,} told that they may have run
  restarts     {seen["restarts"]}, {seen["turns"]:,} turns resumed or prompted over
  looked over  {seen["trees"]} trees of {seen["agents"]:,} agents; {seen["histories"]:,} histories, {seen["fsck"]} fsck
  violations   {len(self.violations) or "none"}""" + "".join(f"\n    {violation}" for violation in self.violations)


def _is_written(token: str, now: Snapshot) -> bool:
    """Whether a fork, mark, configure or death is committed; a clear or rewind leaves no token."""
    return any(
        record.name == name_of(token) or (record.exit_reason or "").partition(";")[0] == token
        for record in now.records.values()
    ) or any(token in (message.content, message.data.get("system")) for message in now.messages)
