"""A message of every kind in words: in a history, and in a transcript."""

from collections.abc import Mapping

import pytest

from ikigai_actors.frozen import NO_DATA
from ikigai_actors.records.agents.words import words_of
from ikigai_actors.records.messages.messages import Kind, Message
from ikigai_actors.shell.app.transcript.pieces import Look, pieces_of
from ikigai_actors.verbs.text.pages import history_page

CHILD = "c" * 22
WORDS = words_of(CHILD)

CALLS = {"stop_reason": "tool_use", "tool_calls": [{"id": "x", "name": "ls", "input": {"path": "."}}]}

SHOWN: list[tuple[str, str, Mapping[str, object], str, list[tuple[Look, str]]]] = [
    ("configure", "", {"a": 1, "b": "x\ny"}, "a = 1, b = 'x\\ny'", [(Look.NOTE, "a = 1, b = 'x\\ny'")]),
    ("configure", "", {}, "", [(Look.NOTE, "")]),
    ("omitted", "", {}, "", [(Look.RULE, "left out: it was cleared before these agents were exported")]),
    ("user", "a\nb", {}, "a\nb", [(Look.PROMPT, "a\nb")]),
    ("note", "", {"number": 1}, 'note {"number": 1}', [(Look.RULE, 'note {"number": 1}')]),
    ("assistant", "a\n\nb", {}, "a\n\nb", [(Look.MARKDOWN, "a"), (Look.MARKDOWN, "b")]),
    ("assistant", "so", CALLS, 'so\nls {"path": "."}', [(Look.MARKDOWN, "so"), (Look.CALL, "ls path: .")]),
    ("assistant", "", CALLS, 'ls {"path": "."}', [(Look.CALL, "ls path: .")]),
    (
        "assistant",
        "half ",
        {"stop_reason": "interrupted"},
        "half [interrupted]",
        [(Look.MARKDOWN, "half "), (Look.NOTE, "[interrupted]")],
    ),
    (
        "assistant",
        "half",
        {"stop_reason": "max_tokens"},
        "half",
        [(Look.MARKDOWN, "half"), (Look.NOTE, "[the answer ends here: max_tokens]")],
    ),
    ("assistant", "", {}, "", [(Look.NOTE, "[an empty answer]")]),
    ("assistant", " \n", {}, " \n", [(Look.NOTE, "[an empty answer]")]),
    ("repair", "It wants a number.", {}, "It wants a number.", [(Look.NOTE, "[asked again] It wants a number.")]),
    ("output", "{}", {}, "{}", [(Look.NOTE, "result: {}")]),
    ("tool_call", "ls", {"name": "ls"}, "ls started", []),
    ("tool_result", "a\nb", {"name": "ls"}, "ls: a\nb", [(Look.CALL, "ls")]),
    ("tool_result", "a", {}, "tool: a", [(Look.CALL, "tool")]),
    ("approval", "ls", {}, "ls", []),
    ("hook", "denied", {}, "denied", [(Look.NOTE, "[hook] denied")]),
    ("context", "so", {"hook": "guard"}, "so", [(Look.NOTE, "[guard says] so")]),
    ("clear", "", {}, "", [(Look.RULE, "cleared: the history starts over")]),
    ("mark", "tea", {}, "tea", [(Look.RULE, "mark 'tea'")]),
    ("mark", "", {}, "(no label)", [(Look.RULE, "mark")]),
    (
        "rewind",
        "",
        {"before": 7},
        "to before the prompt at 7",
        [(Look.RULE, "took back the prompt at 7; everything after it, too")],
    ),
    ("rewind", "tea", {"mark": 3}, "to mark 'tea'", [(Look.RULE, "rewound to mark 'tea'")]),
    ("rewind", "", {"mark": 3}, "to the mark at 3", [(Look.RULE, "rewound to the latest mark")]),
    ("rewind", "", {}, "to the mark at ?", [(Look.RULE, "rewound to the latest mark")]),
    (
        "summary",
        "of old",
        {"keep_from": 8},
        "of messages up to 7: of old",
        [(Look.RULE, "summarised: messages up to 7")],
    ),
    (
        "summary",
        "of old",
        {"keep_from": 8, "before": 161_204, "after": 940},
        "of messages up to 7: of old",
        [(Look.RULE, "summarised: messages up to 7, 161k → 940 tokens (/uncompact brings them back)")],
    ),
    (
        "summary",
        "",
        {"elide": 9},
        "by reference: long results before message 9",
        [(Look.RULE, "by reference from now on: long results before message 9")],
    ),
    (
        "uncompact",
        "",
        {"summary": 8},
        "took off the summary at 8",
        [(Look.RULE, "took off the summary at 8: the messages are back")],
    ),
    (
        "merge",
        "it dug",
        {"from": CHILD, "name": "kid", "since": 3, "head": 7},
        "of kid, messages 4–7: it dug",
        [(Look.CALL, "merged: kid, messages 4–7")],
    ),
    (
        "merge",
        "it dug",
        {"from": CHILD, "positions": [5, 7], "documents": [{"path": "a.md", "version": 2, "other": 3}]},
        f"of {WORDS}, messages 5, 7: it dug\na.md, version 2, a conflict: somebody else has written version 3",
        [
            (
                Look.CALL,
                f"merged: {WORDS}, messages 5, 7; a.md, version 2, a conflict: somebody else has written version 3",
            )
        ],
    ),
    ("fork", "", {"child": CHILD}, f"forked {WORDS}", [(Look.RULE, f"forked {WORDS}")]),
    (
        "fork",
        "",
        {"child": CHILD, "number": 3, "prompt": "Go\non."},
        f"trial 3, forked {WORDS}: Go on.",
        [(Look.RULE, f"trial 3 ({WORDS}): Go on.")],
    ),
    (
        "note",
        "",
        {"verdicts": [[1, 0.5, "so\nso", False, 9], [2, None, "", False, 9], "?"]},
        'trial 1: 0.5 so so\ntrial 2: not judged\n"?"',
        [(Look.RULE, 'trial 1: 0.5 so so; trial 2: not judged; "?"')],
    ),
    (
        "note",
        "",
        {"terms": {"verb": "search"}},
        'experiment {"verb": "search"}',
        [(Look.RULE, "experiment: search")],
    ),
    ("fork", "", {"parent": CHILD}, f"forked from {WORDS}", [(Look.RULE, f"inherited: 1,233 messages from {WORDS}")]),
    ("fork", "", {}, "forked from ?", [(Look.RULE, "inherited: 1,233 messages from ?")]),
    ("mail", "1 unread\nof a", {}, "1 unread\nof a", [(Look.NOTE, "mail: 1 unread of a")]),
    ("steer", "by\ntrain", {"mail": 1}, "by\ntrain", [(Look.PROMPT, "by\ntrain")]),
    ("error", "it\nfailed", {}, "it\nfailed", [(Look.ERROR, "it\nfailed")]),
    (
        "retry",
        "overloaded",
        {},
        "[the reply broke off; asking again]",
        [(Look.NOTE, "[the reply broke off; asking again]")],
    ),
    ("interrupted", "", {"exit": "done"}, "", [(Look.NOTE, "[interrupted]")]),
    ("of a newer version", "a\nb", {}, "a\nb", [(Look.NOTE, "of a newer version: a b")]),
    ("of a newer version", "", {}, "", [(Look.NOTE, "of a newer version: ")]),
]
"""Kind, content and data of a message; its text in a history, and its pieces in a transcript."""


@pytest.mark.parametrize(("kind", "content", "data", "entry", "pieces"), SHOWN)
def test_a_message_is_shown_in_the_words_of_its_kind(
    kind: str, content: str, data: Mapping[str, object], entry: str, pieces: list[tuple[Look, str]]
) -> None:
    message = Message("a" * 22, 1234, kind, content, data or NO_DATA, 0)
    [shown] = history_page([message], message.agent_uuid, 1, "/history")
    first, *rest = shown.text.split("\n")
    assert "\n".join([first.removeprefix(f" 1234  {kind:<11}  "), *(line[20:] for line in rest)]) == entry
    assert [(piece.look, piece.text) for piece in pieces_of([message])] == pieces


def test_every_kind_is_among_them() -> None:
    assert {kind for kind, *_ in SHOWN} == {*Kind, "of a newer version"}
