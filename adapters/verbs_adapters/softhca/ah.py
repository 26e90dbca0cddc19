"""Address handles: where a datagram is to go.

Theory of operation
-------------------
An address handle holds the way to a port.  There is one port here, so it either leads there, or nowhere; whether
anything answers is not looked at when it is made (``ibv_create_ah(3)``).  It belongs to its protection domain, which
cannot go before it.  A work request takes the address with it when it is posted.
"""

from __future__ import annotations

from typing import Any

from verbs_adapters.softhca.arguments import Refused
from verbs_adapters.softhca.attributes import GID, GIDS, LID, PORTS
from verbs_adapters.softhca.objects import Objects, find
from verbs_adapters.softhca.region import AddressHandle

Args = dict[str, Any]
HOPS = 64


class Ahs:
    """The verbs of address handles."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._settings = objects.settings

    def create_ah(self, args: Args) -> Args:
        pd = find(self._objects.pds, args["pd"])
        if args.get("peer"):
            find(self._objects.qps, args["peer"])
        is_global = args.get("is_global", self._settings.transport == "roce")
        fits = 1 <= args.get("port_num", 1) <= PORTS and args.get("sgid_index", 0) < GIDS
        dgid, dlid, sl, hops = (
            *(args.get("dgid", GID), args.get("dlid", LID)),
            *(args.get("sl", 0), args.get("hop_limit", HOPS)),
        )
        if not fits or (self._settings.transport == "roce" and not is_global):
            raise Refused  # rdma_check_ah_attr
        if len(dgid) != len(GID) or dlid >> 16 or sl >> 4 or hops >> 8:
            raise Refused
        self._objects.room(self._objects.ahs)
        reaches = dgid == GID if is_global else dlid == LID
        ah = AddressHandle(pd, reaches=reaches, is_global=is_global, dgid=dgid, sl=sl, hop_limit=hops)
        pd.users += 1
        return {"ah": self._objects.enter(self._objects.ahs, ah)}

    def destroy_ah(self, args: Args) -> None:
        find(self._objects.ahs, args["ah"]).pd.users -= 1
        del self._objects.ahs[args["ah"]]
