"""Faults: bugs that real devices and drivers had, each a switch.

Theory of operation
-------------------
A fault changes the smallest thing at one place of the one code path; the code asks for it by name.
Several can be on at once.  ``entry`` names the corpus entries that the fault transplants (``B..`` from
history, ``M-..`` a plausible slip, ``G..`` a known deviation, ``D-..`` a rule of the draft, ``W-..`` a wire script that
a device is to get through); ``oracle`` is
``H`` where a text fixes the verdict and ``S`` where it is robustness or a profile's choice.  ``needs`` are
options without which the fault cannot be seen.

:data:`NOT_EXPRESSED` says why an entry has no switch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple


class Fault(NamedTuple):
    """One switch: its corpus entries, the kind of verdict, what goes wrong, and the options it needs."""

    name: str
    entry: str
    oracle: Literal["H", "S"]
    sentence: str
    needs: dict[str, str] = {}  # noqa: RUF012 - never written

    @property
    def entries(self) -> list[str]:
        """The corpus entries by themselves."""
        return self.entry.split()


def _table(faults: Iterable[Fault]) -> dict[str, Fault]:
    table = {fault.name: fault for fault in faults}
    return dict(sorted(table.items()))


USER, ND = {"api": "linux-user"}, {"api": "networkdirect"}
LAST_PSN = {**USER, "first_psn": "16777215"}


def _on_wire(script: str, name: str, sentence: str) -> Fault:
    return Fault(name, f"W-{script}", "H", sentence, {**USER, "wire": script})


FAULTS: dict[str, Fault] = _table(
    (
        # -- keys and access checks ----------------------------------------------------------------
        Fault(
            "any-right-is-enough",
            "B01",
            "H",
            "an access that needs two rights passes with one of them",
            {"transport": "iwarp"},
        ),
        Fault("range-end-wraps", "B02", "H", "the end of an access is computed modulo 2**64"),
        Fault("empty-region-has-no-bounds", "B04", "H", "a region of no bytes reaches all memory"),
        Fault("zero-length-checks-key", "B05", "H", "a remote access of no bytes has its key checked"),
        Fault("key-byte-fixed-at-alloc", "B07", "H", "accesses compare with the key of the allocation"),
        Fault("data-ignores-key-byte", "B07", "H", "accesses compare the index only: a stale key works"),
        Fault("freed-key-reused-at-once", "B08", "S", "a new region gets the key that was just freed"),
        Fault("qp-rights-swapped", "B14", "H", "the queue pair's read and write rights are exchanged"),
        Fault("first-sge-decides-kind", "B16", "H", "the first SGE's kind of key is taken for all"),
        Fault("steps-in-system-pages", "B17", "H", "a region's pages are stepped through 4096 by 4096"),
        Fault("last-byte-refused", "M-MR-1", "H", "the last byte of a region cannot be accessed"),
        Fault("one-byte-past-end-allowed", "M-MR-1", "H", "the byte after a region can be accessed"),
        Fault("qp-rights-ignored", "M-MR-3", "H", "a remote access asks the region only"),
        Fault("region-rights-ignored", "M-MR-3", "H", "a remote access asks the queue pair only"),
        Fault("sink-needs-no-local-write", "M-MR-5", "H", "a receive or READ stores without LOCAL_WRITE"),
        Fault(
            "remote-write-without-local-write",
            "M-MR-7",
            "S",
            "a registration with REMOTE_WRITE but not LOCAL_WRITE succeeds",
        ),
        Fault("data-ignores-pd", "D-R5", "H", "accesses do not compare protection domains"),
        Fault("refused-write-writes-anyway", "M-RS-1", "H", "a refused RDMA_WRITE has stored its bytes"),
        Fault("refused-read-sends-zeros", "B184", "H", "a refused RDMA_READ is answered with zeros"),
        # -- fast registration and invalidation ----------------------------------------------------
        Fault("key-leaks-before-reg", "B19", "H", "updating the handle's key byte changes the key in force"),
        Fault("local-inv-needs-remote-rights", "B20", "H", "LOCAL_INV fails without remote rights"),
        Fault("remote-inv-of-local-region", "B20", "H", "a peer can invalidate what has no remote rights"),
        Fault("unknown-key-invalidated", "B53", "H", "a peer's invalidation of a key that names nothing succeeds"),
        Fault("reg-alternates-map-sets", "B22", "H", "registering twice uses the vector before the last"),
        Fault("reg-of-valid-accepted", "B23", "H", "a VALID region can be registered again"),
        Fault("failed-reg-leaks-reference", "B25", "S", "a failed REG_MR keeps the protection domain in use"),
        Fault("inv-visible-late", "B26", "H", "LOCAL_INV takes effect when the next WR starts"),
        Fault("inv-of-invalid-hits-another", "B28", "S", "LOCAL_INV of an INVALID region hits a VALID one"),
        Fault("inv-ignores-key-byte", "B29", "H", "a stale key invalidates the current registration"),
        Fault("inv-ignores-pd", "G12", "H", "invalidation does not compare protection domains"),
        Fault("inv-does-nothing", "M-FR-3", "H", "LOCAL_INV completes and the region stays VALID"),
        Fault("any-page-size-accepted", "B31", "S", "page sizes outside the device's range are accepted"),
        Fault("local-inv-advertised-but-refused", "B32", "H", "LOCAL_INV is refused at post"),
        Fault("slot-keeps-old-fields", "B34", "H", "a registration inherits rights from its slot's last one"),
        Fault("inv-key-in-wrong-field", "B35", "H", "SEND_WITH_INV arrives as a plain SEND"),
        Fault("receive-into-region-crashes", "B37", "H", "a receive into a region kills the device"),
        Fault("opcode-table-shifted", "B38", "H", "REG_MR completes as LOCAL_INV and the reverse"),
        Fault("local-inv-at-post", "M-FR-1", "H", "LOCAL_INV takes effect when it is posted"),
        Fault("local-side-survives-inv", "M-FR-3", "H", "an INVALID region still serves local accesses"),
        Fault("failed-reg-changes-the-key", "M-FR-5", "H", "a failed registration puts its key in force"),
        Fault("failed-reg-leaves-valid", "M-FR-5", "H", "a failed registration leaves the region VALID"),
        Fault("send-inv-also-at-requester", "M-FR-7", "H", "SEND_WITH_INV invalidates when it is sent"),
        # -- memory windows and changed regions ----------------------------------------------------
        Fault("bind-checks-old-rights", "B40", "H", "binding asks what the window's last rights need", USER),
        Fault("bind-range-wraps", "B41", "H", "the end of a window is computed modulo 2**64", USER),
        Fault("region-freed-under-windows", "B43", "H", "a region goes, and its windows still work", USER),
        Fault("refused-dereg-says-done", "B44", "H", "dereg_mr says 0 for a region that a window keeps", USER),
        Fault("bind-failure-says-protection", "B46", "H", "a failed binding says LOC_PROT_ERR", USER),
        Fault("failed-bind-says-success", "B47", "H", "a failed binding says SUCCESS", USER),
        Fault("zero-based-type-1-accepted", "B49", "H", "a window of type 1 can be zero-based", USER),
        Fault("flushed-bind-is-bind-error", "B50", "H", "a flushed binding says MW_BIND_ERR", USER),
        Fault("type-1-windows-invalidated", "B53", "H", "a window of type 1 can be invalidated", USER),
        Fault("window-inv-ignores-queue-pair", "B55", "S", "a window is invalidated through any queue pair", USER),
        Fault("old-window-key-returned", "B56", "S", "bind_mw returns the key that the window had before", USER),
        Fault("binding-visible-late", "M-OR-5", "H", "a binding is in force when the next request starts", USER),
        Fault("binding-at-ring-end-is-lost", "B100", "H", "a binding in the last slot of its queue does nothing", USER),
        Fault("type-2-moves-silently", "M-MW-1", "H", "a bound window of type 2 can be bound again", USER),
        Fault("window-checked-against-region", "M-MW-3", "H", "a window reaches as far as its region", USER),
        Fault("window-count-dropped-twice", "M-MW-5", "H", "freeing an unbound window lets its last region go", USER),
        Fault("zero-based-adds-region-start", "M-MW-7", "H", "zero-based windows count from the region's start", USER),
        Fault("rereg-takes-unflagged-range", "B10", "H", "rereg_mr moves the region without being asked", USER),
        Fault("rereg-leaves-domains-counted", "B10", "H", "rereg_mr moves no use between protection domains", USER),
        Fault("hints-refused", "B13", "H", "access flags that are hints are refused", USER),
        # -- objects -------------------------------------------------------------------------------
        Fault("pd-freed-under-children", "B58", "H", "a protection domain in use can be freed"),
        Fault("cq-destroyed-under-qp", "B58", "H", "a completion queue in use can be destroyed"),
        Fault("failed-alloc-leaks-pd-reference", "B61", "H", "a failed region allocation counts"),
        Fault("refused-destroy-frees-handle", "B62", "H", "dealloc_pd says EBUSY and frees the handle"),
        Fault("failed-create-leaks-cq-reference", "M-RC-1", "H", "a failed create_qp keeps the CQ in use"),
        Fault("destroyed-pair-keeps-queues", "B67", "S", "completion queues stay in use when their queue pair is gone"),
        Fault("told-sizes-are-junk", "B77", "H", "create_qp says that the receive queue takes nothing"),
        Fault(
            "unacknowledged-events-of-a-pair-hold-nothing", "M-RC-5", "H", "a queue pair with taken events can go", USER
        ),
        Fault("events-outlive-their-pair", "B64", "S", "an event names a queue pair that is gone", USER),
        # -- queue pair states ---------------------------------------------------------------------
        Fault("new-qp-starts-in-init", "B68", "H", "a new queue pair is in INIT"),
        Fault("rts-to-rts-refused", "B70", "H", "RTS to RTS is refused"),
        Fault("unknown-state-is-error", "B71", "H", "an unknown state is taken as ERR"),
        Fault("init-receives-lost", "B73", "H", "receives posted in INIT are lost at RTR"),
        Fault("reset-twice-breaks-init", "B79", "S", "after RESET to RESET, INIT is refused"),
        Fault("illegal-moves-accepted", "M-QP-1", "H", "INIT to RTS, RTR to INIT and ERR to INIT succeed"),
        Fault("refused-modify-takes-access", "M-QP-3", "H", "a refused modify_qp changes the access rights"),
        # -- posting -------------------------------------------------------------------------------
        Fault("full-queue-hidden", "B85", "H", "posting to a full send queue says success"),
        Fault("queue-holds-one-less", "B91", "H", "a queue of N takes N-1"),
        Fault("empty-sge-ends-the-list", "B92", "H", "an SGE of no bytes hides those after it"),
        Fault("no-elements-refused", "B92", "H", "a send without SGEs is refused"),
        Fault("unsignalled-slots-never-freed", "M-WR-1", "H", "unsignalled slots are not given back"),
        Fault("refused-post-stays-queued", "G29", "H", "a send refused before RTS runs later"),
        Fault("post-before-rts-accepted", "G27", "H", "a send is accepted in RESET, INIT and RTR"),
        Fault("inline-read-at-execution", "M-WR-3", "H", "inline data are read when the request executes", USER),
        Fault("refused-inline-is-sent", "B97", "H", "a request refused for too much inline data is sent", USER),
        Fault("list-in-reverse", "M-WR-5", "H", "a list of requests is posted last to first", USER),
        Fault("list-goes-on-after-the-bad-one", "M-WR-5", "H", "what follows the bad request is posted too", USER),
        Fault("bad-request-not-named", "B86", "H", "a list that is refused says that nothing of it was taken", USER),
        Fault("inline-pieces-checked-alone", "B88", "H", "each piece of inline data is compared with the limit", USER),
        Fault("length-of-the-first-element", "B89", "H", "every SGE counts with the length of the first", USER),
        Fault("unknown-opcode-disappears", "B94", "H", "what a queue pair cannot do is accepted and dropped", USER),
        Fault("too-many-elements-taken", "B98", "S", "a send may have one SGE more than its queue pair"),
        # -- completions ---------------------------------------------------------------------------
        Fault("byte-len-zero", "B101", "H", "byte_len is always 0"),
        Fault("wr-id-lost-on-error", "B103", "H", "wr_id is 0 on failed completions"),
        Fault("unsignalled-read-completes", "B104", "H", "an unsignalled READ writes a completion"),
        Fault("nop-completion", "B106", "H", "the flush adds a completion nobody posted"),
        Fault("flushed-receive-is-success", "B107", "H", "a flushed receive says SUCCESS"),
        Fault("bad-read-sink-unreported", "B109", "H", "a READ whose sink is not writable says SUCCESS"),
        Fault("peer-qp-num", "M-WC-3", "H", "qp_num is the peer's"),
        Fault(
            "last-packet-not-counted",
            "M-WC-1",
            "H",
            "byte_len of a READ leaves out a last packet that is not full",
            USER,
        ),
        Fault("message-completes-every-receive", "B110", "H", "a message that ERR meets completes all receives"),
        Fault("immediate-bytes-swapped", "B112", "H", "immediate data arrives with its bytes reversed", USER),
        Fault("datagram-source-untold", "B113", "H", "a datagram's completion lacks the sender's number", USER),
        Fault("route-header-untold", "B113", "H", "a datagram's completion lacks the flag of the route header", USER),
        Fault(
            "too-long-datagram-is-an-error", "B80", "H", "a datagram that is too long moves its receiver to ERR", USER
        ),
        # -- attributes and draining ---------------------------------------------------------------
        Fault("unmasked-attributes-taken", "B73", "H", "attributes count although their mask bit is clear"),
        Fault("state-without-its-bit", "B74", "H", "the state changes although its mask bit is clear"),
        Fault("signalling-not-told", "B76", "H", "query_qp says that not all sends are signalled"),
        Fault("peer-number-cut", "B76", "H", "query_qp tells the low eight bits of the peer's number"),
        Fault("excess-attributes-taken", "B82", "H", "a mask may name what a move does not take"),
        Fault("any-path-mtu", "B83", "S", "a path MTU above the port's is accepted", {"port_mtu": "MTU_1024"}),
        Fault("drained-queue-still-sends", "M-QP-5", "H", "sends are started in SQD"),
        Fault("draining-never-ends", "M-QP-5", "H", "a queue pair in SQD is never drained"),
        Fault("drain-event-unasked", "M-QP-5", "S", "SQ_DRAINED is told unasked"),
        # -- completion events ---------------------------------------------------------------------
        Fault("resize-disarms", "B140", "H", "resizing a completion queue disarms it"),
        Fault("arming-again-disarms", "B155", "H", "arming an armed queue disarms it"),
        Fault("old-entries-tell", "B160", "S", "arming a queue that holds entries tells an event"),
        Fault("arming-waits-for-a-poll", "B161", "H", "arming is in force when the queue was polled once more"),
        Fault("arming-lasts", "M-NT-1", "H", "an armed queue tells every entry"),
        Fault("failures-are-not-solicited", "M-NT-3", "H", "a failed completion does not count as solicited"),
        Fault("sends-are-solicited", "M-NT-3", "H", "a solicited send counts where it was sent"),
        Fault("last-poll-disarms", "M-NT-5", "H", "polling the last entry disarms the queue"),
        Fault("taking-an-event-disarms", "M-NT-5", "H", "taking an event disarms the queue"),
        Fault("arming-is-lowered", "G13", "H", "arming for solicited completions lowers what was armed"),
        Fault("arming-unseen", "B163", "H", "arming does nothing"),
        Fault("failed-entry-spoils-arming", "B164", "H", "arming does nothing if the last entry polled had failed"),
        Fault("unacknowledged-events-hold-nothing", "M-RC-5 B167", "H", "a queue with taken events can be destroyed"),
        Fault("events-outlive-their-queue", "B182", "S", "an event names a queue that is gone"),
        # -- shared receive queues -----------------------------------------------------------------
        Fault("srq-destroyed-under-qp", "B58", "H", "a shared receive queue in use can be destroyed"),
        Fault("refused-resize-takes-limit", "B170", "H", "a refused modify_srq sets the limit"),
        Fault("srq-resize-ignored", "B172", "H", "modify_srq with MAX_WR says success and does nothing"),
        Fault("refused-resize-drops-receives", "B170", "H", "a refused modify_srq loses the receives"),
        Fault("srq-receive-taken-twice", "B175", "H", "a receive of a queue that pairs share is taken twice"),
        Fault("limit-is-told-as-error", "B173", "H", "reaching the limit is told as SRQ_ERR"),
        Fault("srq-dropped-at-create", "B176", "H", "a queue pair made with a shared queue has its own"),
        Fault("srq-does-not-hold-its-pd", "M-RC-3", "H", "a shared queue does not use its protection domain"),
        Fault("limit-told-again", "M-SR-1", "H", "the limit stays armed when it was told"),
        Fault("limit-told-at-equal", "M-SR-1", "H", "the limit is told when as many as it are left"),
        Fault("srq-receive-has-one-element", "B169", "H", "a receive of a shared queue loses all SGEs but the first"),
        Fault("srq-last-in-first-out", "M-SR-3", "H", "the last receive posted is taken first"),
        Fault("destroy-returns-taken-receives", "M-SR-5", "H", "receives of a queue pair that goes come back"),
        # -- asynchronous events -------------------------------------------------------------------
        Fault("last-receive-untold", "B178", "H", "QP_LAST_WQE_REACHED is never told"),
        Fault("event-names-nothing", "B179", "H", "an asynchronous event does not say what it is about"),
        Fault(
            "last-receive-told-early", "M-AE-3", "H", "QP_LAST_WQE_REACHED is told before the last receive is reported"
        ),
        Fault("last-receive-told-twice", "M-AE-3", "H", "QP_LAST_WQE_REACHED is told twice"),
        Fault("last-receive-without-srq", "M-AE-3", "H", "QP_LAST_WQE_REACHED is told without a shared queue"),
        Fault("established-in-rts", "M-AE-1", "H", "COMM_EST is told in RTS"),
        Fault("established-for-every-message", "M-AE-1", "H", "COMM_EST is told for every message"),
        # -- ERR and flush -------------------------------------------------------------------------
        Fault("receives-not-flushed", "B116", "H", "receives are dropped at ERR"),
        Fault("flushed-sends-say-success", "B118", "H", "flushed sends say SUCCESS"),
        Fault("posted-in-error-never-flushed", "B119", "H", "what is posted in ERR never completes"),
        Fault("no-flush-from-rtr", "B121", "H", "receives are flushed only if RTS was reached"),
        Fault("flush-lands-in-other-cq", "B122", "H", "flushed sends go to the receive CQ"),
        Fault("first-error-is-flush", "M-FL-1", "H", "the failing request says WR_FLUSH_ERR"),
        Fault("receives-flushed-backwards", "M-FL-3", "H", "receives are flushed last to first"),
        Fault("error-flushes-peer", "M-FL-5", "H", "ERR moves the peer to ERR at once"),
        Fault("done-sends-are-flushed", "B124", "S", "unsignalled sends that are done are flushed too"),
        Fault("flush-ends-with-the-ring", "B125", "H", "sends that stand behind the ring's end are not flushed"),
        # -- order ---------------------------------------------------------------------------------
        Fault("fence-released-by-any-read", "B130", "H", "a fence waits for one READ only"),
        Fault("fence-ignored", "M-OR-1", "H", "a fence waits for nothing"),
        Fault("send-completions-out-of-order", "B134", "H", "whatever is done completes first"),
        Fault("fence-ignores-atomics", "M-OR-1", "H", "a fence waits for READs only", USER),
        Fault("silent-local-operation-never-retires", "B131", "H", "an unsignalled local operation blocks its queue"),
        Fault("read-overtakes", "M-OR-3", "H", "a READ that is done completes before what was posted earlier"),
        # -- atomics and the transport -------------------------------------------------------------
        Fault("atomic-keeps-completion-queue", "B59", "H", "who executed an atomic uses its queue for ever", USER),
        Fault(
            "misaligned-atomic-executed", "B187", "H", "an atomic to an address that is not aligned is executed", USER
        ),
        Fault("atomic-answers-the-new-number", "M-RS-5", "H", "an atomic answers what it has stored", USER),
        Fault("atomic-answers-backwards", "M-RS-5", "H", "the bytes of an atomic's answer are reversed", USER),
        Fault(
            "numbers-outgrow-their-bits",
            "B136",
            "H",
            "sequence numbers do not wrap after 24 bits",
            {**USER, "first_psn": "16777215"},
        ),
        Fault("not-ready-counts-as-silence", "B185", "H", "a receiver that is not ready uses up retry_cnt", USER),
        _on_wire("duplicated-atomic", "duplicate-atomic-executed", "an atomic that comes twice is done twice"),
        _on_wire("lost-acknowledgement", "duplicate-message-executed", "a message that comes twice is taken twice"),
        _on_wire(
            "duplicated-read-response",
            "answers-taken-as-they-come",
            "READ data that comes twice is taken for what follows",
        ),
        _on_wire("lost-request", "lost-packet-is-fatal", "nothing is sent again"),
        _on_wire("lost-middle", "missing-packet-unnoticed", "a packet is taken although one before it is missing"),
        _on_wire(
            "lost-atomic-response",
            "duplicate-atomic-answered-anew",
            "an atomic that comes again is answered what it stored",
        ),
        _on_wire("lost-rest-of-read", "rest-of-read-begins-anew", "what is left of a READ is read from its beginning"),
        _on_wire(
            "duplicated-acknowledgement",
            "any-acknowledgement-will-do",
            "an acknowledgement that comes twice is taken for two",
        ),
        # -- overlapped requests -------------------------------------------------------------------
        Fault("error-notification-arms", "G8", "H", "a notification for errors waits for any completion", ND),
        Fault("new-notification-cancels-older", "G4", "H", "a new notification cancels those that wait", ND),
        # -- completion queues ---------------------------------------------------------------------
        Fault("overrun-goes-unnoticed", "B137 M-CQ-3", "S", "an entry is lost and the queue pair goes on"),
        Fault("cq-holds-one-less", "M-CQ-1", "H", "a completion queue of N holds N-1"),
        Fault(
            "cleaning-hands-out-twice",
            "B142",
            "H",
            "when entries of a queue pair that goes are taken out, another is handed out twice",
            {"purge_cqes": "true"},
        ),
        Fault("queue-of-nobody-is-empty", "B145", "H", "a completion queue without queue pairs gives no entries"),
        Fault(
            "cleaning-takes-one-too-many",
            "B143",
            "H",
            "cleaning also takes out the oldest entry of another queue pair",
            {"purge_cqes": "true"},
        ),
        Fault("old-entry-names-new-pair", "B146", "H", "an entry of a queue pair that is gone names the newest one"),
        Fault("full-queue-tells-overrun", "B151", "H", "CQ_ERR is told when a completion queue is just full", USER),
        Fault("too-deep-queue-accepted", "B152", "H", "a completion queue deeper than the largest is made"),
        Fault("shrink-loses-entries", "B139", "H", "a queue that is made smaller loses the entries that do not fit"),
        Fault("empty-queue-accepted", "B152", "H", "a completion queue of no entries is made"),
        Fault("destroy-purges-whole-cq", "M-CQ-5", "H", "destroy_qp empties its CQs of all entries"),
    )
)
"""Every fault by name."""

NOT_EXPRESSED: dict[str, str] = {
    "B11": "every buffer of the contract is writable, so no registration can meet a read-only page",
    "B52": "a race between freeing a key and an access under way; a call and a micro-step of the device are whole",
    "B65": "no object of the device is backed by a region that a consumer could name",
    "B95": "posting a READ inline is the consumer's error, so that the device may do anything",
    "B115": "a consumer's error; option poison fills the fields of failed completions that nobody may read",
    "B127": "a race between two completion queues; a call and a micro-step of the device are whole",
    "B128": "an error of a library above the verbs, which drops completions that the device gave",
    "B133": "an error of a consumer; option local_inv_early is the device that shows it",
    "B148": "the contract polls one entry a call, and has no start, next and end",
    "B149": "the contract polls one entry a call, and has no start, next and end",
    "B154": "the contract has no completion handlers that run inside the device",
    "B157": "the contract has one flag for what is armed, not two bits",
    "B158": "a race between arming and a completion; a call and a micro-step of the device are whole",
    "B166": "an error of a consumer, who arms after polling and does not poll again",
    "B181": "the contract has no way to remove a device",
    "B188": "the contract has no atomic write",
    "B190": "message sequence numbers govern credits alone, which no verb shows",
    "M-WC-5": "a race; tests/conformance/races.py plants it",
    "M-RS-3": "no text says which is looked at first, and Linux rxe looks for a receive first",
}
"""Entries without a switch, and why."""
