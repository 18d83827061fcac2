"""The observer: the page of a system, served on a thread of its own.

    with observe(system) as observer:
        print(observer.link)            # open it in a browser

The observer stores only a row that registers it as a listener. If its process is killed, that row expires.
"""

import asyncio
import os
import secrets
import threading
from dataclasses import replace
from functools import partial

from ikigai_actors.actors.closing import ClosedByBlock
from ikigai_actors.arguments import as_path, check_flag, shown
from ikigai_actors.errors import BadInput
from ikigai_actors.http_server.acceptor import ConnectionLimits, listen
from ikigai_actors.http_server.guard import OWN_FILES_POLICY, PageGuard
from ikigai_actors.http_server.server import serving
from ikigai_actors.http_server.token_file import token_in
from ikigai_actors.reach.views import check_open, location_of
from ikigai_actors.sight.served_pages import link_to
from ikigai_actors.sight.server import PageServer
from ikigai_actors.sight.watch import ObserverWatch
from ikigai_actors.system.handles.ref import System

OWN_ADDRESSES = ("127.0.0.1", "localhost")

_ENDING = 2.0
"""Seconds that open requests may take after the observer is closed."""

_PAGES = 40
"""The most connections that may be open."""


class Observer(ClosedByBlock):
    """Serves the observer page of one system until it is closed. Make it by `observe`."""

    def __init__(self, system: System, port: int, host: str, read_only: bool, token: str = "") -> None:
        """Bind the port and begin to serve. Raises `BadInput` if the port is not free."""
        self._listening = listen(host, port)
        self.address = f"{host}:{self._listening.getsockname()[1]}"
        """The host and the port at which the observer listens."""
        self._guard = PageGuard(self.address, OWN_FILES_POLICY, token)
        self._system, self._read_only = system, read_only
        self._may_lead_on = host in OWN_ADDRESSES and not read_only  # the shell's link has its token
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ikigai-observer", daemon=True)
        self._thread.start()
        self._ready.wait()
        self._raise_failure()

    @property
    def link(self) -> str:
        """Return the link for a browser. The link contains the token."""
        return self._guard.link

    @property
    def token(self) -> str:
        """Return the secret that programs send: ``Authorization: Bearer TOKEN``."""
        return self._guard.token

    def _raise_failure(self) -> None:
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def close(self) -> None:
        """End the streams, answer open requests, and free the port. The system stays open."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # of its start: the caller gets it
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        watch = ObserverWatch(self._system, secrets.token_hex(8))
        shell = partial(link_to, "serve", location_of(self._system)) if self._may_lead_on else None
        server = PageServer(watch, self._read_only, shell)
        limits = ConnectionLimits.of_process()
        limits = replace(limits, guests=min(_PAGES, limits.guests))
        try:
            async with serving(server, self._guard, self._listening, limits, _ENDING):
                self._ready.set()
                await self._ended.wait()
        finally:
            await watch.close()


def observe(
    system: System,
    port: int = 0,
    host: str = "127.0.0.1",
    read_only: bool = False,
    *,
    allow_remote: bool = False,
    token_file: str | os.PathLike[str] | None = None,
) -> Observer:
    """Serve a page on which the agents of a system are seen: what they do, did and cost.

        with ActorSystem.open("team.db") as system, observe(system) as observer:
            print(observer.link)

    Args:
        system: an open system, or an attached one.
        port: the port; 0 takes a free one.
        host: the address to listen at.
        read_only: whether the page can only show, and not act.
        allow_remote: listen at another address than this machine's own, without encryption.
        token_file: a file of the secret, which programs such as Prometheus then know across restarts. It is made when
            there is none. Without it each observer has a secret of its own.

    Returns:
        The observer; close it, or use it by ``with``.

    Raises:
        BadInput: the port cannot be had, the host is remote and that was not allowed, or others may read the file.
        SystemClosed: the system is closed.
    """
    if not isinstance(system, System):
        raise BadInput(f"Expected an open system; got {shown(system)}.")
    check_flag(read_only, "read_only")
    check_open(system)
    if host not in OWN_ADDRESSES and not allow_remote:
        raise BadInput(
            f"The host {host} is no address of this machine alone, and nothing would be encrypted. Observe from here "
            "through a tunnel, or allow it: allow_remote=True (--allow-remote)."
        )
    token = "" if token_file is None else token_in(as_path(token_file))
    return Observer(system, port, host, read_only, token)
