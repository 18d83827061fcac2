"""What survivors are told of deaths: pure."""

from ikigai_actors.records.lives.exit_mails import MOST_SINGLE, End, ExitMail, exit_mails
from supervisors.causes import Cause

KILLED = End(Cause.KILLED, "no longer needed")


def line(count: int, why: End) -> list[ExitMail]:
    """What "root" hears when a chain of so many agents dies of its topmost one, whose end is this."""
    uuids = [f"{place:04}" for place in range(count)]
    dead = {uuid: End(Cause.ORPHANED, "its supervisor died") for uuid in reversed(uuids[1:])} | {uuids[0]: why}
    supervisors = dict(zip(uuids, ["root", *uuids], strict=False))
    return exit_mails(dead, {"root": [*dead]}, supervisors, "agent {}".format)


def test_few_deaths_are_told_of_singly_leaves_first() -> None:
    mails = line(MOST_SINGLE, KILLED)
    assert [mail.sender for mail in mails] == [f"{place:04}" for place in range(MOST_SINGLE - 1, -1, -1)]
    assert mails[-1] == ExitMail("root", "0000", "killed: no longer needed")


def test_many_deaths_are_one_mail_of_the_topmost_that_counts_causes_and_names_the_next() -> None:
    [mail] = line(1_500, KILLED)
    assert (mail.recipient, mail.sender) == ("root", "0000")
    lines = mail.body.splitlines()
    assert lines[:3] == [
        "killed: no longer needed",
        "",
        "1,500 agents died at once: 1 killed, 1,499 orphaned. Beside agent 0000, from the top:",
    ]
    assert lines[3] == "agent 0001: orphaned: its supervisor died"
    assert lines[-1] == "(1,479 more)"
    assert len(lines) == 3 + 20 + 1


def test_the_result_of_an_agent_is_whole_in_the_mail_of_its_end_whoever_dies_with_it() -> None:
    result = "the answer\n" * 500
    [mail] = line(MOST_SINGLE + 1, End(Cause.EXITED, result))
    assert mail.body.startswith(result)
    [alone] = line(1, End(Cause.EXITED, result))
    assert alone.body == result


def test_each_survivor_is_told_of_those_that_it_outlives() -> None:
    dead = {f"{place:02}": KILLED for place in range(22)}
    hearers = {"b": ["00"], "c": ["00"], "a": [uuid for uuid in dead if uuid != "00"]}
    mails = exit_mails(dead, hearers, dict.fromkeys(dead), str)
    assert [(mail.recipient, mail.sender) for mail in mails] == [("b", "00"), ("c", "00"), ("a", "21")]
