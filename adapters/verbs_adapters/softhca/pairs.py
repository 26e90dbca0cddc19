"""The verbs of queue pairs: their life and their moves between states.

Theory of operation
-------------------
A queue pair uses its protection domain, its completion queues and its shared receive queue, which cannot go before it.

``modify_qp`` without a mask sets what the step requires, as the adapter of a real device would.  With a mask it sets
exactly what the mask names: the move must be in :mod:`~verbs_adapters.softhca.transitions` with these attributes, and
every value must fit; only then anything changes.  CUR_STATE has to say the truth.  While a queue pair in SQD is being
drained, it can go to RESET and ERR only (rxe lets it go to ERR alone).
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add, gt
from typing import Any

from verbs_adapters.softhca.arguments import Refused, access_bits
from verbs_adapters.softhca.attributes import OF_BIT, chosen
from verbs_adapters.softhca.capabilities import NETWORKDIRECT
from verbs_adapters.softhca.objects import Objects, find
from verbs_adapters.softhca.qp import USUAL_SGES, QueuePair, Sizes
from verbs_adapters.softhca.region import ACCESS_BITS
from verbs_adapters.softhca.transitions import STATES, STEPS, Step

Args = dict[str, Any]
QPN_STRIDE = 7
ILLEGAL_MOVES = frozenset({("INIT", "RTS"), ("RTR", "INIT"), ("ERR", "INIT")})
SWAPPED = {"REMOTE_WRITE": "REMOTE_READ", "REMOTE_READ": "REMOTE_WRITE"}
assert set(SWAPPED) < set(ACCESS_BITS)
OPTIONAL_STATES = frozenset({"SQD", "SQE"})
TYPE_FEATURE = {"RC": "", "UC": "UC", "UD": "UD", "XRC_SEND": "XRC", "XRC_RECV": "XRC", "RAW_PACKET": "RAW_PACKET"}
"""By type of queue pair, the feature that it is of."""
PEERED = frozenset({"RC", "UC", "XRC_SEND", "XRC_RECV"})
RIGHTS = frozenset({"ACCESS_FLAGS"})
LEAVING = frozenset({"RESET", "ERR"})
DROPPED = {
    "XRC_SEND": frozenset({"MAX_DEST_RD_ATOMIC", "MIN_RNR_TIMER"}),
    "XRC_RECV": frozenset({"MAX_QP_RD_ATOMIC", "RETRY_CNT", "RNR_RETRY"}),
}
"""What uverbs takes out of masks (``modify_qp_mask``)."""
LIMITS: dict[str, Callable[[QueuePair], int]] = {
    "max_send_wr": lambda qp: qp.sq_size,
    "max_recv_wr": lambda qp: qp.rq_size,
    "max_send_sge": lambda qp: qp.send_sges,
    "max_recv_sge": lambda qp: qp.recv_sges,
    "max_inline_data": lambda qp: qp.inline_size,
}
"""What CAP names; nothing sets it after creation."""


class Pairs:
    """What can be done with queue pairs."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._settings = objects.settings
        self._faults = objects.faults
        self._engine = objects.engine
        self._next_qpn = objects.first_qpn
        self._whole = "QP_ATTRIBUTES" in objects.offer.declared
        its = self._settings
        self._windows_hold = (
            its.destroy_bound == "refuse"
            and its.api != NETWORKDIRECT  # releasing an object cannot fail
            and (its.transport == "iwarp" or "MEM_WINDOW_TYPE_2A" in objects.offer.declared)  # o10-2.2.5 on type 2B
        )

    # -- life --------------------------------------------------------------------------------------
    def create_qp(self, args: Args) -> Args:
        pd = find(self._objects.pds, args["pd"])
        cqs = (find(self._objects.cqs, args["send_cq"]), find(self._objects.cqs, args["recv_cq"]))
        srq = find(self._objects.srqs, args["srq"]) if args.get("srq") else None
        kind = self._type(args.get("qp_type", "RC"))
        try:
            sizes = self._sizes(args, with_receives=srq is None)
        except Refused:
            if "failed-create-leaks-cq-reference" in self._faults:
                cqs[0].users += 1
            raise
        self._objects.room(self._objects.qps)
        if "srq-dropped-at-create" in self._faults:
            srq = None
        qp = QueuePair(self._new_qpn(), pd, cqs, sizes, type_=kind, srq=srq, sig_all=args.get("sq_sig_all", False))
        for used in (pd, *cqs):
            used.users += 1
        if srq is not None:
            srq.users += 1
        if "new-qp-starts-in-init" in self._faults:
            qp.state = "INIT"
        qp.handle = self._objects.enter(self._objects.qps, qp)
        if self._settings.api == NETWORKDIRECT:  # it takes receives before it is connected
            self.modify_qp({"qp": qp.handle, "state": "INIT", "access": list(ACCESS_BITS)})
        self._objects.numbers[qp.num] = qp
        return {
            "qp": qp.handle,
            "qp_num": qp.num,
            "max_send_wr_actual": sizes.send_wr,
            "max_recv_wr_actual": 0 if "told-sizes-are-junk" in self._faults else sizes.recv_wr,
            "max_send_sge_actual": sizes.send_sge,
            "max_recv_sge_actual": sizes.recv_sge,
            **({"max_inline_data_actual": sizes.inline_data} if "max_inline_data" in args else {}),
        }

    def _sizes(self, args: Args, *, with_receives: bool) -> Sizes:
        """What a queue pair gets: at least what was asked for, or nothing if that is too much."""
        its, get = self._settings, args.get
        limits = Sizes(its.max_qp_wr, its.max_qp_wr, its.max_sge, its.max_sge, its.max_inline)
        slack = Sizes(its.qp_slack, its.qp_slack, its.sge_slack, its.sge_slack, its.inline_slack)
        sges = (get("max_send_sge", USUAL_SGES), get("max_recv_sge", USUAL_SGES))
        asked = Sizes(args["max_send_wr"], args["max_recv_wr"], *sges, get("max_inline_data", 0))
        if not with_receives:
            nothing = {"recv_wr": 0, "recv_sge": 0}  # a shared receive queue has them
            asked, slack = asked._replace(**nothing), slack._replace(**nothing)
        if any(map(gt, asked, limits)):
            raise Refused
        return Sizes(*map(add, asked, slack))

    def _type(self, name: str) -> str:
        feature = TYPE_FEATURE.get(name)
        if feature is None:
            raise Refused
        if feature and feature not in self._objects.offer.declared:
            raise Refused("EOPNOTSUPP")
        return name

    def _new_qpn(self) -> int:
        number = self._next_qpn
        self._next_qpn = 2 + (number - 2 + QPN_STRIDE) % ((1 << 24) - 2)
        return number

    def destroy_qp(self, args: Args) -> None:
        qp = find(self._objects.qps, args["qp"])
        if qp.windows and self._windows_hold:
            raise Refused("EBUSY")
        if "unacknowledged-events-of-a-pair-hold-nothing" not in self._faults:
            qp.require_acknowledged()
        qp.gone = "events-outlive-their-pair" not in self._faults
        del self._objects.qps[args["qp"]]
        del self._objects.numbers[qp.num]
        self._engine.wake(qp.peer)
        self._engine.stream.end(qp, qp.state)
        self._forget(qp)
        qp.state = "GONE"
        qp.pd.users -= 1
        for cq in (qp.send_cq, qp.recv_cq):
            cq.users -= "destroyed-pair-keeps-queues" not in self._faults
        if qp.srq is not None:
            qp.srq.users -= 1
        self._purge(qp)

    def _forget(self, qp: QueuePair) -> None:
        """Whatever the queue pair holds is gone; a shared queue has the slots of its receives back."""
        if qp.srq is not None and self._settings.rq_slot == "poll":
            qp.srq.used -= len(qp.received) + (qp.inbound.receive is not None)
            if "destroy-returns-taken-receives" in self._faults:
                qp.srq.receives.extend(wqe for wqe, _ in qp.received)
        qp.clear()

    def _purge(self, qp: QueuePair) -> None:
        everyone = "destroy-purges-whole-cq" in self._faults
        if self._settings.purge_cqes or everyone:
            qp.send_cq.purge(None if everyone else qp)
            qp.recv_cq.purge(None if everyone else qp)
            if "cleaning-takes-one-too-many" in self._faults and qp.send_cq.entries:
                qp.send_cq.entries.popleft()
            if "cleaning-hands-out-twice" in self._faults and qp.send_cq.entries:
                qp.send_cq.entries.append(qp.send_cq.entries[0])

    # -- what is set ---------------------------------------------------------------------------------
    def query_qp(self, args: Args) -> Args:
        qp = find(self._objects.qps, args["qp"])
        out: Args = {"state": qp.state}
        if "mask" not in args:
            return out
        all_signalled = qp.sig_all and "signalling-not-told" not in self._faults
        out |= {"qp_type": qp.type, "sq_sig_all": all_signalled, "sq_draining": qp.draining}
        for bit in args["mask"]:
            for name in OF_BIT.get(bit, ()):
                out[name] = self._told(qp, name)
        return out

    def _told(self, qp: QueuePair, name: str) -> Any:
        """What a query says of one attribute."""
        if name == "access":
            return [flag for flag, bit in self._objects.offer.rights.items() if qp.access & bit]
        if name == "cur_qp_state":
            return qp.state
        if name == "dest_qp_num" and "peer-number-cut" in self._faults:
            return qp.attributes[name] & 0xFF
        if name in LIMITS:
            return LIMITS[name](qp)
        return qp.attributes[name]

    def modify_qp(self, args: Args) -> None:
        qp = find(self._objects.qps, args["qp"])
        mask = self._mask(qp, args)
        moves = mask is None or "STATE" in mask or "state-without-its-bit" in self._faults
        state = args["state"] if moves else qp.state
        if state not in STATES or (state in OPTIONAL_STATES and not self._whole):
            if "unknown-state-is-error" not in self._faults:
                raise Refused
            state = "ERR"
        step = self._step(qp, state)
        if step is None or not self._takes(qp, step, mask, args):
            if "refused-modify-takes-access" in self._faults:
                qp.access = access_bits(args.get("access", ()), self._objects.offer.rights)
            raise Refused
        if mask is not None and "unmasked-attributes-taken" in self._faults:
            mask = step.taken
        rights = RIGHTS & step.taken if state == "INIT" else frozenset()
        self._set(qp, *self._values(qp, step.required | rights if mask is None else mask, args))
        if moves:
            getattr(self, f"_to_{state.lower()}")(qp)
        self._engine.wake_pair(qp)

    def _mask(self, qp: QueuePair, args: Args) -> frozenset[str] | None:
        """What a call asks to be set, if it says so; uverbs has its own view of some masks."""
        if "mask" not in args:
            return None
        mask = frozenset(args["mask"])
        if self._settings.masks == "uverbs":
            mask -= DROPPED.get(qp.type, frozenset())
            if "AV" in mask and not ("STATE" in mask and args["state"] == "RTR"):
                mask |= {"PORT"}
        return mask

    def _step(self, qp: QueuePair, state: str) -> Step | None:
        """The move to a state, if there is one."""
        move = (qp.state, state)
        if move in ILLEGAL_MOVES and "illegal-moves-accepted" in self._faults:
            return STEPS[state, state, qp.type]
        if move == ("RTS", "RTS") and "rts-to-rts-refused" in self._faults:
            return None
        if state == "INIT" and qp.reset_twice and "reset-twice-breaks-init" in self._faults:
            return None
        if qp.draining and state not in LEAVING:
            return None
        return STEPS.get((*move, qp.type))

    def _takes(self, qp: QueuePair, step: Step, mask: frozenset[str] | None, args: Args) -> bool:
        """Whether a move takes what a mask names, and the consumer knows where it starts."""
        if mask is None:
            return True
        claimed = args.get("cur_qp_state", qp.state) if "CUR_STATE" in mask else qp.state
        always = {"ACCESS_FLAGS"} if self._settings.transport == "iwarp" else set()  # siw_qp_modify: in any state
        excess = mask - step.taken - always if "excess-attributes-taken" not in self._faults else ()
        return step.required <= mask and not excess and claimed == qp.state

    def _values(self, qp: QueuePair, bits: frozenset[str], args: Args) -> tuple[Args, QueuePair | None]:
        """What is to be set, and the queue pair that a connection leads to."""
        values, peer = chosen(bits, args, self._settings), qp.peer
        if "access" in values:
            values["access"] = access_bits(args.get("access", ()), self._objects.offer.rights)
        if "DEST_QPN" in bits and "dest_qp_num" in args:
            peer = self._objects.numbers.get(values["dest_qp_num"])
        elif "DEST_QPN" in bits:
            peer = find(self._objects.qps, args.get("peer", 0))
            values["dest_qp_num"] = peer.num
        return values, peer

    def _set(self, qp: QueuePair, values: Args, peer: QueuePair | None) -> None:
        qp.attributes.update(values)
        qp.peer = peer
        if "access" in values:
            qp.access = values["access"]
            if "qp-rights-swapped" in self._faults:
                swapped = [SWAPPED.get(flag, flag) for flag in self._told(qp, "access")]
                qp.access = access_bits(swapped, self._objects.offer.rights)
        qp.expected = values.get("rq_psn", qp.expected)
        qp.outbound.psn = values.get("sq_psn", qp.outbound.psn)
        qp.path.take(values)

    # -- moves ---------------------------------------------------------------------------------------
    def _to_reset(self, qp: QueuePair) -> None:
        qp.reset_twice = qp.state == "RESET"
        self._engine.wake(qp.peer)  # whatever waits there finds nobody now
        self._engine.stream.end(qp, qp.state)
        self._forget(qp)
        self._purge(qp)

    def _to_init(self, qp: QueuePair) -> None:
        qp.state = "INIT"

    def _to_rtr(self, qp: QueuePair) -> None:
        if "init-receives-lost" in self._faults:
            qp.receives.clear()
        qp.state = "RTR"

    def _to_rts(self, qp: QueuePair) -> None:
        qp.state = "RTS"

    def _to_sqd(self, qp: QueuePair) -> None:
        began, qp.state = qp.state == "RTS", "SQD"
        qp.draining = qp.draining or began
        if began and not qp.started:
            self._engine.completer.drained(qp)

    def _to_err(self, qp: QueuePair) -> None:
        self._engine.completer.enter_error(qp)
