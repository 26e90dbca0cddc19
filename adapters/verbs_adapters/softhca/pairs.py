"""The verbs of queue pairs: their life and their moves between states.

Theory of operation
-------------------
A queue pair uses its protection domain and its completion queues, which cannot go before it.  A move that
:mod:`~verbs_adapters.softhca.qp` does not list is refused and changes nothing.
"""

from __future__ import annotations

from typing import Any

from verbs_adapters.softhca.arguments import Refused, access_bits
from verbs_adapters.softhca.objects import Objects, find
from verbs_adapters.softhca.qp import MOVES, STATES, QueuePair
from verbs_adapters.softhca.region import ACCESS_BITS

Args = dict[str, Any]
QPN_STRIDE = 7
ILLEGAL_MOVES = frozenset({("INIT", "RTS"), ("RTR", "INIT"), ("ERR", "INIT")})
SWAPPED = {"REMOTE_WRITE": "REMOTE_READ", "REMOTE_READ": "REMOTE_WRITE"}
assert set(SWAPPED) < set(ACCESS_BITS)


class Pairs:
    """What can be done with queue pairs."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._settings = objects.settings
        self._faults = objects.faults
        self._engine = objects.engine
        self._next_qpn = objects.first_qpn

    def create_qp(self, args: Args) -> Args:
        pd = find(self._objects.pds, args["pd"])
        cqs = (find(self._objects.cqs, args["send_cq"]), find(self._objects.cqs, args["recv_cq"]))
        slack, limit = self._settings.qp_slack, self._settings.max_qp_wr
        if args["max_send_wr"] > limit or args["max_recv_wr"] > limit:
            if "failed-create-leaks-cq-reference" in self._faults:
                cqs[0].users += 1
            raise Refused
        self._objects.room(self._objects.qps)
        sizes = (args["max_send_wr"] + slack, args["max_recv_wr"] + slack)
        qp = QueuePair(self._new_qpn(), pd, cqs, sizes)
        pd.users += 1
        for cq in cqs:
            cq.users += 1
        if "new-qp-starts-in-init" in self._faults:
            qp.state = "INIT"
        handle = self._objects.enter(self._objects.qps, qp)
        return {
            "qp": handle,
            "qp_num": qp.num,
            "max_send_wr_actual": sizes[0],
            "max_recv_wr_actual": sizes[1],
        }

    def _new_qpn(self) -> int:
        number = self._next_qpn
        self._next_qpn = 2 + (number - 2 + QPN_STRIDE) % ((1 << 24) - 2)
        return number

    def destroy_qp(self, args: Args) -> None:
        qp = find(self._objects.qps, args["qp"])
        del self._objects.qps[args["qp"]]
        self._engine.wake(qp.peer)
        self._engine.stream.end(qp, qp.state)
        qp.clear()
        qp.state = "GONE"
        qp.pd.users -= 1
        for cq in (qp.send_cq, qp.recv_cq):
            cq.users -= 1
        self._purge(qp)

    def _purge(self, qp: QueuePair) -> None:
        everyone = "destroy-purges-whole-cq" in self._faults
        if self._settings.purge_cqes or everyone:
            qp.send_cq.purge(None if everyone else qp)
            qp.recv_cq.purge(None if everyone else qp)

    def query_qp(self, args: Args) -> Args:
        return {"state": find(self._objects.qps, args["qp"]).state}

    def modify_qp(self, args: Args) -> None:
        qp = find(self._objects.qps, args["qp"])
        state = args["state"]
        if state not in STATES:
            if "unknown-state-is-error" not in self._faults:
                raise Refused
            state = "ERR"
        if not self._may_move(qp, state):
            if "refused-modify-takes-access" in self._faults:
                qp.access = access_bits(args.get("access", ()))
            raise Refused
        getattr(self, f"_to_{state.lower()}")(qp, args)
        self._engine.wake_pair(qp)

    def _may_move(self, qp: QueuePair, state: str) -> bool:
        move = (qp.state, state)
        if move in ILLEGAL_MOVES and "illegal-moves-accepted" in self._faults:
            return True
        if move == ("RTS", "RTS") and "rts-to-rts-refused" in self._faults:
            return False
        if state == "INIT" and qp.reset_twice and "reset-twice-breaks-init" in self._faults:
            return False
        return move in MOVES

    def _to_reset(self, qp: QueuePair, _args: Args) -> None:
        qp.reset_twice = qp.state == "RESET"
        self._engine.wake(qp.peer)  # whatever waits there finds nobody now
        self._engine.stream.end(qp, qp.state)
        qp.clear()
        self._purge(qp)

    def _to_init(self, qp: QueuePair, args: Args) -> None:
        flags = args.get("access", ())
        if "qp-rights-swapped" in self._faults:
            flags = [SWAPPED.get(flag, flag) for flag in flags]
        qp.access = access_bits(flags)
        qp.state = "INIT"

    def _to_rtr(self, qp: QueuePair, args: Args) -> None:
        qp.peer = find(self._objects.qps, args.get("peer", 0))
        if "init-receives-lost" in self._faults:
            qp.receives.clear()
        qp.state = "RTR"

    def _to_rts(self, qp: QueuePair, _args: Args) -> None:
        qp.state = "RTS"

    def _to_err(self, qp: QueuePair, _args: Args) -> None:
        self._engine.completer.enter_error(qp)
