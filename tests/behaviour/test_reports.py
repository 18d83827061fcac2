"""Reports of the five results: what was found, what was tried, by which model, when, and what it cost."""

import json
import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser

import pytest

from ikigai_actors import ActorSystem, AgentRef, Reply, Request, ScriptedProvider, Usage
from ikigai_actors.behaviour import BestOf, Verdict, bisect, evaluate, recorded, regress, replay, same_text, search
from ikigai_actors.behaviour.listing import books_of, listed_trials
from ikigai_actors.behaviour.pages import ExperimentReport, ReportCell, ReportRow
from ikigai_actors.behaviour.results import ExperimentResult
from ikigai_actors.reach.notebooks import notebooks_of
from ikigai_actors.records.agents.words import words_of
from tests.conftest import NewDatabase
from tests.kit.blocking_provider import DEADLINE
from tests.kit.databases import sql
from tests.kit.program import run

CHANGE = {"system": "Be generous.", "max_tokens": None}


class Page(HTMLParser):
    """What stands on a page: its title, its facts, and its table."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._texts: dict[str, list[str]] = {"h1": [], "dt": [], "dd": [], "th": [], "td": []}
        self._in: list[str] = []
        self._sizes: list[int] = []
        self.feed(text)
        self.title = self._texts["h1"][0]
        self.facts = dict(zip(self._texts["dt"], self._texts["dd"], strict=True))
        self.head = self._texts["th"]
        cells = iter(self._texts["td"])
        self.rows = [[next(cells) for _ in self.head] for _ in range(len(self._texts["td"]) // max(1, len(self.head)))]

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in self._texts:
            self._in.append(tag)
            self._texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        if self._in and self._in[-1] == tag:
            self._in.pop()

    def handle_data(self, data: str) -> None:
        if self._in:
            self._texts[self._in[-1]][-1] += data


def clerk(request: Request) -> Reply:
    said = str([message["content"] for message in request.messages])
    return Reply(f"{request.system} {'dollars' if 'Texas' in said else 'euros'}", usage=Usage(90, 10))


def judge(_: object) -> Verdict:
    return Verdict(0.25, "hardly")


def asked(system: ActorSystem) -> AgentRef:
    agent = system.root.fork(name="clerk", system="Be brief.")
    for tea in ("Assam", "tea for Texas"):
        agent.prompt(tea).get(timeout=DEADLINE)
    return agent


Verb = Callable[[AgentRef], ExperimentResult]

VERBS: Mapping[str, tuple[Verb, str, list[str], dict[str, str]]] = {
    "search": (
        lambda agent: search(agent, judge, plan=BestOf(2), options=["More?"]),
        "Search: 0.25",
        ["trial", "prompt", "score", "why", "answer"],
        {"plan": "BestOf(2)", "options": "More?", "trials": "2, of which 2 have a verdict", "cost": "200 tokens"},
    ),
    "bisect": (
        lambda agent: bisect(agent, lambda run: "euros" in run.text, probe="In what?"),
        "Bisection: message 6",
        ["trial", "message", "bad there", "verdict", "answer"],
        {"question": "In what?", "up to message": "6"},
    ),
    "replay": (
        lambda agent: replay(recorded(agent), change=CHANGE),
        "Replay",
        ["message", "prompt", "what", "recorded", "replayed", "trial"],
        {"changed": "max_tokens: removed\nsystem: Be generous.", "cost": "200 tokens"},
    ),
    "regress": (
        lambda agent: regress(recorded(agent), change=CHANGE, check=same_text, samples=2),
        "Regression: ",
        ["message", "prompt", "why", "trial"],
        {"changed": "max_tokens: removed\nsystem: Be generous.", "samples": "2", "cost": "800 tokens"},
    ),
    "evaluate": (
        lambda agent: evaluate(agent, ["How much?"], judge, change=CHANGE),
        "Evaluation: ",
        ["prompt", "why", "trial"],
        {"changed": "max_tokens: removed\nsystem: Be generous.", "trials": "1, of which 1 have a verdict"},
    ),
}


@pytest.mark.sample(2, "verbs")
@pytest.mark.parametrize("verb", VERBS)
def test_a_report_says_what_was_tried_by_which_model_when_and_where_each_trial_is(
    verb: str, new_sqlite: NewDatabase
) -> None:
    made, title, head, facts = VERBS[verb]
    with ActorSystem.open(new_sqlite(), ScriptedProvider(clerk)) as system:
        agent = asked(system)
        result = made(agent)
        experiment = result.experiment.agent.record
        page, data = Page(result.html()), json.loads(result.json())
        assert page.title.startswith(title)
        assert page.head == head
        assert page.facts.items() >= facts.items()
        assert page.facts["experiment"] == experiment.name
        assert page.facts["history of"] == "clerk"
        assert page.facts["answered by"] == "scripted"
        assert page.facts["go to a trial"].startswith("ikigai log ID shows it")
        about = data["about"]
        assert (about["experiment"], about["of"], about["models"]) == (experiment.uuid, [agent.uuid], ["scripted:"])
        assert about["began_at"] <= about["ended_at"]
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", about["ended_at"])
        trials = [row[head.index("trial")] for row in page.rows]
        for trial in trials:
            number, _, short = trial.partition(" ")
            assert short == f"({words_of(result.experiment.agent_of(int(number)).uuid)})"
        assert trials
        assert len(repr(result)) < 100
        text = result.text()
        result.end()
        assert Page(result.html()).head  # the dead can be read
        assert result.text() == text


def test_a_failure_of_a_regression_names_the_trial_that_can_be_asked_why() -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(clerk)) as system:
        agent = asked(system)
        report = regress(recorded(agent), change=CHANGE, check=same_text, samples=2)
        assert [(failure.prompt, failure.number) for failure in report.failures] == [
            ("Assam", 1),
            ("Assam", 5),
            ("tea for Texas", 3),
            ("tea for Texas", 7),
        ]
        for failure in report.failures:
            trial = system.handle(failure.trial)
            assert trial.history()[-1].content.startswith("Be generous.")
            assert trial.prompt("Why?").get(timeout=DEADLINE).text
            line = f"clerk {failure.position} {failure.why}; trial {failure.number} ({words_of(failure.trial)})"
            assert line in report.text()
        assert "go to a trial" not in Page(report.html()).facts  # a database in memory ends with its program


@pytest.mark.sample(2, "verbs")
@pytest.mark.parametrize("verb", VERBS)
def test_what_was_not_begun_has_a_report_too(verb: str) -> None:
    with ActorSystem.open(":memory:", ScriptedProvider(clerk)) as system:
        agent = asked(system)
        verbs: Mapping[str, Callable[[], ExperimentResult]] = {
            "search": lambda: search(agent, judge, plan=BestOf(2), options=["More?"], dry_run=True),
            "bisect": lambda: bisect(agent, judge, dry_run=True),
            "replay": lambda: replay(recorded(agent), dry_run=True),
            "regress": lambda: regress(recorded(agent), dry_run=True),
            "evaluate": lambda: evaluate(agent, ["How much?"], judge, dry_run=True),
        }
        planned = verbs[verb]()
        page = Page(planned.html())
        assert (page.facts, page.rows) == ({}, [])
        assert json.loads(planned.json())["about"]["experiment"] is None
        assert "dry run" in planned.text()


def test_a_column_in_which_nothing_stands_is_left_out_and_the_best_row_stands_out() -> None:
    rows = [
        ReportRow((ReportCell("1"), ReportCell(""), ReportCell("a"))),
        ReportRow((ReportCell("2"), ReportCell(""), ReportCell("")), best=True),
    ]
    text = ExperimentReport("T", [], [], ["x", "y", "z"], rows, {}).html([("a", "<b>")])
    page = Page(text)
    assert (page.head, page.rows, page.facts) == (["x", "z"], [["1", "a"], ["2", ""]], {"a": "<b>"})
    assert text.count('<tr class="best">') == 1
    assert "<b>" not in text


@pytest.mark.thorough("many trials")
def test_lists_of_agents_say_what_each_trial_is_and_leave_out_most_of_many(new_sqlite: NewDatabase) -> None:
    database = new_sqlite()
    with ActorSystem.open(database, ScriptedProvider(clerk)) as system:
        agent = asked(system)
        scores = iter([0.25, 0.5, 0.75, *[0.5] * 40])
        result = search(agent, lambda run: next(scores), plan=BestOf(43), options=["More?"], name="many", parallel=1)
        few = evaluate(agent, ["How much?"], lambda run: None, name="few")
        shown = result.experiment.agent_of(3)
        last = result.experiment.agent_of(43)
        last.fork(name="below")
        records = system.agents()
        books = books_of(notebooks_of(system, records))
        listed = listed_trials(records, books)
        assert listed.notes[result.experiment.agent.uuid] == (
            f"search of clerk: 43 trials, 43 judged, best 0.75 (trial 3, {words_of(shown.uuid)}), worst 0.25 (trial 1, "
            f"{words_of(result.experiment.agent_of(1).uuid)}), 38 of them not shown: ikigai log many"
        )
        assert listed.notes[shown.uuid] == "trial 3 0.75 “More?”"
        assert listed.notes[few.experiment.agent_of(1).uuid] == "trial 1 not judged “How much?” (change)"
        assert listed.notes[few.experiment.agent.uuid] == "evaluate of clerk: 1 trial, 1 judged"
        assert len(listed.hidden) == 39  # with what is below them
        assert last.uuid in listed.hidden
        assert last.uuid not in listed_trials(records, books, last.uuid).hidden
        second = words_of(result.experiment.agent_of(2).uuid)
    tree = run("--database", database, "agents").stdout.splitlines()
    assert sum("trial " in line for line in tree) == 7
    assert tree[-1] == "49 running, 0 dead"
    log = run("--database", database, "log", "many").stdout
    assert f"trial 2 ({second}) 0.5 “More?”" in log
    assert "messages are not shown: --last N shows the latest ones, --json all of them" in log
    assert log.splitlines()[-1].startswith("search of clerk: 43 trials, 43 judged, best 0.75")
    assert len(run("--database", database, "log", "many", "--json").stdout.splitlines()) > 80


def test_a_book_that_cannot_be_read_is_no_experiment_of_a_list(new_sqlite: NewDatabase) -> None:
    with ActorSystem.open(new_sqlite(), ScriptedProvider(clerk)) as system:
        result = search(asked(system), judge, plan=BestOf(1), options=["More?"])
        agent = result.experiment.agent
        wrong = f"UPDATE messages SET data = '{{\"verdicts\": [1]}}' WHERE agent_uuid = '{agent.uuid}' AND id > "
        system._store.write(lambda tx: sql(tx, f"{wrong}{agent.record.fork_message_id + 2} AND kind = 'note'"))
        records = system.agents()
        assert books_of(notebooks_of(system, records)) == {}
