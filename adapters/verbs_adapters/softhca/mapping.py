"""How page vectors come about: from a scatter list, or from a page list.

Theory of operation
-------------------
:func:`map_sg` follows ``ib_sg_to_pages`` of the Linux core: the first element may begin inside a page, a
further one must begin at a page and after an element that ended at one, or continue the one before it
exactly; the last may end anywhere.  Mapping stops before the first element that breaks this, and in the
middle of the element for which the vector has no room.  A short count is not an error.

Elements without bytes occupy no page here: the kernel's loop gives them one, which shifts what follows.

:func:`from_page_list` reads a page list of the 2008 interface, whose work request carries page size,
start address and length.  The offset of the first byte is in the low bits of the start address.
"""

from __future__ import annotations

from collections.abc import Sequence

from verbs_adapters.softhca.region import (
    ADDRESS_SPACE,
    MAX_PAGE_SHIFT,
    MIN_PAGE_SHIFT,
    Mapping,
)


class Unmappable(ValueError):
    """No mapping can be made of what was given."""


def page_shift(page_size: int, *, any_size: bool = False) -> int:
    """The shift of a page size that the device can do."""
    shift = page_size.bit_length() - 1
    if shift < 0 or page_size != 1 << shift:
        raise Unmappable(f"page size {page_size} is not a power of two")
    if not any_size and not MIN_PAGE_SHIFT <= shift <= MAX_PAGE_SHIFT:
        raise Unmappable(f"page size {page_size} is outside what the device can do")
    return shift


def map_sg(sg: Sequence[tuple[int, int]], offset: int, shift: int, max_pages: int) -> tuple[int, Mapping]:
    """Map a scatter list of (address, length); the number of elements mapped whole, and the mapping."""
    if not sg:
        raise Unmappable("a scatter list of no elements")
    if offset > sg[0][1]:
        raise Unmappable(f"offset {offset} lies beyond the first element, which has {sg[0][1]} bytes")
    iova = sg[0][0] + offset
    pages, mapped, length = _vector([(iova, sg[0][1] - offset), *sg[1:]], shift, max_pages)
    return mapped, Mapping(iova, length, shift, iova & ((1 << shift) - 1), tuple(pages))


def _vector(elements: Sequence[tuple[int, int]], shift: int, max_pages: int) -> tuple[list[int], int, int]:
    """Pages, number of whole elements, and bytes."""
    inside = (1 << shift) - 1
    pages: list[int] = []
    length, previous_end = 0, elements[0][0]
    for count, (start, size) in enumerate(elements):
        end = start + size
        if end > ADDRESS_SPACE:
            raise Unmappable(f"element {count} ends at {end:#x}, beyond the address space")
        if count and start != previous_end and (start | previous_end) & inside:
            return pages, count, length  # a gap inside a page: a page vector cannot say it
        page = start & ~inside
        if pages and start == previous_end and start & inside:
            page += inside + 1  # its first bytes share the page of the element before it
        while page < end and size:
            if len(pages) == max_pages:
                return pages, count, length + max(0, page - start)
            pages.append(page)
            page += inside + 1
        length += size
        previous_end = end
    return pages, len(elements), length


def from_page_list(pages: Sequence[int], shift: int, iova: int, length: int) -> Mapping:
    """The mapping that a FAST_REG_MR asks for."""
    inside = (1 << shift) - 1
    fbo = iova & inside
    if length > (len(pages) << shift) - fbo:
        raise Unmappable(f"{length} bytes at offset {fbo} do not fit {len(pages)} pages of {inside + 1}")
    if iova + length > ADDRESS_SPACE:
        raise Unmappable(f"the region would end at {iova + length:#x}, beyond the address space")
    for page in pages:
        if page & inside:
            raise Unmappable(f"page {page:#x} is not aligned to {inside + 1}")
    return Mapping(iova, length, shift, fbo, tuple(pages))
