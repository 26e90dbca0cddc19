#!/usr/bin/env python3
"""Kernel verbs for the suite: speaks the remote protocol on standard input and output, and to /dev/kverbs.

Usage: agent.py --device DEVICE [--address IPV4]    (an RDMA device, like rxe0; needs root and the module `kverbs`)

Theory of operation
-------------------
This is one file that needs only the target's own Python (3.9 or newer).  Each verb of the contract is one ioctl of
the module, which makes one call of the kernel's verbs and answers with its errno as it came.  `reset` closes the
device file, which destroys everything, and opens it again.

Some things are the agent's own:

* the attributes of a queue pair that the contract leaves to the adapter: both ends of a connection are on one device,
  the transport retry ends after about 0.3 s, receivers that are not ready are asked again for ever;
* the steps of an iWARP connection (at `can_join`);
* `settle`.  A software device works in kernel threads and timers that nobody outside can ask.  So the agent gives
  itself the lowest priority that there is (SCHED_IDLE: on one processor it then runs only when no work is left) and
  sleeps for longer than the timers that drive a retry.  Where a queue pair talks to a peer that no longer listens, it
  waits until the retries are used up, which shows in the state of the queue pair, or until no more packets are sent.
"""

from __future__ import annotations

import argparse
import array
import errno
import fcntl
import json
import os
import socket
import struct
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

Out = dict[str, Any]
Elements = Sequence[dict[str, int]]

PROTOCOL = "1.0"
CONTRACT = "1.0"

CALL = struct.Struct("<IIQ20Q8Q")
OPEN = struct.Struct("<64s64s7Q")
SGE = struct.Struct("<QQQ")


def _iowr(number: int, size: int) -> int:
    return (3 << 30) | (size << 16) | (ord("V") << 8) | number


IOCTL_OPEN = _iowr(1, OPEN.size)
IOCTL_CALL = _iowr(2, CALL.size)

_VERBS = """
    alloc_buffer free_buffer write_buffer read_buffer alloc_pd dealloc_pd create_cq destroy_cq poll_cq arm_cq
    create_qp destroy_qp modify_qp query_qp alloc_mr map_mr_sg update_fast_reg_key dereg_mr post_send post_recv
    modify_qp_is_ok connect_qp
"""
NUMBERS = {verb: number for number, verb in enumerate(_VERBS.split(), 1)}

STATES = ("RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR", "UNKNOWN")  # the last is a number that is no state
OPCODES = ("OTHER", "SEND", "RDMA_WRITE", "RDMA_READ", "LOCAL_INV", "REG_MR", "SEND_WITH_INV", "RECV")
MESSAGES = ("SEND", "SEND_WITH_INV", "RDMA_WRITE", "RDMA_READ")
ACCESS = {"LOCAL_WRITE": 1, "REMOTE_WRITE": 2, "REMOTE_READ": 4}
_STATUSES = """
    SUCCESS LOC_LEN_ERR LOC_QP_OP_ERR LOC_EEC_OP_ERR LOC_PROT_ERR WR_FLUSH_ERR MW_BIND_ERR BAD_RESP_ERR
    LOC_ACCESS_ERR REM_INV_REQ_ERR REM_ACCESS_ERR REM_OP_ERR RETRY_EXC_ERR RNR_RETRY_EXC_ERR LOC_RDD_VIOL_ERR
    REM_INV_RD_REQ_ERR REM_ABORT_ERR INV_EECN_ERR INV_EEC_STATE_ERR FATAL_ERR RESP_TIMEOUT_ERR GENERAL_ERR
"""
STATUSES = dict(enumerate(_STATUSES.split()))
CAP_MEM_MGT_EXTENSIONS = 1 << 21
MAX_SGE = 2

# Bits of enum ib_qp_attr_mask, and the attributes of each step.
STATE, ACCESS_FLAGS, PKEY_INDEX, PORT, AV, PATH_MTU = 1 << 0, 1 << 3, 1 << 4, 1 << 5, 1 << 7, 1 << 8
TIMEOUT, RETRY_CNT, RNR_RETRY, RQ_PSN, MAX_RD = 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13
MIN_RNR_TIMER, SQ_PSN, MAX_DEST_RD, DEST_QPN = 1 << 15, 1 << 16, 1 << 17, 1 << 20
MASKS = {
    "RESET": STATE,
    "INIT": STATE | ACCESS_FLAGS | PKEY_INDEX | PORT,
    "RTR": STATE | AV | PATH_MTU | DEST_QPN | RQ_PSN | MAX_DEST_RD | MIN_RNR_TIMER,
    "RTS": STATE | TIMEOUT | RETRY_CNT | RNR_RETRY | SQ_PSN | MAX_RD,
    "ERR": STATE,
    "UNKNOWN": STATE,
}
MTU_1024 = 3
IWARP_MASKS = dict.fromkeys(MASKS, STATE) | {"INIT": STATE | ACCESS_FLAGS}
"""As the connection manager asks for them: the stream is the way to the peer."""
OUTSTANDING_READS = 16
ACK_TIMEOUT = 14  # 4.096 us * 2**14 = 67 ms: longer than a slow machine delays an answer, or it would retry
RETRIES = 3  # and not 7, which rxe_comp.c takes for ever
FOR_EVER = 7
LOCALHOST = "127.0.0.1"
RNR_TIMER = 1  # 10 us, which a kernel makes one or two ticks

BREATH = 0.008  # two ticks of a kernel with 250 a second
QUIET = 0.024  # longer than a receiver that is not ready keeps a sender waiting
RETRIES_USED_UP = 8.0  # no sender retries for longer, however slow the machine is
NO_RETRY = 0.3  # nor is silent for so long between two retries


class Refused(Exception):
    """A verb failed: the errno as it came."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class QueuePair:
    """What the agent has to know of a queue pair."""

    def __init__(self, num: int, psn: int) -> None:
        self.num = num
        self.psn = psn
        self.peer = 0
        self.asked = "RESET"  # the state that it was last moved to
        self.sends = 0  # since the last reset
        self.receives = 0
        self.talking = False  # messages were posted that may be under way still
        self.joined = False  # iWARP: the stream to its peer was made


class Device:
    """An open device context and its verbs, each a method that takes the contract's arguments and gives outputs."""

    def __init__(self, name: str, address: str = LOCALHOST) -> None:
        self.name = name
        self.address = int.from_bytes(socket.inet_aton(address), "big")
        self.fd = -1
        self.psn = 0
        self.qps: dict[int, QueuePair] = {}
        self.busy = False
        self.open()

    def open(self) -> None:
        """Start from a fresh context."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = os.open("/dev/kverbs", os.O_RDWR)
        request = bytearray(OPEN.pack(self.name.encode(), b"", *[0] * 7))
        fcntl.ioctl(self.fd, IOCTL_OPEN, request)
        _, firmware, *self.attrs = OPEN.unpack(request)
        self.firmware = firmware.rstrip(b"\0").decode()
        self.iwarp = bool(self.attrs[-1])
        self.qps = {}
        self.busy = False

    def hello(self) -> Out:
        """What there is to say of the device."""
        max_qp_wr, max_cqe, _, max_list, page_sizes, flags, _ = self.attrs
        return {
            "contract": CONTRACT,
            "name": "kverbs",
            "version": "1.0",
            "device": self.name,
            "firmware": self.firmware,
            "kernel": os.uname().release,
            "api": ["linux-kernel"],
            "transport": ["iwarp" if self.iwarp else "roce"],
            "capabilities": ["MEM_MGT_EXTENSIONS"] if flags & CAP_MEM_MGT_EXTENSIONS else [],
            "limits": {
                "max_qp_wr": max_qp_wr,
                "max_cqe": max_cqe,
                "max_fast_reg_page_list_len": max_list,
                "min_page_size": page_sizes & -page_sizes,
                "max_page_size": 1 << (page_sizes.bit_length() - 1) if page_sizes else 0,
            },
        }

    def ioctl(
        self, verb: str, *ins: int, data: bytes = b"", count: int = 0, sink: array.array[int] | None = None
    ) -> tuple[int, ...]:
        """One call of the module; its outputs.  `data` goes with it, `sink` takes what it gives back."""
        memory: array.array[int] = sink if sink is not None else array.array("B", data)
        address = memory.buffer_info()[0] if len(memory) else 0
        request = bytearray(CALL.pack(NUMBERS[verb], count, address, *ins, *[0] * (28 - len(ins))))
        try:
            fcntl.ioctl(self.fd, IOCTL_CALL, request)
        except OSError as error:
            raise Refused(error.errno or errno.EIO) from None
        return CALL.unpack(request)[23:]

    # -- memory and time -----------------------------------------------------------------------------

    def alloc_buffer(self, length: int) -> Out:
        buf, addr = self.ioctl("alloc_buffer", length)[:2]
        return {"buf": buf, "addr": addr}

    def free_buffer(self, buf: int) -> None:
        self.ioctl("free_buffer", buf)

    def write_buffer(self, buf: int, offset: int, data: str) -> None:
        content = bytes.fromhex(data)
        self.ioctl("write_buffer", buf, offset, data=content, count=len(content))

    def read_buffer(self, buf: int, offset: int, length: int) -> Out:
        if length > 1 << 22:  # no buffer is so large
            raise Refused(errno.EINVAL)
        sink = array.array("B", bytes(length))
        self.ioctl("read_buffer", buf, offset, count=length, sink=sink)
        return {"data": sink.tobytes().hex()}

    def settle(self) -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        try:
            time.sleep(QUIET if self.busy else BREATH)
            self.wait_for_retries()
            time.sleep(BREATH)
        finally:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        self.busy = False
        for qp in self.qps.values():
            peer = self.qps.get(qp.peer)
            qp.talking = qp.talking and peer is not None and qp.sends > peer.receives

    def wait_for_retries(self) -> None:
        """Wait while a queue pair tries to reach a peer that does not listen: until it fails, or sends no more."""
        deadline = time.monotonic() + RETRIES_USED_UP
        sent, since = self.sent_packets(), time.monotonic()
        while any(self.unheard(qp) for qp in self.qps) and time.monotonic() < deadline:
            time.sleep(QUIET)
            now = self.sent_packets()
            if now < 0 or now != sent:
                sent, since = now, time.monotonic()
            elif time.monotonic() - since > NO_RETRY:
                break

    def sent_packets(self) -> int:
        """What the driver counts as sent; -1 if it does not count."""
        try:
            with open(f"/sys/class/infiniband/{self.name}/ports/1/hw_counters/sent_pkts", encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):
            return -1

    def unheard(self, handle: int) -> bool:
        """Whether a queue pair still tries to reach a peer that does not listen."""
        qp = self.qps[handle]
        if self.iwarp or not qp.talking or self.state(handle) != "RTS":
            return False
        peer = self.qps.get(qp.peer)
        return peer is None or peer.peer != handle or self.state(qp.peer) not in ("RTR", "RTS")

    # -- protection domains, completion queues -------------------------------------------------------

    def alloc_pd(self) -> Out:
        pd, lkey = self.ioctl("alloc_pd")[:2]
        return {"pd": pd, "local_dma_lkey": lkey}

    def dealloc_pd(self, pd: int) -> None:
        self.ioctl("dealloc_pd", pd)

    def create_cq(self, cqe: int) -> Out:
        cq, actual = self.ioctl("create_cq", cqe)[:2]
        return {"cq": cq, "cqe_actual": actual}

    def destroy_cq(self, cq: int) -> None:
        self.ioctl("destroy_cq", cq)

    def poll_cq(self, cq: int) -> Out:
        n, wr_id, status, opcode, qp_num, byte_len, flags, rkey = self.ioctl("poll_cq", cq)
        if not n:
            return {"n": 0}
        return {
            "n": n,
            "wr_id": wr_id,
            "status": STATUSES.get(status, "GENERAL_ERR"),
            "opcode": OPCODES[opcode] if opcode else "SEND",
            "qp_num": qp_num,
            "byte_len": byte_len,
            "wc_flags": ["WITH_INVALIDATE"] if flags else [],
            "invalidate_rkey": rkey,
        }

    # -- queue pairs ---------------------------------------------------------------------------------

    def create_qp(self, pd: int, send_cq: int, recv_cq: int, max_send_wr: int, max_recv_wr: int) -> Out:
        qp, num, *granted = self.ioctl("create_qp", pd, send_cq, recv_cq, max_send_wr, max_recv_wr, MAX_SGE)[:6]
        self.qps[qp] = QueuePair(num, self.next_psn())
        names = ("max_send_wr", "max_recv_wr", "max_send_sge", "max_recv_sge")
        return {"qp": qp, "qp_num": num, **{f"{name}_actual": n for name, n in zip(names, granted, strict=True)}}

    def next_psn(self) -> int:
        """Where the packet numbers of the next connection begin: far from those that may still be under way."""
        self.psn = (self.psn + 0x10001) & 0xFFFFFF
        return self.psn

    def destroy_qp(self, qp: int) -> None:
        self.ioctl("destroy_qp", qp)
        del self.qps[qp]
        self.busy = True

    def modify_qp(self, qp: int, state: str, access: Sequence[str] = (), peer: int = 0) -> None:
        if qp not in self.qps or state not in MASKS:
            raise Refused(errno.EINVAL)
        own, mask = self.qps[qp], (IWARP_MASKS if self.iwarp else MASKS)[state]
        other = self.qps.get(peer, QueuePair(0, 0))
        if state == "RTS" and self.can_join(qp):
            self.join(qp)
            return
        if state == "RTS" and mask != STATE and self.state(qp) == "RTS":
            mask = STATE  # nothing is required of this step, and nothing of the others' is allowed
        self.ioctl(
            "modify_qp", qp, mask, STATES.index(state), bits(access), other.num, MTU_1024, other.psn, own.psn,
            OUTSTANDING_READS, OUTSTANDING_READS, ACK_TIMEOUT, RETRIES, FOR_EVER, RNR_TIMER,
        )  # fmt: skip
        self.busy = True
        own.asked = state
        if state == "RTR":
            own.peer = peer
        if state == "RESET":
            self.qps[qp] = QueuePair(own.num, self.next_psn())

    # An iWARP queue pair gets to RTS by the stream to its peer, which exists for both or for neither.  Here the first
    # of the two that is moved to RTS makes it, if the other is in RTR at least; so the other is in RTS for the driver
    # and in RTR for the suite, until it is moved too, which then makes nothing.  What the driver would refuse of a
    # queue pair that is not in RTS is refused here meanwhile.  A move to RTS with no peer to join is the driver's to
    # judge.

    def can_join(self, qp: int) -> bool:
        """Whether this is iWARP and there is a peer for the move of this queue pair to RTS."""
        own = self.qps[qp]
        peer = self.qps.get(own.peer)
        if not self.iwarp or own.asked != "RTR" or peer is None or own.peer == qp:
            return False
        return peer.peer == qp and peer.asked in ("RTR", "RTS")

    def join(self, qp: int) -> None:
        """Move a queue pair to RTS, making the stream if its peer has not made it."""
        own = self.qps[qp]
        if not own.joined:
            self.ioctl("connect_qp", qp, own.peer, self.address, OUTSTANDING_READS)
            self.qps[own.peer].joined = True
        own.joined, own.asked, self.busy = True, "RTS", True

    def waits_in_rtr(self, qp: int) -> bool:
        """Whether a queue pair is in RTS for the driver only."""
        return self.qps[qp].joined and self.qps[qp].asked == "RTR"

    def state(self, qp: int) -> str:
        state = STATES[self.ioctl("query_qp", qp)[0]]
        return "RTR" if state == "RTS" and self.waits_in_rtr(qp) else state

    def query_qp(self, qp: int) -> Out:
        return {"state": self.state(qp)}

    # -- regions -------------------------------------------------------------------------------------

    def alloc_mr(self, pd: int, max_num_sg: int) -> Out:
        mr, lkey = self.ioctl("alloc_mr", pd, max_num_sg)[:2]
        return {"mr": mr, "key": lkey}

    def map_mr_sg(self, mr: int, sg: Elements = (), offset: int = 0, page_size: int = 0) -> Out:
        data = b"".join(SGE.pack(e["addr"], e["length"], 0) for e in sg)
        n, iova, length = self.ioctl("map_mr_sg", mr, offset, page_size, data=data, count=len(sg))[:3]
        return {"n": n, "iova": iova, "length": length}

    def update_fast_reg_key(self, mr: int, byte: int) -> Out:
        return {"key": self.ioctl("update_fast_reg_key", mr, byte)[0]}

    def dereg_mr(self, mr: int) -> None:
        self.ioctl("dereg_mr", mr)

    # -- work requests -------------------------------------------------------------------------------

    def post_send(
        self, qp: int, wr_id: int, opcode: str, signaled: bool = False, fence: bool = False, sg_list: Elements = (),
        remote_addr: int = 0, rkey: int = 0, invalidate_rkey: int = 0, mr: int = 0, key: int = 0,
        access: Sequence[str] = (), **unused: object,
    ) -> None:  # fmt: skip
        del unused  # those of opcodes that this API lacks
        if qp in self.qps and self.waits_in_rtr(qp):
            raise Refused(errno.ENOTCONN)
        number = OPCODES.index(opcode) if opcode in OPCODES else 0
        self.ioctl(
            "post_send", qp, wr_id, number, signaled, fence, remote_addr, rkey, invalidate_rkey, mr, key, bits(access),
            data=sges(sg_list), count=len(sg_list),
        )  # fmt: skip
        self.busy = True
        own = self.qps[qp]
        own.talking = own.talking or opcode in MESSAGES
        own.sends += opcode in ("SEND", "SEND_WITH_INV")

    def post_recv(self, qp: int, wr_id: int, sg_list: Elements = ()) -> None:
        self.ioctl("post_recv", qp, wr_id, data=sges(sg_list), count=len(sg_list))
        self.busy = True
        self.qps[qp].receives += 1


def bits(access: Sequence[str]) -> int:
    """Flags as the kernel's number."""
    if unknown := [flag for flag in access if flag not in ACCESS]:
        raise ValueError(f"unknown access flags {unknown}")
    return sum(ACCESS[flag] for flag in access)


def sges(elements: Elements) -> bytes:
    """A work request's scatter list in the module's form."""
    return b"".join(SGE.pack(e["addr"], e["length"], e["lkey"]) for e in elements)


# -- the protocol ------------------------------------------------------------------------------------


def perform(device: Device, verb: str, args: Out) -> Out:
    """The answer to one verb."""
    if (verb != "settle" and verb not in NUMBERS) or not hasattr(device, verb):
        return {"result": "EOPNOTSUPP"}
    try:
        return {"result": "0", "out": getattr(device, verb)(**args) or {}}
    except Refused as refused:
        return {"result": name_of(refused.number)}


def name_of(number: int) -> str:
    """An errno's name; the kernel has a few that user space never sees."""
    return errno.errorcode.get(number, {524: "ENOTSUPP"}.get(number, f"E{number}"))


def outcome(device: Device, verb: str, args: Out) -> Out:
    """The answer to one verb, or the trouble that it is not one."""
    try:
        return {"answer": perform(device, verb, args)}
    except Exception as error:  # what Python raises here is never the device's fault
        message = f"the agent failed at {verb}: {type(error).__name__}: {error}"
        return {"trouble": {"kind": "crash", "whose": "glue", "message": message, "evidence": traceback.format_exc()}}


def reply_to(device: Device, request: Out) -> Out:
    """The content of the reply to a request."""
    if request["op"] == "hello":
        return {"protocol": PROTOCOL, "hello": device.hello()}
    if request["op"] == "reset":
        device.open()
        return {"ok": True}
    if request["op"] == "call":
        return outcome(device, request["verb"], request["args"])
    if request["op"] == "batch":
        outcomes = []
        for call in request["calls"]:
            outcomes.append(outcome(device, call["verb"], call["args"]))
            if "trouble" in outcomes[-1]:
                break
        return {"batch": outcomes}
    return {"ok": True}


def main(kind: type[Device] = Device) -> None:
    """Serve until told to close, or until nobody asks any more."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--device", required=True)
    parser.add_argument("--address", default=LOCALHOST, help="iWARP: an IPv4 address of the device's own port")
    given = parser.parse_args()
    device = kind(given.device, given.address)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        reply = {"id": request["id"], **reply_to(device, request)}
        sys.stdout.buffer.write(json.dumps(reply, separators=(",", ":")).encode() + b"\n")
        sys.stdout.buffer.flush()
        if request["op"] == "close":
            break


if __name__ == "__main__":
    main()
