"""Datagrams: what becomes of a message that names its receiver itself.

Theory of operation
-------------------
A datagram (UD) goes to the port that its address handle names and to the queue pair of the number in its work request.
It is taken if that is of the type UD, in a state that receives, and has the Q_Key that the datagram carries (a Q_Key
with the highest bit set stands for the sender's own), and if there is a receive.  Otherwise it is dropped, and nobody
is told: the sender's work request was done when the datagram was on the wire.

The first 40 bytes of a receive are for the global route header.  It is there if the datagram had a global address;
then the completion says GRH.  Otherwise these bytes stay as they are.
"""

from __future__ import annotations

from typing import Any

from verbs_adapters.softhca.attributes import GID, LID
from verbs_adapters.softhca.completer import Completer
from verbs_adapters.softhca.execution import Execution, immediate
from verbs_adapters.softhca.qp import RESPONDING, QueuePair
from verbs_adapters.softhca.queue import Wqe
from verbs_adapters.softhca.region import AddressHandle

GRH_BYTES = 40
GRH_WORD = 0x60000000  # version 6
NEXT_HEADER = 0x1B
OWN_QKEY = 1 << 31


class Datagrams:
    """Takes datagrams on behalf of every queue pair."""

    def __init__(self, numbers: dict[int, QueuePair], execution: Execution, completer: Completer) -> None:
        self._numbers = numbers
        self._execution = execution
        self._completer = completer

    def deliver(self, sender: QueuePair) -> QueuePair | None:
        """Take the datagram at the head of the lane, or drop it; who took it."""
        request = sender.lanes.requests.popleft()
        wqe = request.wqe
        receiver = self._numbers.get(wqe.remote_qpn)
        if receiver is None or not _meant_for(sender, wqe, receiver) or not receiver.receives:
            return None
        receive = self._execution.take_receive(receiver, request)
        if GRH_BYTES + len(request.data) > receive.length:
            self._execution.spare(receiver, receive, "LOC_LEN_ERR")
            return receiver
        assert wqe.ah is not None
        failure = self._fill(receiver, receive, wqe.ah, request.data)
        if failure is not None:
            self._completer.fail_receive(receiver, receive, failure[0])
            return receiver
        receiver.received.append((receive, _told(sender, wqe, GRH_BYTES + len(request.data))))
        return receiver

    def _fill(self, qp: QueuePair, receive: Wqe, ah: AddressHandle, data: bytes) -> tuple[str, str] | None:
        fill = self._execution.fill
        failure = fill(qp, receive, 0, header(ah, len(data))) if ah.is_global else None
        return failure or fill(qp, receive, GRH_BYTES, data)


def _meant_for(sender: QueuePair, wqe: Wqe, receiver: QueuePair) -> bool:
    assert wqe.ah is not None
    qkey = sender.attributes["qkey"] if wqe.remote_qkey & OWN_QKEY else wqe.remote_qkey
    reached = wqe.ah.reaches and receiver.type == "UD" and receiver.state in RESPONDING
    return reached and receiver.attributes["qkey"] == qkey


def _told(sender: QueuePair, wqe: Wqe, length: int) -> dict[str, Any]:
    """What the completion of a receive says of a datagram."""
    assert wqe.ah is not None
    more = immediate(wqe) if wqe.opcode == "SEND_WITH_IMM" else {"wc_flags": []}
    flags = [*(["GRH"] if wqe.ah.is_global else []), *more["wc_flags"]]
    path = {"src_qp": sender.num, "pkey_index": 0, "slid": LID, "sl": wqe.ah.sl, "dlid_path_bits": 0}
    return {**more, **path, "byte_len": length, "wc_flags": flags}


def header(ah: AddressHandle, length: int) -> bytes:
    """A global route header, as it is on the wire."""
    words = GRH_WORD.to_bytes(4, "big") + length.to_bytes(2, "big")
    return words + bytes([NEXT_HEADER, ah.hop_limit]) + bytes.fromhex(GID) + bytes.fromhex(ah.dgid)
