"""``kill -9`` at random moments: what was acknowledged is there, and every history is whole."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, Kind, Message
from tests.crash_driver import open_when_free

DRIVER = Path(__file__).with_name("crash_driver.py")


def run_until_killed(url: str, seed: int, after: int) -> list[str]:
    """Start the driver, kill it hard once it has acknowledged so many things; return all that it had said."""
    command = [sys.executable, str(DRIVER), url, str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=DRIVER.parent.parent) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(after)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
    assert process.returncode == -signal.SIGKILL
    return [line for line in said if line.endswith("\n")]


def check(system: ActorSystem, said: list[str]) -> None:
    """Everything acknowledged is stored where it was said to be, and every history is whole."""
    histories: dict[str, list[Message]] = {
        record.uuid: system.agent(record.uuid).history(all=True) for record in system.agents()
    }
    for line in said:
        match line.rstrip("\n").split(" ", 3):
            case ["prompt", uuid, position, text]:
                message = histories[uuid][int(position) - 1]
                assert (message.id, message.kind, message.content) == (int(position), Kind.ASSISTANT, text)
            case ["mark", uuid, position]:
                assert histories[uuid][int(position) - 1].kind == Kind.MARK
            case ["fork", parent, child]:
                assert system.agent(child).record.parent_uuid == parent
    for record in system.agents():
        history = histories[record.uuid]
        assert record.status == "running"
        assert [message.id for message in history] == list(range(1, len(history) + 1))
        if record.turn:
            assert history[record.turn - 1].kind == Kind.USER
            assert system.agent(record.uuid).state == "interrupted"


@pytest.mark.parametrize("seed", range(2))
def test_nothing_acknowledged_is_lost_by_kill_9(durable: str, seed: int) -> None:
    chance, said = random.Random(seed), list[str]()
    for _ in range(4):
        said += run_until_killed(durable, seed, chance.randrange(1, 60))
        with open_when_free(durable) as system:
            check(system, said)
            resumed = system.resume()
            for agent in resumed:
                assert agent.reply(timeout=60).text
            assert not any(record.turn for record in system.agents())
