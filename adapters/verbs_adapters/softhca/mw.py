"""Memory windows: parts of a region, opened to peers with rights of their own.

Theory of operation
-------------------
A window has an index of the key table like a region, and so a key.  Binding gives it a part of a region, rights, and
a new low byte of the key; all of it takes effect when the work request executes (:class:`Windows`).  The *handle*
keeps the key of the binding that was posted last, as the library does (``ibv_bind_mw(3)``); a binding carries what
the handle held before, and fails if that is not the key in force then: a consumer who did not mend the handle after a
failed binding learns of it (``rxe_bind_mw``).

A window of type 1 is bound anew whenever the consumer likes, and by a binding of no bytes it is unbound.  It serves
every queue pair of its protection domain.  One of type 2 must be invalidated before it is bound again, and belongs to
the queue pair through which it was bound, in that life of it (RESET ends a life).

What an access is checked against is the window alone: its bounds, its rights, its key; the region's rights were
looked at when it was bound (draft-hilland-rddp-verbs 7.10.6.2).  The region gives the translation, so it must still
be there.

A region counts the windows that are bound to it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from verbs_adapters.softhca.region import (
    ADDRESS_SPACE,
    LOCAL_WRITE,
    MW_BIND,
    REMOTE,
    REMOTE_ATOMIC,
    REMOTE_WRITE,
    ZERO_BASED,
    ProtectionDomain,
    Region,
)
from verbs_adapters.softhca.registrar import OperationError

if TYPE_CHECKING:
    from verbs_adapters.softhca.keys import KeyTable
    from verbs_adapters.softhca.options import Settings
    from verbs_adapters.softhca.qp import QueuePair

TYPE_1, TYPE_2 = "TYPE_1", "TYPE_2"


class BindError(OperationError):
    """A binding that cannot be done; it has a status of its own."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, "MW_BIND_ERR")


class Window:
    """One window: the key that its handle holds, and the binding that is in force."""

    __slots__ = (
        "access",
        "addr",
        "alive",
        "held",
        "hw_key",
        "index",
        "last",
        "length",
        "life",
        "pd",
        "qp",
        "region",
        "type",
    )

    def __init__(self, pd: ProtectionDomain, key: int, kind: str) -> None:
        self.pd = pd
        self.type = kind
        self.index = key >> 8
        self.alive = True
        self.held = key  # of the handle
        self.hw_key = key
        self.region: Region | None = None  # none: it is not bound
        self.last: Region | None = None  # that it was bound to before; only a fault asks
        self.addr = 0
        self.length = 0
        self.access = 0
        self.qp: QueuePair | None = None  # type 2: through which it was bound, and in which life of it
        self.life = 0

    def serves(self, qp: QueuePair) -> bool:
        """Whether peers of this queue pair may use the window."""
        if self.type == TYPE_1:
            return self.pd is qp.pd
        return self.qp is qp and self.life == qp.life

    def free(self, keys: KeyTable) -> None:
        """The window is gone, and so is its binding."""
        self.unbind()
        self.alive = False
        keys.remove_window(self)
        self.pd.users -= 1

    def unbind(self) -> None:
        """To where it was after allocation, but for the key."""
        if self.region is not None:
            self.region.windows -= 1
            self.last = self.region
        if self.qp is not None and self.life == self.qp.life:
            self.qp.windows -= 1
        self.region = self.qp = None


class Binding(NamedTuple):
    """What a posted binding says, all of it frozen when it was posted."""

    window: Window
    held: int  # what the handle held before
    key: int
    lkey: int  # of the region; 0 for none
    addr: int
    length: int
    access: int
    by_work_request: bool = False  # BIND_MW, which is for windows of type 2

    def hold(self) -> None:
        """The binding was posted: the handle holds its key from now on."""
        self.window.held = self.key


class Windows:
    """Executes bindings and invalidations of windows."""

    def __init__(self, keys: KeyTable, settings: Settings) -> None:
        self._keys = keys
        self._settings = settings
        self._faults = settings.fault
        self._idle_refused = settings.idle_window_inv == "refuse" or settings.api == "networkdirect"  # IND2QueuePair.md
        # IND2QueuePair.md, Bind: there is no handle that the consumer could mend
        self._stale_refused = settings.stale_handle == "refuse" and settings.api != "networkdirect"
        # draft-hilland-rddp-verbs-00 7.10.2: at least one right; elsewhere rdma-core man ibv_bind_mw(3): they may be 0
        self._rights_asked = settings.bind_no_rights == "refuse" and settings.transport == "iwarp"

    # -- binding -----------------------------------------------------------------------------------
    def bind(self, qp: QueuePair, binding: Binding) -> None:
        """Do what a binding says, or raise and change nothing."""
        window = binding.window
        self._check_window(qp, binding)
        region = self._region(qp, binding) if binding.length else None
        window.unbind()
        if "binding-visible-late" in self._faults:
            qp.late.append(partial(setattr, window, "hw_key", binding.key))
        else:
            window.hw_key = binding.key
        window.access = binding.access
        window.addr, window.length = binding.addr, binding.length
        if region is None:
            return
        region.windows += 1
        window.region = region
        if window.type == TYPE_2:
            window.qp, window.life = qp, qp.life
            qp.windows += 1

    def _check_window(self, qp: QueuePair, binding: Binding) -> None:
        window = binding.window
        if not window.alive:
            raise BindError("the window was freed")
        if binding.held != window.hw_key and self._stale_refused:
            raise BindError(f"the handle held {binding.held:#010x}; the key in force is {window.hw_key:#010x}")
        if window.pd is not qp.pd:
            raise BindError("window and queue pair are in different protection domains")
        if window.type == TYPE_1:
            if binding.by_work_request and self._settings.post_bind_type_1 == "fail":
                raise BindError("a BIND_MW of a window of type 1")
            if binding.access & ZERO_BASED and "zero-based-type-1-accepted" not in self._faults:
                raise BindError("a window of type 1 cannot be zero-based")
        elif window.region is not None and "type-2-moves-silently" not in self._faults:
            raise BindError("a window of type 2 that is bound must be invalidated first")
        elif not binding.length:
            raise BindError("a binding of no bytes, which does not unbind a window of type 2")

    def _region(self, qp: QueuePair, binding: Binding) -> Region:
        region = self._keys.find(binding.lkey)
        if region is None or not region.valid or region.hw_key != binding.lkey:
            raise BindError(f"key {binding.lkey:#010x} names no region")
        if region.pd is not qp.pd:
            raise BindError("region and queue pair are in different protection domains")
        if region.access & ZERO_BASED:
            raise BindError("a zero-based region can have no windows")
        if not region.access & MW_BIND:
            raise BindError("the region was registered without MW_BIND")
        asked = binding.window.access if "bind-checks-old-rights" in self._faults else binding.access
        if asked & (REMOTE_WRITE | REMOTE_ATOMIC) and not region.access & LOCAL_WRITE:
            raise BindError("a window to write through needs LOCAL_WRITE of its region")
        if not binding.access & REMOTE and self._rights_asked:
            raise BindError("a window that grants nothing")
        mapping = region.mapping
        assert mapping is not None
        end = binding.addr + binding.length
        if "bind-range-wraps" in self._faults:
            end %= ADDRESS_SPACE
        if not (mapping.iova <= binding.addr and end <= mapping.iova + mapping.length):
            raise BindError(f"{binding.length} bytes at {binding.addr:#x} reach outside the region")
        return region

    # -- invalidation ------------------------------------------------------------------------------
    def invalidate(self, qp: QueuePair, key: int) -> None:
        """Do what a LOCAL_INV of a window says."""
        self._named(qp, key).unbind()

    def remote_invalidate(self, qp: QueuePair, key: int) -> None:
        """Do what an arriving SEND_WITH_INV of a window says."""
        window = self._named(qp, key)
        closed = not window.access & REMOTE and window.region is not None
        if (closed or not qp.access & REMOTE) and self._settings.closed_window_inv == "refuse":
            raise OperationError("window or queue pair allows nothing remote")
        window.unbind()

    def _named(self, qp: QueuePair, key: int) -> Window:
        """The window that an invalidation names, if it may be invalidated through this queue pair."""
        window = self._keys.find_window(key)
        if window is None or (window.type == TYPE_1 and "type-1-windows-invalidated" not in self._faults):
            raise OperationError(f"key {key:#010x} names no window of type 2")
        if key != window.hw_key:
            raise OperationError(f"key {key:#010x}: the key in force is {window.hw_key:#010x}")
        if window.region is not None:
            if not window.serves(qp) and "window-inv-ignores-queue-pair" not in self._faults:
                raise OperationError("the window is bound through another queue pair")
        elif window.pd is not qp.pd:
            raise OperationError("window and queue pair are in different protection domains")
        elif self._idle_refused:
            raise OperationError("the window is not bound")
        return window
