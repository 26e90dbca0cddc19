"""Five planted faults for the software HCA, none of them in its own table.

Theory of operation
-------------------
Each fault is a small slip that a driver or firmware author could make.  A context manager installs it by
replacing one function of the device in memory and puts the original back when it ends, also after an
exception.  No file changes.  Devices made before or inside the context are affected alike, because the
replaced functions are looked up when they are called; only an object's own data outlives the context.

:data:`PLANTED` names them.  Each sentence says the wrong behaviour and, in brackets, the facts it violates:
ids with a letter and small number are of the verbs fact sheet, ``B..`` with "corpus" of the bug corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from unittest.mock import patch

from verbs_adapters.softhca import mapping as mapping_module
from verbs_adapters.softhca.access import Protection
from verbs_adapters.softhca.completer import Completer
from verbs_adapters.softhca.qp import QueuePair
from verbs_adapters.softhca.region import ADDRESS_SPACE, Mapping, Region

__all__ = [
    "PLANTED",
    "bytes_before_start_allowed",
    "continued_page_entered_twice",
    "reset_keeps_send_slots",
    "same_key_keeps_old_pages",
    "unsignalled_not_flushed",
]


@contextmanager
def same_key_keeps_old_pages() -> Iterator[None]:
    """The translation cache is tagged by key and flushed only if a registration changes the key."""
    original = Region.validate

    def validate(self: Region, key: int, access: int, mapping: Mapping) -> None:
        if key == self.hw_key and self.mapping is not None:
            cached, new = self.mapping.pages, mapping.pages
            mapping = mapping._replace(pages=(*cached[: len(new)], *new[len(cached) :]))
        original(self, key, access, mapping)

    with patch.object(Region, "validate", validate):
        yield


@contextmanager
def bytes_before_start_allowed() -> Iterator[None]:
    """The lower bound is that of the first page, not of the first byte."""
    original = Protection._inside

    def inside(self: Protection, mapping: Mapping, addr: int, length: int) -> bool:
        base = mapping.iova - mapping.fbo
        whole = mapping._replace(iova=base, length=mapping.length + mapping.fbo)
        return original(self, whole if mapping.length else mapping, addr, length)

    with patch.object(Protection, "_inside", inside):
        yield


@contextmanager
def continued_page_entered_twice() -> Iterator[None]:
    """Every scatter element is cut into pages by itself, also one that goes on inside the last page."""

    def vector(elements: Sequence[tuple[int, int]], shift: int, max_pages: int) -> tuple[list[int], int, int]:
        inside = (1 << shift) - 1
        pages: list[int] = []
        length, previous_end = 0, elements[0][0]
        for count, (start, size) in enumerate(elements):
            end = start + size
            if end > ADDRESS_SPACE:
                raise mapping_module.Unmappable(f"element {count} ends beyond the address space")
            if count and start != previous_end and (start | previous_end) & inside:
                return pages, count, length
            page = start & ~inside  # the slip: nobody asks whether this page is in the vector already
            while page < end and size:
                if len(pages) == max_pages:
                    return pages, count, length + max(0, page - start)
                pages.append(page)
                page += inside + 1
            length += size
            previous_end = end
        return pages, len(elements), length

    with patch.object(mapping_module, "_vector", vector):
        yield


@contextmanager
def unsignalled_not_flushed() -> Iterator[None]:
    """The flush looks at the signalled flag as the success path does, and stays silent without it."""
    original = Completer.flush_send

    def flush_send(self: Completer, qp: QueuePair) -> None:
        if qp.pending[0].signaled:
            original(self, qp)
            return
        qp.pending.popleft()
        qp.silent += 1

    with patch.object(Completer, "flush_send", flush_send):
        yield


@contextmanager
def reset_keeps_send_slots() -> Iterator[None]:
    """RESET empties the send queue but does not reset the driver's count of slots in use."""
    original = QueuePair.clear

    def clear(self: QueuePair) -> None:
        used: int = getattr(self, "sq_used", 0)  # a new queue pair has no count yet
        original(self)
        self.sq_used = used

    with patch.object(QueuePair, "clear", clear):
        yield


PLANTED: dict[str, tuple[str, Callable[[], AbstractContextManager[None]]]] = {
    "same-key-keeps-old-pages": (
        "a registration under the key that the region had last keeps the pages of the previous registration "
        "instead of those mapped since (M9, P10; corpus B22)",
        same_key_keeps_old_pages,
    ),
    "bytes-before-start-allowed": (
        "an access may begin before the region's first byte, as far back as the start of its first page (R10, D-R5)",
        bytes_before_start_allowed,
    ),
    "continued-page-entered-twice": (
        "map_mr_sg enters a page a second time for an element that continues the previous one inside that "
        "page, so all bytes from the next page border on land one page early (M3)",
        continued_page_entered_twice,
    ),
    "unsignalled-not-flushed": (
        "an unsignalled send that is flushed in ERR writes no completion (E1, D-S2)",
        unsignalled_not_flushed,
    ),
    "reset-keeps-send-slots": (
        "send slots in use when a queue pair goes to RESET stay taken, so after connecting it again a send "
        "queue that holds fewer than max_send_wr refuses with ENOMEM (E6, B3; corpus B91)",
        reset_keeps_send_slots,
    ),
}
"""Every planted fault: name -> (the wrong behaviour, the context manager that installs it)."""
