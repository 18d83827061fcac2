"""The rows by which other processes ask an agent to do something itself: databases hold them, so their form stays."""

from typing import get_args

import pytest

from ikigai_actors.actors.futures import Future
from ikigai_actors.agent.remote_commands import (
    Fail,
    ListTools,
    Move,
    OutcomeHandler,
    RemoteCaller,
    RemoteCommand,
    decode,
    encode,
)
from ikigai_actors.agent.turn import events as on
from ikigai_actors.records.hosts.remote_commands import RemoteCommandKey

CHILD = "A" * 22
CALLER = RemoteCaller(type("Nobody", (OutcomeHandler,), {})(), RemoteCommandKey("a", 1), "", 0)
FORK = (
    f'{{"child": "{CHILD}", "name": "b", "prompt": null, "settings": {{"max_tokens": 5}}, '
    '"restart": "transient", "on_orphan": "cascade"}'
)

STORED: tuple[tuple[str, str, RemoteCommand], ...] = (
    (
        "fork",
        FORK,
        on.Fork(CHILD, "b", None, {"max_tokens": 5}, "transient", CALLER, "cascade"),
    ),
    (
        "fork",
        FORK.replace(', "prompt": null', ', "prompt": "go"')[:-1] + ', "data": {"output": {"schema": {}}}}',
        on.Fork(CHILD, "b", "go", {"max_tokens": 5}, "transient", CALLER, "cascade", {"output": {"schema": {}}}),
    ),
    (
        "fork",
        FORK.replace(', "prompt": null', ', "prompt": "go"')[:-1] + ', "kind": "reviewer"}',
        on.Fork(CHILD, "b", "go", {"max_tokens": 5}, "transient", CALLER, "cascade", kind="reviewer"),
    ),
    (
        "fork_at",
        FORK.replace('"cascade"', '"cascade", "at": 17'),
        on.ForkAt(CHILD, "b", None, {"max_tokens": 5}, "transient", CALLER, "cascade", at=17),
    ),
    (
        "fork",
        f'{FORK[:-1]}, "more": [["{CHILD}", "c", null], ["{CHILD}", null, "go"]]}}',
        on.Fork(
            CHILD,
            "b",
            None,
            {"max_tokens": 5},
            "transient",
            CALLER,
            "cascade",
            more=(on.NewChild(CHILD, "c", None), on.NewChild(CHILD, None, "go")),
        ),
    ),
    (
        "trials",
        f'{{"note": {{"terms": 1}}, "trials": [["{CHILD}", "{CHILD}", 3, "go", {{}}, {{}}, {{"number": 1}}]]}}',
        on.ForkTrials(
            {"terms": 1},
            (on.TrialBirth(CHILD, CHILD, 3, "go", {}, {}, {"number": 1}),),
            CALLER,
        ),
    ),
    (
        "trials",
        f'{{"note": {{}}, "trials": [["{CHILD}", "{CHILD}", 3, null, {{}}, {{}}, {{}}, true, [["user", "a", {{}}]]]]}}',
        on.ForkTrials({}, (on.TrialBirth(CHILD, CHILD, 3, None, {}, {}, {}, True, (("user", "a", {}),)),), CALLER),
    ),
    ("clear", "{}", on.Clear(CALLER)),
    ("compact", '{"focus": "the names"}', on.Compact("the names", CALLER)),
    ("compact", '{"focus": "", "summary": "tea"}', on.Compact("", CALLER, "tea")),
    ("uncompact", "{}", on.Uncompact(CALLER)),
    (
        "merge",
        f'{{"child": "{CHILD}", "how": "pick", "positions": [5, 7]}}',
        on.Merge(CHILD, "pick", (5, 7), CALLER),
    ),
    ("merge_files", f'{{"child": "{CHILD}"}}', on.MergeFiles(CHILD, CALLER)),
    ("mark", '{"label": "here"}', on.SetMark("here", CALLER)),
    ("rewind", '{"label": null}', on.Rewind(None, CALLER)),
    ("undo", "{}", on.Undo(CALLER)),
    ("configure", '{"settings": {"max_tokens": null}}', on.Configure({"max_tokens": None}, CALLER)),
    ("resume", "{}", on.Resume(CALLER)),
    ("exit", '{"result": "done"}', on.ExitNow("done", CALLER)),
    (
        "decide",
        '{"reply": 7, "call": "c", "approved": false, "reason": "no", "always": "tool"}',
        on.Decide(7, "c", False, "no", "tool", CALLER),
    ),
    ("fail", '{"reason": "too often"}', Fail("too often", CALLER)),
    ("move", '{"host": "b"}', Move("b", CALLER)),
    ("tools", "{}", ListTools(CALLER)),
)
"""Each kind of remote command: its row, and the command."""


@pytest.mark.parametrize(("kind", "body", "command"), STORED, ids=[kind for kind, _, _ in STORED])
def test_a_request_is_stored_and_understood_as_it_ever_was(kind: str, body: str, command: RemoteCommand) -> None:
    assert decode(kind, body, CALLER) == command
    assert encode(command) == (kind, body)


def test_every_command_that_travels_is_among_them_under_a_kind_of_its_own() -> None:
    travelling = [(asked.travels_as, asked) for asked in get_args(RemoteCommand) if asked.travels_as]
    assert sorted(kind for kind, _ in travelling) == sorted({kind for kind, _, _ in STORED})
    assert dict(travelling) == {kind: type(command) for kind, _, command in STORED}


def test_a_command_that_no_request_carries_is_not_stored() -> None:
    with pytest.raises(TypeError, match="GetOutcome"):
        encode(on.GetOutcome(Future()))


def test_what_the_actor_looks_up_for_a_command_is_not_stored() -> None:
    assert encode(on.Undo(Future(), prompt=5)) == ("undo", "{}")
