"""Which attachments of a conversation its model sees: never what its service refuses, and the newest in any case."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from ikigai_actors.agent.assembly import conversation_in_words, conversation_of, passage_of
from ikigai_actors.providers.attachment_limits import AttachmentLimits
from ikigai_actors.providers.blocks import Blob, ResultBlock, TextBlock, blobs_in
from ikigai_actors.providers.conversation import Conversation, Passage
from ikigai_actors.records.log.log import Log
from ikigai_actors.records.messages.messages import Message
from tests.agent.turn.test_assembly import MODEL, Entry, history, result, said, user

LIMITS = AttachmentLimits(number=6, size=4_000, picture_size=1_000, pixels=100, many=3, pixels_of_many=10)


def blob(number: int, size: int = 30, pixels: int = 5, media: str = "image/png") -> Blob:
    return Blob(str(number), media, size, f"{number}.png", pixels)


def given_with(entry: Entry, *blobs: Blob) -> Entry:
    stored = [
        {"sha256": blob.sha256, "media": blob.media, "size": blob.size, "name": blob.name, "pixels": blob.pixels}
        for blob in blobs
    ]
    return (entry[0], entry[1], {**entry[2], "attached": stored})


def asked(messages: Sequence[Message], head: int, log: Log | None = None) -> Passage:
    return conversation_of(log or Log("agent", 0, None, list(messages)), head, MODEL, LIMITS)


def sent(conversation: Passage) -> list[Blob]:
    """The attachments that a request has."""
    blocks = [block for message in Conversation(conversation) for block in message.blocks]
    return [blob for block in blocks for blob in blobs_in(block)]


def texts(conversation: Passage) -> str:
    blocks = [block for message in Conversation(conversation) for block in message.blocks]
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock | ResultBlock))


def is_taken(blobs: Sequence[Blob]) -> bool:
    """Whether the service takes these in one request."""
    pictures = [blob for blob in blobs if blob.media == "image/png"]
    most = 10 if len(blobs) > 3 else 100
    fits = all(0 < picture.pixels <= most or (picture.pixels == 0 and most == 100) for picture in pictures)
    encoded = [(blob.size + 2) // 3 * 4 for blob in blobs]
    return (
        fits
        and len(blobs) <= 6
        and sum(encoded) <= 4_000
        and all((picture.size + 2) // 3 * 4 <= 1_000 for picture in pictures)
    )


blobs = st.builds(
    blob,
    st.integers(0, 99),
    st.sampled_from([30, 300, 700, 800]),
    st.sampled_from([0, 5, 11, 101]),
    st.sampled_from(["image/png", "image/png", "application/pdf"]),
)
rounds = st.tuples(st.booleans(), st.booleans(), st.lists(blobs, max_size=4), st.lists(blobs, max_size=4))


def grown(drawn: Sequence[tuple[bool, bool, list[Blob], list[Blob]]]) -> list[Message]:
    """Prompts and rounds of two calls, each with attachments."""
    entries: list[Entry] = [user("go")]
    for place, (calls, wrong, first, second) in enumerate(drawn):
        if calls:
            entries += [
                said("", f"{place}a:shot", f"{place}b:shot"),
                given_with(result(f"{place}b", is_error=wrong), *first),
                given_with(result(f"{place}a"), *second),
            ]
        else:
            entries += [said("well"), given_with(user("look"), *first, *second)]
    return history(*entries)


@given(st.lists(rounds, max_size=6))
@settings(max_examples=30, deadline=None)
def test_a_request_never_holds_what_its_service_refuses_and_is_the_same_whoever_asked_before(
    drawn: list[tuple[bool, bool, list[Blob], list[Blob]]],
) -> None:
    messages = grown(drawn)
    heads = [message.id for message in messages if message.kind != "assistant"]
    one_after_another = Log("agent", 0, None, messages)
    for head in (*heads, *heads[::-2]):
        conversation = asked(messages, head, one_after_another)
        assert is_taken(sent(conversation))
        assert list(Conversation(conversation)) == list(Conversation(asked(messages, head)))


@given(st.lists(blobs, min_size=1, max_size=6), st.lists(rounds, max_size=4))
@settings(max_examples=30, deadline=None)
def test_what_came_last_is_shown_if_the_service_takes_it(
    new: list[Blob], drawn: list[tuple[bool, bool, list[Blob], list[Blob]]]
) -> None:
    messages = grown(drawn)
    prompts = history(
        *((message.kind, message.content, message.data) for message in messages),
        said("well"),
        given_with(user("look"), *new),
    )
    conversation = asked(prompts, len(prompts))
    if is_taken(new):
        assert sent(conversation)[-len(new) :] == new
    small = [blob for blob in new if is_taken([blob])]
    assert sent(conversation)[-1:] == small[-1:] or not small


def test_of_many_large_pictures_the_beginning_changes_seldom_and_names_where_they_are() -> None:
    entries = [user("go")]
    for place in range(12):
        entries += [said("", f"{place}:shot"), given_with(result(str(place)), blob(place, pixels=50))]
    messages = history(*entries)
    log = Log("agent", 0, None, messages)
    hidden = [asked(messages, head, log).hidden for head in range(3, len(messages) + 1, 2)]
    assert hidden == [0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9]
    assert "(3.png, image/png, 30 bytes; message 9: recall(9) shows it)" in texts(asked(messages, len(messages), log))


def test_one_that_the_service_does_not_take_at_all_is_a_line_of_text() -> None:
    large = Blob("1", "image/png", 6 * 2**20, "shot.png", 50)
    entries = [user("go"), said("", "1:shot"), given_with(result("1"), large, blob(2))]
    conversation = asked(history(*entries), 3)
    assert texts(conversation) == "go\ndone\n(shot.png, image/png, 6.0 MB: too large for this model)"
    assert sent(conversation) == [blob(2)]


def test_a_summary_is_asked_for_with_words_alone() -> None:
    entries = [given_with(user("look"), blob(1), blob(2, media="audio/wav")), said("well"), user("on")]
    messages = history(*entries)
    log = Log("agent", 0, None, messages)
    whole = asked(messages, 3, log)
    words = conversation_in_words(log, 3, MODEL, LIMITS, (), 3)
    assert sent(whole) == [blob(1), blob(2, media="audio/wav")]
    assert (sent(words), sent(passage_of(messages, MODEL))) == ([], [])
    assert "(1.png, image/png, 30 bytes; message 1: recall(1) shows it)" in texts(words)
    assert asked(messages, 3, log) is not words
    plain = Log("agent", 0, None, history(user("hi")))
    assert (
        conversation_in_words(plain, 1, MODEL, LIMITS, (), 1).earlier
        is conversation_of(plain, 1, MODEL, LIMITS).earlier
    )
