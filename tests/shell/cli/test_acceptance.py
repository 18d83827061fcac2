"""The whole of it, as a newcomer meets it: the real program, at a terminal and by a pipe, killed hard and started
again.

The model ``offline:0.05`` takes about a second for an answer: long enough to be interrupted in the middle.
"""

import re
from pathlib import Path

import psycopg
import pytest

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.providers.offline import recall
from tests.conftest import NewDatabase
from tests.kit.program import Program, run

SLOW = ("--model", "offline:0.05")

LONG = "a b c d e f g h i j k l m n o p q r s t"
"""A prompt whose slow answer goes on for more than a second behind its first words: until a busy machine has killed."""

PROMPT = r"\n[\w-]+> $"
"""What agent 0's prompt looks like: nobody has named it."""


def histories(database: str) -> dict[str, list[str]]:
    """What each agent was told and answered, by name; read after the program has ended."""
    with ActorSystem.open(database, OfflineProvider()) as system:
        return {
            record.name or "root": [
                f"{message.kind}: {message.content}"
                for message in system.handle(record.uuid).history()
                if message.kind in ("user", "assistant", "interrupted")
            ]
            for record in system.agents()
        }


def answers(*prompts: str) -> list[str]:
    """The history of an agent that was told this, as the offline provider writes it."""
    said = []
    for place, prompt in enumerate(prompts, start=1):
        said += [f"user: {prompt}", f"assistant: {recall(list(prompts[:place]))}"]
    return said


def agents_in(tree: str) -> list[tuple[str, str, str, int]]:
    """The lines of a tree, drawn or in words: star, name (empty for two words), state, own messages."""
    named = r"([* ]) [│├└─ ]*(?:([a-z]+)|[a-z]+-[a-z]+)  +(\S[a-z ]*?)  +"
    line = re.compile(named + r"\d+ inherited \+ +(\d+) own(?:, below [\w-]+)?(?:, heartbeat \d+ s ago)?")
    matches = [line.fullmatch(each) for each in tree.splitlines()]
    return [(each[1].strip(), each[2] or "", each[3], int(each[4])) for each in matches if each is not None]


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "notes.db")


def test_at_a_terminal_agents_fork_diverge_and_survive_a_hard_kill(database: str) -> None:
    with Program.at_terminal("--database", database, *SLOW) as shell:
        shell.expect(PROMPT)
        shell.say("tea")
        shell.expect("to talk to a model\\." + PROMPT)
        shell.say('/fork "farms" --name buyer')
        shell.expect(r"buyer: forked from [\w-]+; inherits 2 messages\n")
        shell.expect(r"You said “farms”\. I remember 2 prompts; before it came “tea”\.\nbuyer> $")
        shell.say("/parent")
        shell.expect(PROMPT)
        shell.say("/fork --name seller")
        shell.expect("seller> $")
        shell.say(LONG)
        shell.expect("You said “a b")  # the first words of a streamed answer
        shell.kill()

    with Program.at_terminal("--database", database) as shell:
        shell.expect(r"seller: its last turn was interrupted; /resume sends the prompt again\nseller> $")
        shell.say("/agents")
        tree = shell.expect(r"(?s)/agents\n(.*)3 running, 0 dead\nseller> $")[1]
        assert agents_in(tree) == [
            ("", "", "idle", 4),
            ("", "buyer", "idle", 3),
            ("*", "seller", "interrupted", 2),
        ]
        assert re.search(r"^    buyer ", tree, re.M)
        assert re.search(r"^\*   seller ", tree, re.M)
        shell.say("/switch buyer")
        shell.expect("buyer> $")
        shell.say("/switch seller")
        shell.expect("its last turn was interrupted")
        shell.say("/resume")
        shell.expect(rf"You said “{LONG}”\. I remember 2 prompts; before it came “tea”\.\nseller> $")
        shell.send("\x04")
        assert shell.ends() == 0

    assert histories(database) == {
        "root": answers("tea"),
        "buyer": answers("tea", "farms"),
        "seller": answers("tea", LONG),
    }


def test_ctrl_c_interrupts_the_answer_and_twice_leaves(database: str) -> None:
    with Program.at_terminal("--database", database, *SLOW) as shell:
        shell.expect(PROMPT)
        shell.say(LONG)
        shell.expect("You said “a b")
        shell.interrupt(r"\n\[interrupted\]" + PROMPT)
        shell.say("coffee")
        shell.expect("You said “coffee”")
        assert shell.interrupt_until_it_ends() == 130
    kept = histories(database)["root"]
    assert kept[0] == f"user: {LONG}"
    assert re.fullmatch("assistant: You said “a b.*", kept[1])
    assert not kept[1].endswith("talk to a model.")


def test_enter_leaves_an_answer_in_the_background_and_nothing_blocks(database: str) -> None:
    with Program.at_terminal("--database", database, *SLOW) as shell:
        shell.expect(PROMPT)
        shell.say(LONG)
        shell.expect("You said")
        shell.say("/fork --name late")
        shell.expect(r"goes on in the background; Enter shows the rest\]\n[\w-]+> /fork --name late\n")
        shell.expect(
            "the fork waits for the next step boundary in the turn of [\\w-]+; a notice will say when it is done"
            + PROMPT
        )
        shell.say("/agents")
        shell.expect("waiting for the model")
        shell.expect("1 running, 0 dead" + PROMPT)
        shell.say("")
        shell.expect(r"to talk to a model\.\n")
        shell.expect(r"late: forked from [\w-]+; /switch late goes there" + PROMPT)
        assert shell.said.count("You said") == 1
        shell.send("\x04")
        assert shell.ends() == 0


@pytest.mark.thorough("a second program at a terminal")
def test_what_was_typed_comes_back_with_the_arrow_up_in_the_next_session(database: str, tmp_path: Path) -> None:
    with Program.at_terminal("--database", database) as shell:
        shell.expect(PROMPT)
        shell.say("tea")
        shell.expect(r"model\." + PROMPT)
        shell.kill()
    assert ((tmp_path / "home" / "history").stat().st_mode & 0o777) == 0o600
    with Program.at_terminal("--database", database) as shell:
        shell.expect(PROMPT)
        shell.send("\x1b[A\n")
        shell.expect("You said “tea”. I remember 2 prompts")


def test_the_tab_key_completes_commands_and_names(database: str) -> None:
    with Program.at_terminal("--database", database) as shell:
        shell.expect(PROMPT)
        shell.say("/fork --name solicitor")
        shell.expect("solicitor> $")
        shell.send("/par\t")
        shell.expect("/parent $")
        shell.say("")
        shell.expect(PROMPT)
        shell.send("/switch so\t")
        shell.expect("/switch solicitor")
        shell.say("")
        shell.expect("solicitor> $")


@pytest.mark.thorough("programs; a killed one is taken over in each run, and hosts that share PostgreSQL in test_host")
def test_on_postgresql_the_end_of_a_killed_program_is_noticed_long_before_its_lease_ends(
    new_postgres: NewDatabase,
) -> None:
    database = new_postgres()
    with Program.by_pipe("--database", database, *SLOW) as shell:
        shell.say(f"tea\n/fork --name dba\n{LONG}")
        shell.expect("You said “a b")
        shell.kill()
        with psycopg.connect(database, autocommit=True) as connection:  # however long the rest takes
            connection.execute("UPDATE hosts SET lease_until = lease_until + 3600000")
        listed = run("--database", database, "agents")
        assert listed.returncode == 0
        assert [line[1:3] for line in agents_in(listed.stdout)] == [("", "idle"), ("dba", "in a turn")]
        taken = run("--database", database, lines="/agents\n")
    assert taken.returncode == 0
    assert "dba: its last turn was interrupted" in taken.stderr + taken.stdout
