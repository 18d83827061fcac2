"""Mutants of what keeps several hosts apart, for `FleetMachine`, which finds each within 75 seconds of the processor.

nice python -m tests.mutants --hosts --seconds 75
"""

from tests.mutants import Edit, Mutant

_OWNER = Edit(
    "records/log/append.py",
    "if row.owner != fence.host or row.epoch != fence.epoch:",
    "if row.epoch != fence.epoch:",
)
"""The second defence against a host that has ended: the owner of the shard."""

HOST_MUTANTS = (
    Mutant(
        "ended hosts write on",
        "store/queries.sql",
        "WHERE id = :host AND ended_at IS NULL AND batch = :last",
        "WHERE id = :host AND batch = :last",
        (_OWNER,),
    ),
    Mutant(
        "a process does not hear the stamps that it reads",
        "store/database_clock.py",
        "        if stamp > self._latest:\n",
        "        if stamp > self._latest and self._latest == 0:\n",
    ),
    Mutant(
        "hosts write into an older copy",
        "store/queries.sql",
        "WHERE id = :host AND ended_at IS NULL AND batch = :last",
        "WHERE id = :host AND ended_at IS NULL",
    ),
    Mutant(
        "a host is ended although it has renewed its lease",
        "store/queries.sql",
        "WHERE id = :host AND beat = :beat AND ended_at IS NULL",
        "WHERE id = :host AND ended_at IS NULL",
    ),
    Mutant(
        "the beat is judged by the calendar",
        "store/hosts/peers.py",
        "began = self._clock.monotonic()",
        "began = self._clock.now_ms() / 1000",
    ),
    Mutant(
        "a lock that was lost with its connection is taken again too late",
        "store/hosts/host.py",
        "                self.renew()\n            except Fenced as error:",
        "                if self.clock.monotonic() - self._renewed >= self._lease / 4:\n"
        "                    self.renew()\n            except Fenced as error:",
    ),
    Mutant(
        "agents are given away before their actors have ended",
        "system/host/rebalancer.py",
        "            self._leave(parting.agents)\n",
        "",
        (
            Edit("system/host/rebalancer.py", "        self._leave(self._agents_in(shards))\n", ""),
            Edit("system/host/rebalancer.py", "            self._leave(self._branch(agent))\n", ""),
        ),
    ),
    Mutant(
        "a remote command is answered in a transaction of its own",
        "agent/actor.py",
        "            unit = CarryOut(caller.key, unit, asked[1], self.runtime.clock.now_ms())\n",
        "            from ikigai_actors.records.hosts.remote_commands import AnswerRemoteCommand\n"
        "            later = AnswerRemoteCommand(caller.key, asked[1], self.runtime.clock.now_ms())\n"
        "            submit, release = self.runtime.journal.submit, self.actor_inbox.release\n"
        "            submit(unit, lambda done: (submit(later, lambda _: None), release(done)))\n"
        "            return\n",
    ),
    Mutant(
        "a remote command is answered before it is carried out",
        "agent/actor.py",
        "            unit = CarryOut(caller.key, unit, asked[1], self.runtime.clock.now_ms())\n",
        "            from ikigai_actors.records.hosts.remote_commands import AnswerRemoteCommand\n"
        "            first = AnswerRemoteCommand(caller.key, asked[1], self.runtime.clock.now_ms())\n"
        "            submit, release, then = self.runtime.journal.submit, self.actor_inbox.release, unit\n"
        "            submit(first, lambda _: submit(then, release))\n"
        "            return\n",
    ),
    Mutant(
        "a death is not counted as a change",
        "store/queries.sql",
        "exit_sender = :sender, changed = (SELECT version FROM tree WHERE one = 1)",
        "exit_sender = :sender",
    ),
    Mutant(
        "a new status is not counted as a change",
        "store/queries.sql",
        "exit_reason = :reason, changed = (SELECT version FROM tree WHERE one = 1)",
        "exit_reason = :reason",
    ),
    Mutant(
        "changes are noted and not followed",
        "system/host/remote_commands.py",
        "self._processes.catch_up(change) for change in changes.agents)",
        "self._processes.catch_up(change) for change in changes.agents[1:])",
    ),
    Mutant(
        "a remote command is carried out again after a crash",
        "store/queries.sql",
        " WHERE r.answered_at IS NULL AND a.status <> 'dead' AND (",
        " WHERE a.status <> 'dead' AND (",
        (
            Edit(
                "store/queries.sql",
                "WHERE agent_uuid = :agent AND id = :id AND answered_at IS NULL FOR NO KEY UPDATE",
                "WHERE agent_uuid = :agent AND id = :id FOR NO KEY UPDATE",
            ),
        ),
    ),
    Mutant(
        "a look for one agent passes over what it reads of others",
        "system/remote/follower.py",
        "        return self._news_of(self._store.read(look))\n",
        "        news = self._news_of(self._store.read(look))\n"
        "        return replace(news, turns={uuid: news.turns[uuid] for uuid in asked or () if uuid in news.turns})\n",
    ),
    Mutant(
        "one agent of a group moves alone",
        "records/lives/moves.py",
        "    if registry.get(tx, record.supervisor_uuid).strategy != Strategy.ONE_FOR_ONE:\n",
        "    if registry.get(tx, record.supervisor_uuid).strategy not in [*Strategy]:\n",
    ),
    Mutant(
        "an adopted agent stays where it is",
        "records/lives/supervision.py",
        "        if registry.get(tx, self.by).strategy != Strategy.ONE_FOR_ONE:\n",
        "        if registry.get(tx, self.by).strategy not in [*Strategy]:\n",
    ),
)
"""All of them."""
