"""The verbs of NetworkDirect that other APIs do not have: region objects, windows, connections.

Theory of operation
-------------------
A region object holds at most one registration (``IND2MemoryRegion``).  Its tokens are there when ``Register`` returns,
and open nothing before the registration is done.  Remote write brings local write with it, as the flags do
(``nddef.h``), and every region can have windows.

A window is of type 2 here (``IND2MemoryWindow``, implementation notes); each binding has the next low byte as its
token's.  What the call can see is refused by the call: a queue pair that was never connected, and a window to write
through into a region that is not writable.

A queue pair takes receives from the start and sends when it is connected.  Disconnecting flushes both sides, each
after what has come through; flushing flushes this side alone (``IND2QueuePair::Flush``, ``IND2Connector``).  A
connection that has ended is not made again.
"""

from __future__ import annotations

from typing import Any

from verbs_adapters.softhca.arguments import Refused, access_bits
from verbs_adapters.softhca.mw import TYPE_2, Binding, Window
from verbs_adapters.softhca.objects import Holder, Objects, find
from verbs_adapters.softhca.overlapped import Later, answered
from verbs_adapters.softhca.pairs import Pairs
from verbs_adapters.softhca.posting import Posting
from verbs_adapters.softhca.qp import QueuePair
from verbs_adapters.softhca.queue import Wqe
from verbs_adapters.softhca.region import LOCAL_WRITE, REMOTE_WRITE
from verbs_adapters.softhca.regions import Regions

Args = dict[str, Any]
UNCONNECTED = "INIT"


class RegionObjects:
    """Region objects, and the registrations that they hold."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._regions = Regions(objects)
        self._later = Later(objects)

    def create_memory_region(self, args: Args) -> Args:
        pd = find(self._objects.pds, args["pd"])
        self._objects.room(self._objects.holders)
        return {"region": self._objects.enter(self._objects.holders, Holder(pd))}

    def release_memory_region(self, args: Args) -> None:
        holder = find(self._objects.holders, args["region"])
        if holder.taken:
            raise Refused("EBUSY")
        del self._objects.holders[args["region"]]

    def register_memory_region(self, args: Args) -> Args:
        holder = find(self._objects.holders, args["region"])
        if holder.taken:
            raise Refused("EINVAL", "ND_INVALID_DEVICE_STATE")
        request, keys = self._regions.register_later(holder.pd, args, self._later)
        holder.request = request
        return {**answered(request), **keys}

    def deregister_memory_region(self, args: Args) -> Args:
        holder = find(self._objects.holders, args["region"])
        if holder.request is None or holder.request.region is None:
            raise Refused
        request = self._regions.deregister_later(holder.request.region, self._later)
        holder.request = None
        return answered(request)


class WindowObjects:
    """Windows of NetworkDirect."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._posting = Posting(objects)

    def create_memory_window(self, args: Args) -> Args:
        objects = self._objects
        pd = find(objects.pds, args["pd"])
        objects.room(objects.windows)
        window = Window(pd, objects.keys.new_key(), TYPE_2)
        objects.keys.enter_window(window)
        pd.users += 1
        return {"mw": objects.enter(objects.windows, window)}

    def release_memory_window(self, args: Args) -> None:
        find(self._objects.windows, args["mw"]).free(self._objects.keys)
        del self._objects.windows[args["mw"]]

    def bind_memory_window(self, args: Args) -> Args:
        qp, window = self._connected(args), find(self._objects.windows, args["mw"])
        region = find(self._objects.regions, args["mr"])
        access = access_bits(args["access"], self._objects.offer.rights)
        if access & REMOTE_WRITE and not region.access & LOCAL_WRITE:
            raise Refused("EFAULT")
        key = window.held & ~0xFF | window.held + 1 & 0xFF
        wqe = self._wqe(args, "BIND_MW")
        wqe.binding = Binding(window, window.held, key, region.key, args["addr"], args["length"], access)
        self._posting.submit(qp, wqe)
        return {"rkey": key}

    def invalidate_memory_window(self, args: Args) -> None:
        qp, window = self._connected(args), find(self._objects.windows, args["mw"])
        wqe = self._wqe(args, "LOCAL_INV")
        wqe.invalidate_rkey = window.held
        self._posting.submit(qp, wqe)

    def _connected(self, args: Args) -> QueuePair:
        qp = find(self._objects.qps, args["qp"])
        if qp.state == UNCONNECTED:
            raise Refused("ENOTCONN")
        return qp

    def _wqe(self, args: Args, opcode: str) -> Wqe:
        return Wqe(args["wr_id"], opcode, signaled=args["signaled"], fence=args["fence"])


class Connections:
    """Connecting and disconnecting queue pairs."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._pairs = Pairs(objects)

    def connect_qp(self, args: Args) -> None:
        ends = {args["qp"]: args["peer"], args["peer"]: args["qp"]}
        states = {find(self._objects.qps, end).state for end in ends}
        if "RTS" in states:
            raise Refused("EISCONN")
        if states != {UNCONNECTED} or len(ends) == 1:
            raise Refused
        for state in ("RTR", "RTS"):
            for end, peer in ends.items():
                self._pairs.modify_qp({"qp": end, "state": state, "peer": peer})

    def disconnect_qp(self, args: Args) -> None:
        qp = find(self._objects.qps, args["qp"])
        if qp.state == UNCONNECTED:
            raise Refused("ENOTCONN")
        peer = qp.peer
        self._objects.engine.completer.enter_error(qp)
        if peer is not None and peer.state == "RTS":
            peer.cut_off = True
            self._objects.engine.wake(peer)

    def flush_qp(self, args: Args) -> None:
        self._objects.engine.completer.enter_error(find(self._objects.qps, args["qp"]))
