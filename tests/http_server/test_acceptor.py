"""The door of `ikigai serve`: silent strangers come and go, and whoever has the token gets in."""

import asyncio
import contextlib
import re
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from ikigai_actors.http_server.acceptor import Acceptor, ConnectionLimits, listen
from tests.kit.blocking_provider import DEADLINE
from tests.kit.program import PATIENCE
from tests.shell.web.test_serve import served, visit

pytestmark = pytest.mark.slow("serves pages")

LOOPBACK = "127.0.0.1"


class Echo(asyncio.Protocol):
    """Says back what it hears; at "token" the connection is admitted."""

    door: "Acceptor | None" = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert Echo.door is not None
        welcome = data != b"token" or Echo.door.admit(self._transport)
        self._transport.write(data if welcome else b"full")


@asynccontextmanager
async def door(limits: ConnectionLimits, header_seconds: float = 600.0) -> AsyncIterator[int]:
    """A door, and the port that it is at."""
    listening = listen(LOOPBACK, 0)
    Echo.door = Acceptor(listening, Echo, limits, header_seconds)
    try:
        yield listening.getsockname()[1]
    finally:
        await Echo.door.close()


class Caller:
    """Somebody at the door."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def at(cls, port: int) -> "Caller":
        return cls(*await asyncio.open_connection(LOOPBACK, port))

    async def says(self, text: bytes) -> bytes:
        self._writer.write(text)
        return await self._reader.read(100)

    async def is_put_out(self) -> bool:
        try:
            return await self._reader.read(100) == b""
        except ConnectionResetError:
            return True

    async def leave(self) -> None:
        self._writer.close()
        await asyncio.wait({asyncio.ensure_future(self._writer.wait_closed())})


def play(scene: Coroutine[None, None, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, DEADLINE))


def test_a_stranger_who_says_nothing_is_put_out_after_a_while() -> None:
    async def scene() -> None:
        async with door(ConnectionLimits(), header_seconds=0.05) as port:
            caller = await Caller.at(port)
            assert await caller.is_put_out()
            await caller.leave()

    play(scene())


def test_the_next_stranger_puts_out_the_one_that_has_waited_longest_and_no_guest() -> None:
    async def scene() -> None:
        async with door(ConnectionLimits(strangers=2, guests=2)) as port:
            guest = await Caller.at(port)
            assert await guest.says(b"token") == b"token"
            strangers = [await Caller.at(port) for _ in range(2)]
            for stranger in strangers:
                assert await stranger.says(b"hello") == b"hello"
            late = await Caller.at(port)
            assert await late.says(b"hello") == b"hello"
            assert await strangers[0].is_put_out()
            assert await strangers[1].says(b"still") == b"still"
            assert await guest.says(b"token") == b"token"
            for caller in (guest, late, *strangers):
                await caller.leave()

    play(scene())


def test_there_are_so_many_guests_and_a_place_is_free_again_when_one_leaves() -> None:
    async def scene() -> None:
        async with door(ConnectionLimits(strangers=2, guests=1)) as port:
            first, second = await Caller.at(port), await Caller.at(port)
            assert await first.says(b"token") == b"token"
            assert await second.says(b"token") == b"full"
            await first.leave()
            while await second.says(b"token") != b"token":  # the server hears of it a moment later
                await asyncio.sleep(0)
            await second.leave()

    play(scene())


def test_a_door_that_closes_puts_out_the_strangers() -> None:
    async def scene() -> None:
        async with door(ConnectionLimits()) as port:
            caller = await Caller.at(port)
            assert await caller.says(b"hello") == b"hello"
        assert await caller.is_put_out()
        await caller.leave()

    play(scene())


EXHAUSTED = """
import asyncio, logging, os, resource, socket
from ikigai_actors.http_server.acceptor import Acceptor, ConnectionLimits, listen
logging.basicConfig(format="%(message)s")
async def main():
    listening = listen("127.0.0.1", 0)
    door = Acceptor(listening, asyncio.Protocol, ConnectionLimits(1000, 1000))
    await asyncio.sleep(0)
    print(listening.getsockname()[1], flush=True)
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    before = os.times()
    await asyncio.get_running_loop().run_in_executor(None, input)
    after = os.times()
    print(after.user + after.system - before.user - before.system < 1.0, flush=True)
    await door.close()
asyncio.run(main())
"""
"""A door that is wider than the process has descriptors for."""


def test_where_no_descriptor_is_left_that_is_said_once_and_the_door_stays_open() -> None:
    command = [sys.executable, "-c", EXHAUSTED]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        callers = [socket.create_connection((LOOPBACK, port), PATIENCE) for _ in range(60)]
        with contextlib.suppress(ConnectionResetError):
            assert callers[0].recv(1) == b""  # put out for another
        said, trouble = process.communicate("\n", PATIENCE)
        for caller in callers:
            caller.close()
    assert said == "True\n"
    assert trouble == "Could not accept a connection (Too many open files); closing one that has not shown the token\n"


def test_a_process_keeps_most_of_its_descriptors_for_itself() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    try:
        room = ConnectionLimits.of_process()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert room == ConnectionLimits(32, 32)


@pytest.mark.thorough("a program and hundreds of sockets")
def test_a_page_is_served_to_who_has_the_token_while_silent_sockets_crowd_the_door(tmp_path: Path) -> None:
    async def scene(browser: aiohttp.ClientSession, link: str, base: str) -> None:
        port = int(base.rpartition(":")[2])
        crowd = [await asyncio.open_connection(LOOPBACK, port) for _ in range(150)]
        for _, writer in crowd:
            writer.write(b"GET / HT")
        async with browser.get(link) as answer:
            assert answer.status == 200
        async with browser.ws_connect(f"{base}/ws?width=100&height=30", origin=base) as page:
            more = [await asyncio.open_connection(LOOPBACK, port) for _ in range(150)]
            drawn = ""
            while re.search("attached to pid", drawn) is None:
                chunk = await page.receive()
                drawn += chunk.data.decode() if isinstance(chunk.data, bytes) else ""  # else the title
        for _, writer in (*crowd, *more):
            writer.close()

    with served(tmp_path) as program:
        visit(program, scene)
        assert "Traceback" not in program.said
        assert "out of system resource" not in program.said


def test_a_cookie_that_is_not_utf_8_and_rubbish_are_refused_and_the_connection_is_closed(tmp_path: Path) -> None:
    def asked(port: int, request: bytes) -> bytes:
        with socket.create_connection((LOOPBACK, port), PATIENCE) as caller:
            caller.sendall(request.replace(b"PORT", str(port).encode()))
            answer = b""
            while more := caller.recv(10_000):
                answer += more
        return answer

    header = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n"
    requests = {
        header + b"Cookie: ikigai_PORT=\xff\xfe\xed\xa0\x80\r\n\r\n": b" 401 ",
        header + b"Cookie: ikigai_PORT=\xc3\xbc\r\n\r\n": b" 401 ",
        b"GET /?token=%ff%ed%a0%80 HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n": b" 401 ",
        b"rubbish\r\n\r\n": b" 400 ",
    }
    with served(tmp_path) as program:
        port = int(program.expect(r"127\.0\.0\.1:(\d+)").group(1))
        for request, status in requests.items():
            assert status in asked(port, request).splitlines()[0] + b" "
        assert "Traceback" not in program.said
