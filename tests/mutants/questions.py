"""Mutants of questions to people.

nice python -m tests.mutants --questions
"""

from tests.mutants import Mutant

_INBOX, _SENDING = "tests/system/test_questions.py", "tests/system/test_subscriptions.py"

QUESTION_MUTANTS = (
    Mutant(
        "a question is asked without its row",
        "agent/turn/questions.py",
        "questions=asked, settled=settled",
        "questions=(), settled=settled",
        test=_INBOX,
    ),
    Mutant(
        "a row stays open when its call waits no more",
        "agent/turn/questions.py",
        "questions=asked, settled=settled",
        "questions=asked, settled=()",
        test=_INBOX,
    ),
    Mutant(
        "a row stays open when its agent dies",
        "records/questions/questions.py",
        '    tx.run("bury_questions", agents=list(agents), now=now)',
        "    pass",
        test=_INBOX,
    ),
    Mutant(
        "the digest is that of the tool alone",
        "agent/turn/questions.py",
        "digest=shown_digest(digest_of(call.name, call.input), call.definition)",
        "digest=shown_digest(digest_of(call.name, {}), call.definition)",
        test=_INBOX,
    ),
    Mutant(
        "an answer about something else is taken",
        "system/questions.py",
        "        if digest and digest != row.digest:",
        "        if digest == row.digest == '':",
        test=_INBOX,
    ),
    Mutant(
        "anybody answers",
        "system/questions.py",
        "        if roles is not None:\n            check_addressed(",
        "        if roles == ():\n            check_addressed(",
        test=_INBOX,
    ),
    Mutant(
        "an escalation forgets the people before",
        "records/hosts/question_steps.py",
        "(*asks, *resolved([step.address], {}))",
        "resolved([step.address], {})",
        test=_INBOX,
    ),
    Mutant(
        "a step is taken again and again",
        "records/hosts/question_steps.py",
        "level=row.level + 1, asks=json.dumps(asks), next_at=next_at",
        "level=row.level, asks=json.dumps(asks), next_at=next_at",
        test=_INBOX,
    ),
    Mutant(
        "the time of a question ends without a decision",
        "records/hosts/question_steps.py",
        "        if step.what == DEFAULT:",
        "        if step.what == DEFAULT and step.address:",
        test=_INBOX,
    ),
    Mutant(
        "a default that is left out allows",
        "records/hosts/question_steps.py",
        'default == "allow" if row.kind == APPROVE',
        'default != "allow" if row.kind == APPROVE',
        test=_INBOX,
    ),
    Mutant(
        "a question that waits no more counts as answered",
        "records/log/outside_events.py",
        "        if call.how != VOID:",
        "        if call.how != EXPIRED or True:",
        test=_SENDING,
    ),
    Mutant(
        "nobody hears of a default",
        "records/log/outside_events.py",
        "        if call.how != VOID:",
        "        if call.how not in (VOID, EXPIRED):",
        test=_SENDING,
    ),
)
