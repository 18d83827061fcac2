"""The link that sends deliveries over HTTP, at its end."""

import gc
import threading
import warnings
from typing import Any

import pytest

from ikigai_actors.actors.event_loop import EndlessLoop
from ikigai_actors.actors.threads import SystemThreads
from ikigai_actors.records.outbox.addresses import AllowedAddresses
from ikigai_actors.records.outbox.retries import ReceiverAnswer
from ikigai_actors.system.host.deliveries import Outgoing
from ikigai_actors.system.host.http_link import HttpLink


class HeldThreads(SystemThreads):
    """Threads whose event loop waits until other threads have called it so many times."""

    def __init__(self, calls: int) -> None:
        self._calls, self._enough = calls, threading.Event()

    def new_event_loop(self) -> EndlessLoop:
        loop = super().new_event_loop()
        receive = loop.call_soon_threadsafe

        def call_soon_threadsafe(*call: Any, **context: Any) -> Any:
            handle = receive(*call, **context)
            self._calls -= 1
            if not self._calls:
                self._enough.set()
            return handle

        loop.call_soon_threadsafe = call_soon_threadsafe  # type: ignore[assignment,method-assign]
        loop.call_soon(self._enough.wait)
        return loop


@pytest.mark.parametrize("requests", [1, 3])
def test_a_link_that_is_closed_while_requests_begin_leaves_no_session(requests: int) -> None:
    answers: list[ReceiverAnswer] = []
    link = HttpLink(AllowedAddresses(), HeldThreads(requests + 1))
    for number in range(requests):
        link.send(Outgoing(f"http{'s' if number else ''}://192.0.2.1/", {}, b"{}"), answers.append)
    link.close()
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        del link
        gc.collect()
    assert [str(warning.message) for warning in noted] == []
    assert answers == []
