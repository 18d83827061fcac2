"""The invariants that the machine of the kit looks at after every commit: each is broken here by a commit made up."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from ikigai_actors.records.hosts.host_signs import HostSigns, PublishedSign, encode_signs
from ikigai_actors.testing import AgentTreeMachine, Broken
from ikigai_actors.testing.simulation.changes import RanStatement, StoredChange, Written
from ikigai_actors.testing.simulation.remote import LATE
from ikigai_actors.testing.simulation.scheduler import Entry
from tests.kit.planted import begun


@pytest.fixture
def machine() -> Iterator[AgentTreeMachine]:
    """One that takes up what is made up for it."""
    with begun() as made:
        yield made


class Said:
    """Makes up what an agent of the machine might commit."""

    def __init__(self, machine: AgentTreeMachine, who: int = 1) -> None:
        self.machine, self.uuid = machine, machine.agent(who).uuid
        self.standing = machine.commits.agents[self.uuid]

    def message(self, kind: str, content: str = "x", after: int = 1, **data: Any) -> Written:
        return Written("messages", (self.uuid, self.standing.head + after, kind, content, json.dumps(data), 1))

    def mail(self, number: int, sender: str | None = None, kind: str = "mail") -> Written:
        return Written("mail", (self.uuid, number, sender, kind, "x", 1, None))

    def shown(self, number: int) -> Written:
        return self.message("tool_result", f"mail {number} from you:\nx", name="read_mail")

    def turn(self, opened: int) -> RanStatement:
        return RanStatement("set_turn", {"uuid": self.uuid, "turn": opened})

    def birth(self, name: str | None = None) -> RanStatement:
        fields = {"uuid": "new", "parent": self.uuid, "supervisor": self.uuid, "fork": self.standing.head, "name": name}
        return RanStatement("register", {**fields, "turn": 0, "restart": "transient"})

    def rename(self, name: str | None) -> RanStatement:
        return RanStatement("rename", {"uuid": self.uuid, "name": name})

    def death(self, cause: str) -> RanStatement:
        return RanStatement("bury", {"uuids": [self.uuid], "cause": cause})

    def status(self, status: str, reason: str | None = None) -> RanStatement:
        return RanStatement("set_status", {"uuids": [self.uuid], "status": status, "reason": reason})


def commit(machine: AgentTreeMachine, changes: Sequence[StoredChange], *, tree: bool = False) -> None:
    """Show a commit to the invariants, which took the row of the tree or did not; raises what they say to it."""
    if tree:
        machine.commits._tree -= 1
    machine.commits.committed(changes)
    machine.world.agenda.add(Entry("the next step", lambda: None))
    machine.world.settle()


def test_a_hole_in_a_log_is_found(machine: AgentTreeMachine) -> None:
    with pytest.raises(Broken, match="owner: expected position"):
        commit(machine, [Said(machine).message("mark", after=2)])


def test_a_prompt_that_is_taken_up_twice_is_found(machine: AgentTreeMachine) -> None:
    said = Said(machine)
    taken = RanStatement("take_prompt", {"recipient": said.uuid, "id": 1})
    commit(machine, [said.mail(1, kind="prompt")])
    commit(machine, [said.turn(2), said.message("user", mail=1), taken])
    commit(machine, [said.turn(0), said.message("interrupted")])
    with pytest.raises(Broken, match=rf"prompt: agent {said.uuid} takes up its mail 1 once more"):
        commit(machine, [said.turn(4), said.message("user", mail=1), taken])


@pytest.mark.parametrize("kind", ["assistant", "error", "interrupted"])
def test_a_turn_that_ends_in_the_log_alone_is_found(machine: AgentTreeMachine, kind: str) -> None:
    said = Said(machine)
    commit(machine, [said.turn(2), said.message("user")])
    with pytest.raises(Broken, match=rf"turn: {kind} 'x' ends the turn of agent {said.uuid}, and it is open"):
        commit(machine, [said.message(kind)])


def test_what_the_dead_do_is_found(machine: AgentTreeMachine) -> None:
    dead, living = Said(machine, 1), Said(machine, 2)
    dead.standing.status = "dead"
    with pytest.raises(Broken, match=r"fenced: .* writes"):
        commit(machine, [dead.message("mark")])
    with pytest.raises(Broken, match=r"fenced: .* sends"):
        commit(machine, [living.mail(1, dead.uuid)])
    with pytest.raises(Broken, match=r"fenced: .* gets mail 1"):
        commit(machine, [dead.mail(1)])
    with pytest.raises(Broken, match=r"fenced: .* forks new"):
        commit(machine, [dead.birth()])
    with pytest.raises(Broken, match=r"fenced: .* dies a second time"):
        commit(machine, [dead.death("killed")])
    with pytest.raises(Broken, match=r"fenced: .* is renamed"):
        commit(machine, [dead.rename("ghost")])
    with pytest.raises(Broken, match=r"fenced: .* becomes running"):
        commit(machine, [dead.status("running")])


def test_two_living_agents_of_one_name_are_found(machine: AgentTreeMachine) -> None:
    first, other = Said(machine, 1), Said(machine, 2)
    commit(machine, [first.rename("dba")], tree=True)
    with pytest.raises(Broken, match=rf"name: agents {other.uuid} and {first.uuid} live, and both are named 'dba'"):
        commit(machine, [other.rename("dba")], tree=True)
    with pytest.raises(Broken, match=rf"name: agents new and {first.uuid} live, and both are named 'dba'"):
        commit(machine, [first.birth("dba")])


def test_a_name_is_free_when_its_agent_has_another_one_or_is_dead(machine: AgentTreeMachine) -> None:
    first, other = Said(machine, 1), Said(machine, 2)
    commit(machine, [first.rename("dba"), first.rename("analyst"), other.rename("dba")], tree=True)
    first.standing.status = "dead"
    commit(machine, [other.rename("analyst")], tree=True)


def test_a_change_of_the_tree_that_does_not_take_its_row_is_found(machine: AgentTreeMachine) -> None:
    with pytest.raises(Broken, match="tree: "):
        commit(machine, [RanStatement("adopt", {"uuids": [Said(machine, 2).uuid], "by": Said(machine, 1).uuid})])


def test_a_fork_in_the_midst_of_calls_is_found(machine: AgentTreeMachine) -> None:
    said = Said(machine)
    commit(machine, [said.turn(2), said.message("user")])
    commit(machine, [said.message("assistant", tool_calls=[{"id": "1", "name": "work", "input": {}}])])
    with pytest.raises(Broken, match="barrier: "):
        commit(machine, [said.birth()])


def test_a_mail_that_a_model_is_shown_twice_or_that_stays_unread_is_found(machine: AgentTreeMachine) -> None:
    said = Said(machine)
    read = RanStatement("mark_read", {"recipient": said.uuid, "sender": None, "last": 1})
    commit(machine, [said.turn(2), said.message("user"), said.mail(1)])
    with pytest.raises(Broken, match=r"mail: .* stay unread"):
        commit(machine, [said.shown(1)])
    commit(machine, [read, said.shown(1)])
    with pytest.raises(Broken, match=r"mail: .* read before"):
        commit(machine, [said.shown(1)])


def test_a_reply_that_came_too_late_is_found(machine: AgentTreeMachine) -> None:
    said = Said(machine)
    commit(machine, [said.turn(2), said.message("user")])
    with pytest.raises(Broken, match="late: "):
        commit(machine, [said.turn(0), said.message("assistant", LATE)])


def test_a_turn_of_a_stopped_agent_is_found_and_one_after_cont_is_none(machine: AgentTreeMachine) -> None:
    said = Said(machine)
    commit(machine, [said.status("stopped")])
    machine.ledger.stopped(machine.system, machine.commits)
    with pytest.raises(Broken, match=r"signals: .* is stopped"):
        commit(machine, [said.turn(2), said.message("user")])
    commit(machine, [said.status("running"), said.turn(3), said.message("user")])


def test_a_turn_of_a_stopped_agent_that_ends_as_it_begins_is_none(machine: AgentTreeMachine) -> None:
    said = Said(machine)
    commit(machine, [said.status("stopped")])
    machine.ledger.stopped(machine.system, machine.commits)
    commit(machine, [said.turn(0), said.message("user"), said.message("interrupted", after=2)])


def test_a_turn_that_begins_though_an_int_has_come_for_its_prompt_is_found(machine: AgentTreeMachine) -> None:
    said = Said(machine)
    prompts = [Written("mail", (said.uuid, number, None, "prompt", "go", 5, None, None)) for number in (1, 2, 3)]
    commit(machine, [*prompts, RanStatement("interrupt_prompts", {"uuids": [said.uuid]})])
    taken = [RanStatement("take_prompt", {"recipient": said.uuid, "id": number}) for number in (1, 2)]
    commit(machine, [taken[1], said.turn(2), said.message("user", mail=2)])
    with pytest.raises(Broken, match=r"int: .* begins with its mail 1"):
        commit(machine, [taken[0], said.turn(3), said.message("user", mail=1)])
    withdrawn = RanStatement("withdraw_prompt", {"recipient": said.uuid, "id": 3})
    commit(machine, [withdrawn, RanStatement("interrupt_prompts", {"uuids": [said.uuid]})])
    assert said.standing.interrupted == {1}


def test_a_prompt_by_mail_that_ends_an_open_turn_is_found(machine: AgentTreeMachine) -> None:
    said = Said(machine)
    commit(machine, [said.mail(1, kind="prompt"), said.turn(2), said.message("user")])
    taken = RanStatement("take_prompt", {"recipient": said.uuid, "id": 1})
    with pytest.raises(Broken, match=r"cut-off: .* begins with its mail 1, and a turn was open"):
        commit(machine, [taken, said.turn(4), said.message("interrupted"), said.message("user", after=2, mail=1)])


def test_a_turn_that_goes_on_again_and_again_or_lives_though_it_is_left_is_found(machine: AgentTreeMachine) -> None:
    said = Said(machine)
    left, on = (
        RanStatement("leave_cut_off", {"uuids": [said.uuid]}),
        RanStatement("go_on_cut_off", {"uuid": said.uuid, "at": 2}),
    )
    commit(machine, [said.turn(2), said.message("user")])
    commit(machine, [on])
    commit(machine, [on])
    commit(machine, [left])
    signs = HostSigns(5, {said.uuid: PublishedSign(1, 5, 0)})
    with pytest.raises(Broken, match=r"cut-off: host .* writes heartbeats"):
        commit(machine, [RanStatement("publish_signs", {"host": "here", "signs": encode_signs(signs)})])
    commit(machine, [on])  # as a person has asked
    with pytest.raises(Broken, match=r"cut-off: .* goes on from 2 for the time 4"):
        commit(machine, [on])


def restart(agent: Said, above: Said, now: int) -> RanStatement:
    return RanStatement("add_restart", {"agent": agent.uuid, "supervisor": above.uuid, "now": now})


def rules(agent: Said, intensity: int) -> RanStatement:
    return RanStatement("set_supervision", {"uuid": agent.uuid, "intensity": intensity, "period": 1_000})


def test_a_restart_more_than_a_supervisor_may_is_found_and_one_after_the_period_is_none(
    machine: AgentTreeMachine,
) -> None:
    above, child = Said(machine, 0), Said(machine, 1)
    commit(machine, [rules(above, 1), restart(child, above, 5_000)])
    commit(machine, [restart(child, above, 6_001)])
    with pytest.raises(Broken, match=r"intensity: .* may do so 1 times"):
        commit(machine, [restart(child, above, 7_001)])


def test_a_restart_too_many_is_found_though_the_clock_was_set_back_after_the_supervisors_own(
    machine: AgentTreeMachine,
) -> None:
    root, above, child = Said(machine, 0), Said(machine, 1), Said(machine, 2)
    commit(machine, [rules(above, 1), restart(above, root, 9_000)])
    commit(machine, [restart(child, above, 5_000)])
    with pytest.raises(Broken, match=r"intensity: .* may do so 1 times"):
        commit(machine, [restart(child, above, 5_001)])


def test_signs_of_life_that_are_written_too_often_or_of_nobody_are_found(machine: AgentTreeMachine) -> None:
    def signs(*agents: str) -> RanStatement:
        host_signs = HostSigns(5, {uuid: PublishedSign(1, 5, 0) for uuid in agents})
        return RanStatement("publish_signs", {"host": "a", "signs": encode_signs(host_signs)})

    commit(machine, [signs(Said(machine).uuid)])
    machine.world.sleep(2)
    commit(machine, [signs()])
    with pytest.raises(Broken, match="life: host a writes signs at"):
        commit(machine, [signs()])
    machine.world.sleep(2)
    with pytest.raises(Broken, match="life: host a writes 1 signs"):
        commit(machine, [signs("nobody")])


@pytest.mark.parametrize(("restart", "cause"), [("transient", "crashed"), ("permanent", "exited")])
def test_who_is_buried_instead_of_restarted_is_found(machine: AgentTreeMachine, restart: str, cause: str) -> None:
    said = Said(machine)
    said.standing.restart = restart
    with pytest.raises(Broken, match=rf"otp: agent .* is {restart}, has {cause}, and is buried"):
        commit(machine, [said.death(cause)])


@pytest.mark.slow("takes a tenth of a second")
def test_a_shared_beginning_that_differs_between_siblings_is_found(machine: AgentTreeMachine) -> None:
    machine.prompt(who=0, text="go", answers=[])
    machine.world.settle()
    machine.fork(who=0, prompt="go", reply="ok")
    machine.fork(who=0, prompt="go", reply="ok")
    machine.comes_to_rest()
    machine.siblings_share_what_they_were_sent()
    request = machine.world.requests[-1]
    assert request.shared
    request.messages[0]["content"][0]["text"] = "something else"
    machine.world.requests.append(request)
    with pytest.raises(Broken, match="siblings: "):
        machine.siblings_share_what_they_were_sent()


def test_an_earlier_owner_is_refused(machine: AgentTreeMachine) -> None:
    machine.write_of_earlier_owner(who=1, ours=True)
    machine.write_of_earlier_owner(who=1, ours=False)
    assert sum("belongs to another host" in line.text for line in machine.world.trace.lines) == 2


ASKED: Any = {"output": {"schema": {"type": "integer"}}}
SEEN: Any = {"attached": [{"sha256": "00", "media": "image/png", "size": 1, "name": ""}]}


def test_a_turn_that_was_asked_for_a_value_ends_with_one_and_not_with_words(machine: AgentTreeMachine) -> None:
    said = Said(machine)
    commit(machine, [said.message("user", **ASKED), said.turn(said.standing.head + 1)])
    wrong = [
        ([said.message("assistant")], "ends with 'x', and was asked for a value"),
        ([said.message("output", output="7")], "gives '7'"),
        ([said.message("repair", repair=3)], "is asked again"),
    ]
    for changes, why in wrong:
        head, turn = said.standing.head, said.standing.turn
        with pytest.raises(Broken, match=why):
            commit(machine, [*changes, said.turn(0)])
        said.standing.head, said.standing.turn = head, turn
    commit(machine, [said.message("assistant"), said.message("repair", after=2, repair=1)])
    commit(machine, [said.message("output", output=7), said.turn(0)])


def test_the_bytes_are_there_to_which_a_message_refers(machine: AgentTreeMachine) -> None:
    said = Said(machine)
    with pytest.raises(Broken, match="blobs: message"):
        commit(machine, [said.message("user", **SEEN), said.turn(said.standing.head + 1)])


def test_a_turn_that_has_ended_without_spans_is_found(machine: AgentTreeMachine) -> None:
    said = Said(machine)
    machine.spans.committed([said.turn(2), said.turn(0)])
    with pytest.raises(Broken, match=r"span: turns .* have ended without a span"):
        machine.spans.check_rest()


def test_a_span_of_a_turn_that_has_not_ended_is_found(machine: AgentTreeMachine) -> None:
    machine.agent(1).prompt("go").get(timeout=60)
    machine.spans.check_rest()
    uuid = machine.agent(1).uuid
    machine.spans.committed([RanStatement("register", {"uuid": uuid, "turn": 0}), Said(machine).turn(0)])
    machine.spans._ends.clear()
    with pytest.raises(Broken, match=r"span: .* and .* have not"):
        machine.spans.check_rest()
