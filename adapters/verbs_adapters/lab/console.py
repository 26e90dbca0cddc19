"""Reads a guest's console and notices when its kernel is in trouble.

Theory of operation
-------------------
The kernel reports what is wrong with it in a few well-known forms: a panic, an oops, a failed assertion (BUG, WARNING),
a sanitizer's or lock checker's finding, a task or a processor that is stuck.  Each begins with a line of its own.  From
that line on the console is evidence.  What a driver merely logs is not.
"""

from __future__ import annotations

import re

KEPT = 1 << 16
"""The last bytes of the console that are kept."""

_STAMP = r"^(?:\[ *\d+\.\d+\] )?"
_TROUBLE = re.compile(
    _STAMP + r"(?P<line>"
    r"Kernel panic - not syncing.*|BUG: .*|kernel BUG at .*|Oops: .*|general protection fault.*|Unable to handle .*|"
    r"Internal error: .*|WARNING: (?!.*linker).*|UBSAN: .*|refcount_t: .*|list_(?:add|del) corruption.*|"
    r"INFO: (?:task .* blocked|rcu_|possible).*|rcu: INFO: .*stall.*|watchdog: BUG: .*|=+ BUG: .*|Out of memory: .*|"
    r"unregister_netdevice: waiting.*|slab-.*corrupt.*"
    r")$",
    re.MULTILINE,
)
_NOT_STARTED = re.compile(r"^(?P<line>[^\n]+)\n+ ?-- System halted", re.MULTILINE)
"""What the code says that unpacks the kernel's image, when it cannot."""

_SET_UP = re.compile(r"^verbspec: (?P<line>.*)$", re.MULTILINE)


class Console:
    """What a guest has printed."""

    def __init__(self) -> None:
        self._text = ""
        self._trouble = ""

    def feed(self, data: bytes) -> None:
        """Take what was printed."""
        self._text += data.decode("utf-8", "replace").replace("\r", "")
        if not self._trouble:
            found = _TROUBLE.search(self._text, 0, self._text.rfind("\n") + 1)
            if found:
                self._trouble = found["line"].strip()
                self._text = self._text[max(0, found.start() - 400) :]
        if self._trouble:
            self._text = self._text[:KEPT]  # what comes first tells the cause
        else:
            self._text = self._text[-KEPT:]

    @property
    def trouble(self) -> str:
        """The line with which the kernel reported trouble; empty if it did not."""
        return self._trouble

    @property
    def complaint(self) -> str:
        """Why the guest does not start: what its own first program or the kernel's image says; empty if they do not."""
        found = _SET_UP.search(self._text)
        if found:
            return found["line"].strip()
        found = _NOT_STARTED.search(self._text)
        return f"the kernel's image does not unpack itself: {found['line'].strip()}" if found else ""

    @property
    def text(self) -> str:
        """What was printed: its end, or if there was trouble what came from there on."""
        return self._text
