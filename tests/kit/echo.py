"""Agents that answer with what they hear."""

from ikigai_actors import ActorSystem, Message, Request, ScriptedProvider


def echo(request: Request) -> str:
    """Answers with the last prompt, and how many messages it was shown."""
    last = request.messages[-1]["content"][-1]["text"]
    return f"{last} / {len(request.messages)}"


def open_echo(database: str, *, resume: bool = True) -> ActorSystem:
    return ActorSystem.open(database, provider=ScriptedProvider(echo), resume=resume)


def kinds(messages: list[Message]) -> list[str]:
    return [message.kind for message in messages]
