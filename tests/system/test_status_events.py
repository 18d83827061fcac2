"""A subscriber hears once that an agent was stopped and goes on, here and attached."""

from pathlib import Path

from ikigai_actors import ActorSystem, OfflineProvider, Signal
from ikigai_actors.events import StatusSet
from ikigai_actors.system.attached import AttachedSystem
from tests.kit.databases import eventually


def test_a_stop_and_a_cont_are_heard_once_each(database: str) -> None:
    heard: list[StatusSet] = []
    with ActorSystem.open(database, OfflineProvider()) as system:
        kid = system.root.fork(name="kid")
        with system.subscribe(heard.append, only=(StatusSet,)):
            kid.rename("other")
            for signal in (Signal.STOP, Signal.STOP, Signal.CONT):
                kid.signal(signal)
            system.root.prompt("go").get(timeout=60)
    assert heard == [StatusSet(kid.uuid, "stopped"), StatusSet(kid.uuid, "running")]


def test_an_attached_process_hears_of_it_too(tmp_path: Path) -> None:
    heard: list[StatusSet] = []
    with ActorSystem.open(tmp_path / "d.db", OfflineProvider()) as system:
        kid = system.root.fork(name="kid")
        with AttachedSystem.open(tmp_path / "d.db") as attached, attached.subscribe(heard.append, only=(StatusSet,)):
            kid.signal(Signal.STOP)
            eventually(lambda: heard == [StatusSet(kid.uuid, "stopped")], "the news of STOP")
            kid.signal(Signal.CONT)
            eventually(lambda: heard[1:] == [StatusSet(kid.uuid, "running")], "the news of CONT")
