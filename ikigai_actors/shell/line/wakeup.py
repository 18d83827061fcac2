"""The pipe that ends a wait of the main thread."""

import selectors
import signal
import socket


class WakeupPipe:
    """Wakes the main thread from a wait. Any thread may call `set`; signals wake it too."""

    def __init__(self) -> None:
        self._here, self._there = socket.socketpair()
        self._here.setblocking(False)
        self._there.setblocking(False)
        # Python writes a byte for each signal, so one that comes just before `wait` ends it too.
        self._before = signal.set_wakeup_fd(self._there.fileno(), warn_on_full_buffer=False)

    def set(self) -> None:
        """End the wait in progress, or the next one."""
        try:
            self._there.send(b"\0")
        except (BlockingIOError, OSError):  # full: the wait ends in any case; closed: nobody waits
            return

    def wait(self, descriptor: int | None = None) -> bool:
        """Wait until `set` is called, a signal comes, or the descriptor can be read; return whether it can be read."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._here, selectors.EVENT_READ)
            if descriptor is not None:
                selector.register(descriptor, selectors.EVENT_READ)
            ready = {key.fileobj for key, _ in selector.select()}
        if self._here in ready:
            self._here.recv(65536)
        return descriptor in ready

    def close(self) -> None:
        """Close the sockets, and restore the former wakeup descriptor of signals."""
        signal.set_wakeup_fd(self._before)
        self._here.close()
        self._there.close()
