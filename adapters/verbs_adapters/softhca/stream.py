"""The stream under an iWARP connection: it ends for both sides at once.

Theory of operation
-------------------
An iWARP queue pair sits on one reliable byte stream.  There is no negative acknowledgement and no retry of a
message: whatever goes wrong on one side ends the stream, with a TERMINATE message if there is something to
say, and takes the other side's queue pair to ERR too (draft-hilland-rddp-verbs 6.2.2, Fig. 8 and 24).  So does
a side that is moved to ERR or RESET or destroyed: the stream is reset.

What came through the stream before its end is taken first: the other side is ``cut_off``, and goes to ERR in a
micro-step of its own once no response is waiting.  A side in ERR has no stream; nothing ends a second time,
and a stream set up anew is not ended by the end of an old one.

On InfiniBand and RoCE there is no stream, and nothing here does anything.
"""

from __future__ import annotations

from collections.abc import Callable

from verbs_adapters.softhca.options import Settings
from verbs_adapters.softhca.qp import RESPONDING, QueuePair
from verbs_adapters.softhca.wire import NOT_READY, Response

SUCCESS = "SUCCESS"


class Stream:
    """What the streams of one device have in common."""

    def __init__(self, settings: Settings, wake: Callable[[QueuePair], None]) -> None:
        self.exists = settings.transport == "iwarp"
        self.waits_for_receive = not self.exists or settings.no_receive == "wait"
        self._failed_wr = settings.failed_wr
        self._wake = wake

    def end(self, qp: QueuePair, state: str) -> None:
        """The queue pair left `state` and its stream with it: cut off the other side."""
        peer = qp.peer
        ended_by_peer, qp.cut_off = qp.cut_off, False
        if not self.exists or ended_by_peer or state not in RESPONDING:
            return
        if peer is not None and peer is not qp and peer.peer is qp and peer.state in RESPONDING:
            peer.cut_off = True
            self._wake(peer)

    def answer(self, response: Response) -> Response | None:
        """What the requester learns of its own work request before the stream ends.

        A SEND or RDMA_WRITE may count as done when it was handed to the stream (draft 8.2.2 rule 11), so it
        may have succeeded by then.
        """
        if not self.exists or response.status in (SUCCESS, NOT_READY) or self._failed_wr == "remote":
            return response
        if self._failed_wr == "early" and response.wqe.opcode != "RDMA_READ":
            return Response(response.wqe, response.psn, SUCCESS)
        return None
