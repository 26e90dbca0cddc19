"""The verbs of memory windows, and what their bindings take with them when they are posted.

Theory of operation
-------------------
``alloc_mw`` and ``dealloc_mw`` make and free a window; freeing unbinds it.  A binding is a work request: ``bind_mw``
posts it for a window of type 1, ``post_send`` of BIND_MW for one of type 2.  Both freeze the same things
(:class:`~verbs_adapters.softhca.mw.Binding`), among them the keys of window and region as the handles hold them now.

What the library looks at comes first and is answered at once (``ibv_bind_mw`` of rdma-core): a window of the other
type, an address or a length without a region, a region of another protection domain than the window's.  Everything
else is found when the binding executes; with the option ``malformed_bind=post`` what can never work is refused before.
"""

from __future__ import annotations

from typing import Any

from verbs_adapters.softhca.arguments import Refused, access_bits, narrow
from verbs_adapters.softhca.mw import TYPE_1, TYPE_2, Binding, Window
from verbs_adapters.softhca.objects import Objects, find
from verbs_adapters.softhca.region import ZERO_BASED, Region

Args = dict[str, Any]
TYPES = {TYPE_1: ("MEM_WINDOW",), TYPE_2: ("MEM_WINDOW_TYPE_2A", "MEM_WINDOW_TYPE_2B")}
"""Kinds of windows, each with the features of which it takes one."""


class WindowVerbs:
    """The verbs that make and free windows, and the making of bindings."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._malformed_refused = objects.settings.malformed_bind == "post"
        self._only_type_2 = objects.settings.post_bind_type_1 == "refuse"
        self._types = {kind for kind, features in TYPES.items() if not objects.offer.declared.isdisjoint(features)}

    def alloc_mw(self, args: Args) -> Args:
        objects = self._objects
        pd = find(objects.pds, args["pd"])
        if args["type"] not in self._types:
            raise Refused
        objects.room(objects.windows)
        window = Window(pd, objects.keys.new_key(), args["type"])
        objects.keys.enter_window(window)
        pd.users += 1
        return {"mw": objects.enter(objects.windows, window), "rkey": window.held}

    def dealloc_mw(self, args: Args) -> None:
        window, faults = find(self._objects.windows, args["mw"]), self._objects.faults
        if "window-count-dropped-twice" in faults and window.last is not None:
            window.last.windows -= 1
        window.free(self._objects.keys)
        del self._objects.windows[args["mw"]]

    # -- bindings ----------------------------------------------------------------------------------
    def type_1(self, args: Args) -> Binding:
        """What ``bind_mw`` is to post."""
        window = self._mended(args)
        region = self._region(args)
        if window.type != TYPE_1 or (region is None and (args.get("addr") or args.get("length"))):
            raise Refused
        if region is not None and region.pd is not window.pd:
            raise Refused("EPERM")
        return self._binding(window, region, window.held + 1, args)

    def posted(self, args: Args) -> Binding:
        """What a BIND_MW is to be: of a window of type 2, but most devices take one of type 1 too."""
        window = self._mended(args)
        if window.type != TYPE_2 and self._only_type_2:
            raise Refused
        return self._binding(window, self._region(args), narrow(args["rkey"]), args)._replace(by_work_request=True)

    def _mended(self, args: Args) -> Window:
        window = find(self._objects.windows, args["mw"])
        if "key" in args:
            window.held = narrow(args["key"])
        return window

    def _region(self, args: Args) -> Region | None:
        return find(self._objects.regions, args["mr"]) if args.get("mr") else None

    def _binding(self, window: Window, region: Region | None, key: int, args: Args) -> Binding:
        access, length = access_bits(args.get("access", ()), self._objects.offer.rights), args.get("length", 0)
        if self._malformed_refused:
            zero_based = access & ZERO_BASED and window.type == TYPE_1
            of_zero_based = region is not None and region.access & ZERO_BASED
            if zero_based or of_zero_based or (not length and window.type == TYPE_2):
                raise Refused
        return Binding(
            window,
            held=window.held,
            key=window.index << 8 | key & 0xFF,
            lkey=0 if region is None else region.key,
            addr=args.get("addr", 0),
            length=length,
            access=access,
        )
