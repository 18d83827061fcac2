"""The examples run, without a key."""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem
from tests.kit.databases import ROOT, complaints
from tests.kit.messages_server.server import MessagesServer, Says
from tests.kit.program import completed, environment
from tests.kit.zygote import PYTHON

pytestmark = pytest.mark.slow("starts every example")

FAN_OUT = ROOT / "examples" / "fan_out.py"


def fan_out(database: str, **variables: str) -> str:
    """Run the example's function in a process of its own; return what it prints."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); from fan_out import ask; print(ask('Tea?', sys.argv[2]))"
    done = completed([*PYTHON, "-c", code, str(FAN_OUT.parent), database], env={**environment(), **variables})
    assert (complaints(done.stderr), done.returncode) == ([], 0)
    return done.stdout


def all_was_read(database: str) -> bool:
    """Whether the chair has three children, and waited for their mail, and read it."""
    with ActorSystem.open(database, "offline") as system:
        chair = system.agent("chair")
        assert [child.name for child in chair.children()] == ["owner", "guest", "baker"]
        [waited] = [
            message for message in chair.history() if message.kind == "tool_result" and message.data["name"] == "wait"
        ]
        assert waited.content.count('"mail"') == 3
        return chair.check_mail().unread == 0


def test_an_agent_forks_three_waits_for_all_and_reads_their_mail(durable: str) -> None:
    printed = fan_out(durable)
    assert len([line for line in printed.splitlines() if line.startswith("fork gave")]) == 3
    assert len(re.findall(r"^mail \d from |: mail \d from ", printed, re.MULTILINE)) == 3
    assert "The view of a guest." in printed
    assert all_was_read(durable)


def test_three_children_give_values_of_a_type_and_one_mends_its_own(durable: str) -> None:
    spec = importlib.util.spec_from_file_location("reviews", ROOT / "examples" / "reviews.py")
    assert spec is not None
    assert spec.loader is not None
    reviews = importlib.util.module_from_spec(spec)
    sys.modules["reviews"] = reviews
    spec.loader.exec_module(reviews)
    outcomes, decision = reviews.review("Tea.", durable, "offline")
    assert {name: review.verdict for name, review in outcomes.items()} == {
        "clarity": "keep",
        "grammar": "keep",
        "style": "change",
    }
    assert decision == reviews.Decision(keep=True, votes=2)
    with ActorSystem.open(durable, "offline") as system:
        prompts = [message.content for message in system.agent("clarity").history() if message.data.get("repair")]
    assert len(prompts) == 1
    assert "'perhaps' is not one of ['keep', 'change']" in prompts[0]


@pytest.mark.thorough("a run of pytest within; test_recorded_turns.py has one in every run")
def test_recorded_turns_are_held_to_a_changed_prompt_and_nothing_is_sold(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("changed_prompt", ROOT / "examples" / "changed_prompt.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main()
    before, _, after = capsys.readouterr().out.partition("16 turns were recorded.")
    assert before.count("(sold 2 kg") == 16
    assert "(sold" not in after
    assert "(looked" not in after
    assert "16 replayed, 8 differ: 8 arguments, 8 end." in after
    assert "\nfail: right 50.0 %" in after
    assert after.endswith("Whatever the kilos: pass\n")
    assert len((ROOT / "examples" / "changed_prompt.py").read_text("utf-8").splitlines()) <= 60


def run_here(name: str) -> None:
    """Run an example in this process."""
    path = ROOT / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()
    assert len(path.read_text("utf-8").splitlines()) <= 60


@pytest.mark.thorough("a thousand messages; tests/behaviour bisects in each run")
def test_a_log_of_a_thousand_messages_is_bisected_by_a_judge_that_errs(capsys: pytest.CaptureFixture[str]) -> None:
    run_here("first_bad_turn")
    said = capsys.readouterr().out
    assert re.match(r"step: turn that ends at \d+, 0\.99\d sure after [1-6]\d probes\n", said)
    assert "['A customer from Texas asks for tea.', 'Noted.']" in said


@pytest.mark.thorough("a second example of its kind")
def test_a_puzzle_is_solved_by_a_tree_search(capsys: pytest.CaptureFixture[str]) -> None:
    run_here("twenty_four")
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("score 1.0 after ")
    assert len(said) == 3
    assert said[-1].endswith("= 24")


def panel(body: Mapping[str, Any]) -> Says:
    """A model that does as the prompts of the example say, reply by reply."""
    content, place = body["messages"][-1]["content"], len(body["messages"])
    texts = [block["text"] for block in content if block["type"] == "text"]
    gave = [block["content"] for block in content if block["type"] == "tool_result"]

    def call(*calls: tuple[str, dict[str, Any]]) -> Says:
        blocks = ({"type": "tool_use", "id": f"toolu_{place}_{number}", "name": name, "input": arguments}
                  for number, (name, arguments) in enumerate(calls))  # fmt: skip
        return Says(tuple(blocks), "tool_use")

    if texts and texts[-1].startswith("You are "):
        return call(("send", {"to": "chair", "body": f"{texts[-1]} I say yes."}))
    if texts:
        names = re.findall(r"(\w+) \(([^)]*)\)", texts[-1])
        return call(*(("fork", {"name": name, "prompt": f"You are {who}."}) for name, who in names))
    match body["messages"][-2]["content"][-1]["name"]:
        case "fork":
            return call(("wait", {"children": True}))
        case "wait":
            return call(("read_mail", {}))
        case "read_mail":
            return Says.text(f"They wrote: {gave[0]}")
    return Says.text("Sent.")


def has_sent(body: Mapping[str, Any]) -> bool:
    """Whether an agent asks with the result of its ``send``."""
    return any(block.get("name") == "send" for message in body["messages"][-2:-1] for block in message["content"])


@pytest.mark.slow("starts three examples")
def test_with_a_key_a_model_does_it_over_the_api(new_sqlite: Callable[[], str]) -> None:
    database = new_sqlite()
    with MessagesServer() as server:
        server.model = panel
        printed = fan_out(database, ANTHROPIC_API_KEY="key", ANTHROPIC_BASE_URL=server.url)
        # What a child asks when it has sent its mail may come too late: the program ends with the answer of the chair.
        assert sum(not has_sent(body) for body in server.requests) == 4 + 3
    assert printed.startswith("They wrote: mail 1 from ")
    assert printed.count("I say yes.") == 3
    assert all_was_read(database)


def test_an_agent_that_stumbles_is_restarted_with_its_history_intact(tmp_path: Path) -> None:
    lines = "Our shop sells tea.\n/fork --name buyer\nNow stumble.\n/agents\n"
    done = completed([*PYTHON, "examples/supervised.py", str(tmp_path / "tea.db")], lines=lines, cwd=ROOT)
    assert done.returncode == 0
    assert "(buyer crashes)\nPrompt 2; the first was “Our shop sells tea.”.\n" in done.stdout
    assert "2 running, 0 dead" in done.stdout
    assert done.stderr == ""


@pytest.mark.thorough(
    "a run of pytest with two simulations; tests/testing/test_simulate.py finds a race in a small one"
)
def test_a_race_in_a_team_is_found_and_the_mended_team_has_none() -> None:
    plugins = ("-p", "ikigai_actors.testing.pytest_plugin", "-p", "pytest_timeout")
    done = completed(
        [*PYTHON, "-m", "pytest", "-q", "-s", *plugins, "examples/test_my_team.py"], cwd=ROOT,
        env={**environment(), "IKIGAI_PROFILE": "fast", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "3 passed" in done.stdout
    page = (ROOT / "docs" / "build" / "testing.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"^```text\n(assert .*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = [re.escape(re.sub(r" {2,}← .*", "", line)) for line in shown.splitlines() if line != "…"]
    assert re.search(r"\n(?s:.*?\n)??".join(lines), done.stdout)


def example(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run one to its end."""
    return completed([*PYTHON, f"examples/{name}.py", *arguments], cwd=ROOT)


@pytest.mark.thorough("a second example of its kind")
def test_a_worker_comes_back_until_it_crashes_too_often(tmp_path: Path) -> None:
    first = example("worker", str(tmp_path / "words.db"), "tea and milk", "please crash")
    assert (first.returncode, first.stdout, first.stderr) == (0, "text 1: 3 word(s)\ntext 2: 2 word(s)\n", "")
    second = example("worker", str(tmp_path / "words.db"), "crash once more", "again", "crash three times")
    assert (second.returncode, second.stdout) == (1, "text 3: 3 word(s)\ntext 4: 1 word(s)\n")
    assert "is dead: gave up: ConnectionError: text 5 broke the counter" in second.stderr


def test_tools_of_ones_own_sell_what_there_is_once(tmp_path: Path) -> None:
    database = str(tmp_path / "stock.db")
    sold = example("stock", database, '@sell {"tea": "Assam", "kilos": 2} @then @stock')
    assert (sold.returncode, sold.stderr) == (0, "")
    assert sold.stdout == 'stock gave: {"Assam": 8, "Nilgiri": 5}\n'
    again = example("stock", database, '@sell {"tea": "Assam", "kilos": 9}')
    assert again.stdout == "sell gave: There are 8 kilos of Assam, not 9.\n"


@pytest.mark.sample(1, "the same check of the same line")
@pytest.mark.parametrize("name", ["worker", "stock", "supervised"])
def test_an_example_without_a_database_says_how_it_is_run(name: str) -> None:
    done = example(name)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"Usage: python examples/{name}\.py DATABASE[^\n]*\n", done.stderr)
