"""The agent's structures are those of the header, member by member."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path

from rdma_core_rig import compile_c

from verbs_adapters.contract import VERBS
from verbs_adapters.rdma_core.agent import layout, names
from verbs_adapters.rdma_core.agent.pairs import PLACES
from verbs_adapters.rdma_core.agent.values import take

OURS = {"room_for_later_releases"}
WHOLE = [
    *("ibv_device_attr", "ibv_qp_init_attr", "ibv_qp_attr", "ibv_ah_attr", "ibv_sge", "ibv_recv_wr", "ibv_send_wr"),
    *("ibv_wc", "ibv_mw", "ibv_mw_bind", "ibv_mw_bind_info", "ibv_srq_attr", "ibv_srq_init_attr", "ibv_async_event"),
]
"""Structures that the agent knows to their end."""

Fields = type[ctypes.Structure | ctypes.Union]


def inside(structure: Fields, path: str = "", start: int = 0) -> Iterator[tuple[str, int]]:
    """Each member, also of the structures and unions that are members, with its offset."""
    for name, kind, *_ in structure._fields_:
        if name in OURS:
            continue
        offset = start + getattr(structure, name).offset
        yield path + name, offset
        if isinstance(kind, type) and issubclass(kind, ctypes.Structure | ctypes.Union):
            yield from inside(kind, f"{path}{name}.", offset)


def members() -> list[tuple[str, str, int]]:
    """Structure and member in C, and where the agent holds the member to be."""
    members_of_ops = ("poll_cq", "post_send", "post_recv", "post_srq_recv", "alloc_mw", "bind_mw", "dealloc_mw")
    used = {f"ops.{name}" for name in (*members_of_ops, "req_notify_cq")}
    return [
        (name, member, offset)
        for name, structure in layout.LAYOUT.items()
        for member, offset in inside(structure)
        if not member.startswith("ops.") or member in used
    ]


def test_members_lie_where_the_header_has_them(tmp_path: Path) -> None:
    lines = ["#include <stddef.h>", "#include <stdio.h>", "#include <infiniband/verbs.h>", "int main(void) {"]
    lines += [f'printf("%zu\\n", offsetof(struct {name}, {member}));' for name, member, _ in members()]
    lines += [f'printf("%zu\\n", sizeof(struct {name}));' for name in WHOLE]
    lines += ["return 0; }"]
    source = tmp_path / "offsets.c"
    source.write_text("\n".join(lines))
    out = subprocess.run([compile_c(source, tmp_path / "offsets")], capture_output=True, text=True, check=True)
    seen = list(map(int, out.stdout.split()))
    expected = [offset for _, _, offset in members()]
    expected += [ctypes.sizeof(layout.LAYOUT[name]) for name in WHOLE]
    assert seen == expected


def test_each_attribute_has_its_place() -> None:
    attr = layout.QpAttr()
    assert [take(attr, place) for place in PLACES.values() if not place.endswith("dgid")] == [0] * (len(PLACES) - 1)
    for verb in ("modify_qp", "query_qp"):
        shape = VERBS[verb].params if verb == "modify_qp" else VERBS[verb].out
        assert PLACES.keys() <= shape.keys()


def test_numbers_are_those_of_the_header(tmp_path: Path) -> None:
    table = {f"IBV_QPS_{name}": number for number, name in enumerate(names.STATES)}
    table |= {f"IBV_WC_{name}": number for number, name in enumerate(names.STATUSES)}
    table |= {f"IBV_WR_{name}": number for name, number in names.OPCODES.items()}
    table |= {f"IBV_WC_{name}": number for number, name in names.WC_OPCODES.items()}
    table |= {f"IBV_QP_{name}": number for name, number in names.ATTR.items()}
    table |= {f"IBV_QPT_{name}": number for name, number in names.QP_TYPES.items()}
    table |= {f"IBV_EVENT_{name}": number for number, name in enumerate(names.EVENTS)}
    table |= {f"IBV_SEND_{name.upper()}": number for name, number in names.SEND_FLAGS.items()}
    table |= {f"IBV_ACCESS_{name}": number for name, number in names.ACCESS.items()}
    table |= {f"IBV_REREG_MR_{name}": number for name, number in names.REREG.items()}
    table |= {f"IBV_MW_{name}": number for name, number in names.MW_TYPES.items()}
    table |= {f"IBV_SRQ_{name}": number for name, number in names.SRQ_ATTR.items()}
    table |= {f"IBV_{name}": number for name, number in names.MTUS.items()}
    table |= {f"IBV_MIG_{name}": number for name, number in names.MIGRATIONS.items()}
    table |= {f"IBV_DEVICE_{name}": number for name, number in names.DEVICE_FLAGS.items()}
    table |= {f"IBV_PORT_{name}": number for number, name in enumerate(names.PORT_STATES)}
    table |= {f"IBV_LINK_LAYER_{name}": number for number, name in enumerate(names.LINK_LAYERS)}
    table |= {f"IBV_ATOMIC_{name}": number for number, name in enumerate(names.ATOMIC_CAPS)}
    table |= {"IBV_WC_GRH": names.WC_GRH, "IBV_WC_WITH_IMM": names.WC_WITH_IMM, "IBV_WC_WITH_INV": names.WC_WITH_INV}
    table |= {"IBV_TRANSPORT_IWARP": names.TRANSPORT_IWARP}
    lines = ["#include <stdio.h>", "#include <infiniband/verbs.h>", "int main(void) {"]
    lines += [f'printf("%d\\n", (int)({name}));' for name in table]
    source = tmp_path / "numbers.c"
    source.write_text("\n".join([*lines, "return 0; }"]))
    out = subprocess.run([compile_c(source, tmp_path / "numbers")], capture_output=True, text=True, check=True)
    assert dict(zip(table, map(int, out.stdout.split()), strict=True)) == table
