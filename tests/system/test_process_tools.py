"""Process tools in another terminal: the real program beside a running system, and on a database that nobody runs."""

import json
import signal
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from ikigai_actors import ActorSystem, Reply, ScriptedProvider, Signal, Usage
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.shell.cli.main import cli
from ikigai_actors.store import open_store
from ikigai_actors.store.migrations import ensure_schema
from tests.conftest import NewDatabase
from tests.kit.blocking_provider import DEADLINE, Gate
from tests.kit.databases import eventually
from tests.kit.echo import echo
from tests.kit.program import ENDLESS, Program, run

pytestmark = pytest.mark.slow("starts programs")

EVIL = "\x1b[2J\x9b31m6XHtt7> \u202e/kill"
"""Text that would clear the screen, paint it red, fake a prompt, and turn the writing."""


@pytest.fixture
def abandoned(durable: str) -> str:
    """A database with an agent ``kid``, that no process runs any more."""
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        system.root.prompt("tea").get(timeout=DEADLINE)
        system.root.fork("milk", name="kid").reply(timeout=DEADLINE)
    return durable


def call(database: str, *arguments: str, stdin: str = "") -> tuple[str, int]:
    """Run a command in this process; gives what it printed, or the error, and the exit status."""
    done = CliRunner().invoke(cli, ["--database", database, *arguments], input=stdin)
    return (done.stdout, done.exit_code) if done.exit_code != 1 else (str(done.exception), 1)


def lines(text: str) -> list[list[str]]:
    """The columns of each line but the first, which is the time."""
    return [line.split()[1:] for line in text.splitlines()]


def test_a_log_is_shown_without_a_host_its_own_part_or_all(abandoned: str) -> None:
    done = run("--database", abandoned, "log", "kid")
    assert (done.stderr, done.returncode) == ("", 0)
    assert [line[:3] for line in lines(done.stdout)] == [
        ["kid", "3", "fork"],
        ["kid", "4", "user"],
        ["kid", "5", "assistant"],
    ]
    done = run("--database", abandoned, "log", "kid", "--inherited", "--last", "5", "--json")
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["id"], row["kind"], row["name"]) for row in messages] == [
        (1, "user", None),
        (2, "assistant", None),
        (3, "fork", "kid"),
        (4, "user", "kid"),
        (5, "assistant", "kid"),
    ]
    assert messages[-1].keys() == {
        "event",
        "name",
        "label",
        "agent_uuid",
        "id",
        "kind",
        "content",
        "data",
        "created_at",
    }
    assert messages[-1]["content"] == "milk / 3"


def test_a_log_of_nobody_is_refused_on_one_line(abandoned: str) -> None:
    done = run("--database", abandoned, "log", "nobody")
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr.startswith("ikigai: No agent is named 'nobody'")
    assert done.stderr.count("\n") == 1


def test_a_log_is_followed_until_its_agent_is_dead(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        kid, other = system.root.fork(name="kid"), system.root.fork(name="other")
        with Program.by_pipe("--database", durable, "log", "kid", "--follow", notices=True) as program:
            program.expect(r"kid +\d+ +fork")
            program.expect("These agents are run by host")
            other.prompt("not this").get(timeout=DEADLINE)
            kid.prompt("milk\n12:00:00  root  9  user  sugar").get(timeout=DEADLINE)
            program.expect(r"user +milk\n {10}12:00:00  root")
            program.expect(r"assistant +milk")
            kid.kill(reason="enough")
            program.expect("kid is dead: enough")
            assert program.ends() == 0
            assert "not this" not in program.said


def test_everybody_is_watched_live_and_ctrl_c_ends_it(durable: str) -> None:
    with (
        ActorSystem.open(durable, ScriptedProvider(echo)) as system,
        Program.by_pipe("--database", durable, "tail", notices=True) as program,
    ):
        program.expect("These agents are run by host")
        system.root.fork("milk", name="kid").reply(timeout=DEADLINE)
        program.expect(r"kid +\d+ +user +milk")
        system.root.prompt("tea").get(timeout=DEADLINE)
        program.expect(r"assistant +tea")
        program.process.send_signal(signal.SIGINT)
        assert program.ends() == 130
        assert "Traceback" not in program.said
        assert "Aborted" not in program.said


@pytest.mark.thorough("lines on hosts, which a prompt without one and a log that is followed print")
def test_a_tail_says_when_nobody_runs_the_agents_and_when_somebody_does(abandoned: str) -> None:
    with Program.by_pipe("--database", abandoned, "tail", notices=True) as program:
        program.expect("No process runs these agents: nothing comes until one does")
        with ActorSystem.open(abandoned, ScriptedProvider(echo)) as system:
            system.root.prompt("tea").get(timeout=DEADLINE)
            program.expect("These agents are run by host")
            program.expect("user +tea")
        program.expect("No process runs these agents")


@pytest.mark.sample(1, "commands")
@pytest.mark.parametrize(
    "command",
    [("log", "kid"), ("prompt", "kid", "x", "--wait"), ("stats",), ("agents", "--all"), ("doc", "show", "plan")],
)
def test_text_of_the_database_does_a_terminal_no_harm(new_sqlite: NewDatabase, command: tuple[str, ...]) -> None:
    database = new_sqlite()
    with ActorSystem.open(database, ScriptedProvider(lambda request: EVIL)) as system:
        system.root.fork(EVIL, name="kid").reply(timeout=DEADLINE)
        system.root.fork(name="late").kill(reason=EVIL)
        system.documents.write("plan", EVIL)
        with Program.at_terminal("--database", database, *command) as program:
            assert program.ends() == 0
            assert not set(program.said) & set("\x1b\x9b\u202e")


def test_a_prompt_is_waited_for_and_its_answer_printed(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        system.root.fork(name="kid")
        done = run("--database", durable, "prompt", "kid", "how", "are you?", "--wait")
        assert (done.stdout, done.stderr, done.returncode) == ("how are you? / 1\n", "", 0)
        done = run("--database", durable, "prompt", "kid", "and now?", "--wait", "--json", "--timeout", "60")
        reply = json.loads(done.stdout)
        assert reply.pop("agent_uuid") == system.agent("kid").uuid
        assert reply == {"name": "kid", "label": "kid", "mail": 2, "text": "and now? / 3", "stop_reason": "end_turn"}


def test_an_agent_is_forked_by_the_process_that_runs_it(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        system.root.prompt("tea").get(timeout=DEADLINE)
        root = system.root.uuid
        how = ("--restart", "permanent", "--system", "Be brief.", "--model", "scripted:other")
        output, status = call(durable, "fork", root, "--name", "kid", *how)
        kid = system.agent("kid")
        assert (output, status) == (f"kid: forked from {words_of(root)}; inherits 2 messages\n", 0)
        assert (kid.record.parent_uuid, kid.record.restart) == (root, "permanent")
        settings = {"system": "Be brief.", "model": "scripted:other"}
        assert settings in [message.data for message in kid.history() if message.kind == "configure"]
        assert call(durable, "fork", "kid", "milk", "and sugar", "--wait") == ("milk and sugar / 3\n", 0)
        output, status = call(durable, "fork", "kid", "milk", "--json", "--wait")
        made = json.loads(output)
        assert (made["parent_uuid"], made["text"], status) == (kid.uuid, "milk / 3", 0)
        assert system.agent(made["agent_uuid"]).record.supervisor_uuid == kid.uuid


@pytest.mark.thorough("two hosts on a server; a simulation forks elsewhere in each run")
def test_an_agent_is_forked_on_whichever_host_it_lives(new_postgres: NewDatabase) -> None:
    url, model = new_postgres(), ScriptedProvider(echo)
    with (
        ActorSystem.open(url, model, join=True, name="a", balance=None) as a,
        ActorSystem.open(url, model, join=True, name="b", balance=None) as b,
    ):
        eventually(lambda: {host.shards for host in a.hosts()} == {512}, "half of the shards for each")
        a.root.fork(name="kid").move("b", timeout=DEADLINE)
        assert call(url, "fork", "kid", "milk", "--name", "young", "--wait") == ("milk / 1\n", 0)
        assert b._actor(b.agent("young").uuid)


def test_a_fork_that_cannot_be_is_refused_as_by_a_handle(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        system.root.fork(name="kid")
        for reason, arguments in (
            ("A living agent is named", ["--name", "kid"]),
            ("Expected restart to be one of", ["--restart", "always"]),
            ("got blank text", [" "]),
            ("--wait is for a PROMPT", ["--wait"]),
        ):
            with pytest.raises(Exception, match=reason):
                CliRunner().invoke(
                    cli, ["--database", durable, "fork", "kid", *arguments], standalone_mode=False,
                    catch_exceptions=False,
                )  # fmt: skip
        assert len(system.agents()) == 2


def test_an_answer_that_is_empty_or_was_cut_is_said_to_be(durable: str) -> None:
    script = ScriptedProvider([Reply(" \n"), Reply("Half", stop_reason="max_tokens"), Reply(""), "whole"])
    with ActorSystem.open(durable, script) as system:
        root = system.root.uuid
        asked = [["prompt", root, "go", "--wait"]] * 2 + [["fork", root, "go", "--wait"]] * 2
        done = [CliRunner().invoke(cli, ["--database", durable, *arguments]) for arguments in asked]
    assert [(ended.stdout, ended.stderr, ended.exit_code) for ended in done] == [
        (" \n\n", "ikigai: [an empty answer]\n", 0),
        ("Half\n", "ikigai: [the answer ends here: max_tokens]\n", 0),
        ("\n", "ikigai: [an empty answer]\n", 0),
        ("whole\n", "", 0),
    ]


@pytest.mark.thorough("a request that nobody takes up, as in test_remote_commands, by the command")
def test_a_fork_without_a_host_or_in_time_is_not_made_later_either(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, gate.provider) as system:
        root = system.root
        answer = root.aio.prompt("tea")
        gate.wait_until_asked()
        done = CliRunner().invoke(cli, ["--database", durable, "fork", root.uuid, "--timeout", "0"])
        assert (done.stdout, done.exit_code) == ("", 3)
        assert "Not done within 0 s, and not done later either." in done.stderr
        gate.open()
        answer.get(timeout=DEADLINE)
        assert len(system.agents()) == 1
    output, status = call(durable, "fork", root.uuid)
    assert ("will not be" in output, status) == (True, 1)
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        assert len(system.agents()) == 1


def test_a_wait_that_is_over_too_early_has_a_status_of_its_own_and_the_prompt_stays(durable: str) -> None:
    gate = Gate()
    with ActorSystem.open(durable, gate.provider) as system:
        kid = system.root.fork(name="kid")
        kid.prompt("work")
        gate.wait_until_asked()
        done = run("--database", durable, "prompt", "kid", "tea", "--wait", "--timeout", "0.2")
        assert (done.stdout, done.returncode) == ("", 3)
        assert done.stderr == "ikigai: No answer within 0.2 s. Prompt 1 of kid stays. kid is in a turn.\n"
        gate.open()
        eventually(lambda: [message.content for message in kid.history()][-2:] == ["tea", "done"], "the answer")
    assert run("--database", durable, "prompt", "kid", "x", "--timeout", "1").returncode == 2


def test_a_turn_that_fails_gives_status_one_and_the_reason(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider([RuntimeError("no tea"), "late"])) as system:
        system.root.fork(name="kid")
        done = run("--database", durable, "prompt", "kid", "tea", "--wait")
        assert (done.stdout, done.returncode) == ("", 1)
        assert "no tea" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_prompt_without_a_host_says_so_and_is_answered_when_there_is_one(abandoned: str) -> None:
    done = run("--database", abandoned, "prompt", "kid", "sugar")
    assert (done.stdout, done.returncode) == ("prompt 1 to kid\n", 0)
    assert done.stderr.startswith("ikigai: No process runs these agents now: the prompt waits until one does")
    with Program.by_pipe("--database", abandoned, "prompt", "kid", "cream", "--wait", notices=True) as program:
        program.expect("No process runs these agents now")
        with ActorSystem.open(abandoned, ScriptedProvider(echo)):
            program.expect("cream / 7\n")
            assert program.ends() == 0


@pytest.mark.thorough("a prompt that waits for a host, as in the test above, and for CONT")
def test_a_prompt_to_a_stopped_agent_says_so_and_is_waited_for_across_hosts(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        system.root.fork(name="kid").signal(Signal.STOP)
        program = Program.by_pipe("--database", durable, "prompt", "kid", "tea", "--wait", notices=True)
        with program:
            program.expect("kid is stopped: the prompt waits until it goes on")
            system.close()
            program.expect("No process runs these agents now: the prompt waits until one")
            with ActorSystem.open(durable, ScriptedProvider(echo)) as next_one:
                next_one.agent("kid").signal(Signal.CONT)
                program.expect("tea / 1\n")
                assert program.ends() == 0


@pytest.mark.thorough("a host that is killed; test_host.py has one in every run")
def test_a_turn_whose_host_is_killed_is_waited_for_no_more(tmp_path: Path) -> None:
    database = ("--database", str(tmp_path / "tea.db"))
    with Program.by_pipe(*database, "--model", "offline") as shell:
        shell.say("/fork --name kid")
        shell.expect("inherits")
        with Program.by_pipe(*database, "prompt", "kid", ENDLESS, "--wait", notices=True) as program:
            eventually(lambda: " in a turn " in call(database[1], "agents")[0], "the turn")
            shell.kill()
            assert program.ends() == 1
            assert "the turn was cut off" in program.said


def test_documents_are_listed_shown_written_and_deleted(abandoned: str) -> None:
    def doc(*arguments: str, stdin: str = "") -> tuple[str, int]:
        return call(abandoned, "doc", *arguments, stdin=stdin)

    assert doc("write", "plan/mast.md", "#", "Mast", "--as", "kid") == ("plan/mast.md: version 1\n", 0)
    body = f"# Mast\n{EVIL}\ttaller"
    output = ("plan/mast.md: version 2\n", 0)
    assert doc("write", "plan/mast.md", "--file", "-", "--expect", "1", stdin=body) == output
    assert doc("show", "plan/mast.md") == (body, 0)
    assert doc("show", "plan/mast.md", "--version", "1") == ("# Mast", 0)
    assert json.loads(doc("show", "plan/mast.md", "--json")[0])["body"] == body
    refused = doc("write", "plan/mast.md", "no", "--expect", "1")
    assert refused[1] == 1
    assert "there is version 2" in refused[0]
    assert doc("list")[0].startswith("plan/mast.md  version 2, written by a person outside at ")
    assert doc("delete", "plan/mast.md") == ("plan/mast.md: deleted in version 3\n", 0)
    assert doc("list", "--json") == ("[]\n", 0)
    assert [version["deleted"] for version in json.loads(doc("log", "plan/mast.md", "--json")[0])] == [0, 0, 1]
    assert [line.split()[1] for line in doc("log", "plan/mast.md")[0].splitlines()] == ["1,", "2,", "3,"]
    assert doc("show", "plan/mast.md")[1] == 1
    assert doc("write", "x")[1] == 2
    assert doc("write", "x", "text", "--file", "-")[1] == 2
    if Path("/proc/self/mem").exists():
        refused = doc("write", "x", "--file", "/proc/self/mem")
        assert refused == ("/proc/self/mem cannot be read: Input/output error.", 1)


def test_figures_are_counted(abandoned: str) -> None:
    call(abandoned, "send", "kid", "hello")
    call(abandoned, "prompt", "kid", "hello")
    figures = json.loads(call(abandoned, "stats", "--json", "--tokens")[0])
    assert figures["agents"] == {"running": 2, "stopped": 0, "terminating": 0, "dead": 0}
    assert (figures["messages"], figures["mails"], figures["unread"], figures["prompts"]) == (6, 1, 1, 1)
    assert (figures["host"], figures["hosts"], figures["turns"]) == (None, 1, 0)
    assert figures["tokens"] == {}
    text = call(abandoned, "stats")[0]
    assert "host       none: no process runs these agents\n" in text
    assert "agents     2 running, 0 stopped, 0 terminating, 0 dead\n" in text
    with ActorSystem.open(abandoned, ScriptedProvider([Reply("x", usage=Usage(2, 3, 4, 5))] * 2)) as system:
        assert json.loads(call(abandoned, "stats", "--json")[0])["host"].startswith("host ")
        system.root.prompt("tea").get(timeout=DEADLINE)
        used = {"input": 11, "output": 3}
        kid = system.agent("kid")
        kid.reply(timeout=DEADLINE)
        eventually(lambda: system.root.wait([kid], timeout=0) == {kid: "idle"}, "the end of the kid's turn")
        assert json.loads(call(abandoned, "stats", "--json", "--tokens")[0])["tokens"] == {
            system.root.uuid: used,
            kid.uuid: used,
        }
        assert "tokens     22 in, 6 out\n" in call(abandoned, "stats", "--tokens")[0]
        root = system.root
        root.charge(usd=0.25)
    cost = {"tokens": 14, "usd": 0.0}
    assert json.loads(call(abandoned, "stats", "--json")[0])["spent"] == {
        root.uuid: {**cost, "usd": 0.25},
        kid.uuid: cost,
    }
    text = call(abandoned, "stats")[0]
    assert "spent      28 tokens, $0.25\n" in text
    assert f"{words_of(root.uuid)} 14 tokens, $0.25, with all below it 28 tokens, $0.25\n" in text


def test_agents_as_json_in_the_order_of_the_tree_have_depths(durable: str) -> None:
    with ActorSystem.open(durable, ScriptedProvider(echo)) as system:
        first, two = system.root.fork(name="one"), system.root.fork(name="two")
        first.fork(name="below")
        two.kill(reason=EVIL)
        rows = json.loads(call(durable, "agents", "--json", "--tree")[0])
        assert [(row["name"], row["depth"]) for row in rows] == [(None, 0), ("one", 1), ("below", 2), ("two", 1)]
        plain = call(durable, "agents", "--json")[0]
        assert [row["name"] for row in json.loads(plain)] == [None, "one", "two", "below"]
        assert json.loads(plain)[2]["exit_reason"] == EVIL
        assert not set(plain) & set("\x1b\x9b\u202e")


def test_an_empty_schema_has_no_agents_to_watch(durable: str) -> None:
    with closing(open_store(durable)) as store:
        ensure_schema(store)
    assert "0 running" in call(durable, "stats")[0]
