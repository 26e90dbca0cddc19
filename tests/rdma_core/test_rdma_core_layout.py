"""The agent's structures are those of the header, member by member."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

from rdma_core_rig import compile_c

from verbs_adapters.rdma_core import agent

RENAMED = {"remote_addr": "wr.rdma.remote_addr", "rkey": "wr.rdma.rkey"}
"""Members of ibv_send_wr that the agent takes out of their unions."""

OURS = {"room_for_later_releases", "rest_of_the_unions"}
WHOLE = ["ibv_device_attr", "ibv_qp_init_attr", "ibv_qp_attr", "ibv_ah_attr", "ibv_sge", "ibv_recv_wr", "ibv_wc"]
"""Structures that the agent knows to their end."""


def members() -> list[tuple[str, str, int]]:
    """Structure and member in C, and where the agent holds the member to be."""
    found = []
    for name, structure in agent.LAYOUT.items():
        for field in structure._fields_:
            if field[0] in OURS:
                continue
            member = RENAMED.get(field[0], field[0]) if name == "ibv_send_wr" else field[0]
            found.append((name, member, getattr(structure, field[0]).offset))
    ops = agent.Context.ops.offset
    used = ("poll_cq", "post_send", "post_recv", "alloc_mw", "bind_mw", "dealloc_mw", "req_notify_cq")
    return [*found, *(("ibv_context", f"ops.{op}", ops + getattr(agent.ContextOps, op).offset) for op in used)]


def test_members_lie_where_the_header_has_them(tmp_path: Path) -> None:
    lines = ["#include <stddef.h>", "#include <stdio.h>", "#include <infiniband/verbs.h>", "int main(void) {"]
    lines += [f'printf("%zu\\n", offsetof(struct {name}, {member}));' for name, member, _ in members()]
    lines += [f'printf("%zu\\n", sizeof(struct {name}));' for name in WHOLE]
    lines += ['printf("%zu\\n", sizeof(struct ibv_send_wr));', "return 0; }"]
    source = tmp_path / "offsets.c"
    source.write_text("\n".join(lines))
    out = subprocess.run([compile_c(source, tmp_path / "offsets")], capture_output=True, text=True, check=True)
    seen = list(map(int, out.stdout.split()))
    expected = [offset for _, _, offset in members()]
    expected += [ctypes.sizeof(agent.LAYOUT[name]) for name in WHOLE]
    assert seen[:-1] == expected
    assert seen[-1] <= ctypes.sizeof(agent.SendWr)


def test_numbers_are_those_of_the_header(tmp_path: Path) -> None:
    table = {f"IBV_QPS_{name}": number for number, name in enumerate(agent.STATES)}
    table |= {f"IBV_WC_{name}": number for number, name in enumerate(agent.STATUSES)}
    table |= {f"IBV_WR_{name}": number for name, number in agent.OPCODES.items()}
    table |= {f"IBV_WC_{name}": number for number, name in agent.WC_OPCODES.items()}
    table |= {f"IBV_ACCESS_{name}": number for name, number in agent.ACCESS.items()}
    table |= {f"IBV_QP_{name}": number for name, number in agent.ATTR.items()}
    table |= {f"IBV_EVENT_{name}": number for number, name in enumerate(agent.EVENTS)}
    table |= {"IBV_SEND_FENCE": agent.FENCE, "IBV_SEND_SIGNALED": agent.SIGNALED, "IBV_WC_WITH_INV": agent.WC_WITH_INV}
    table |= {"IBV_QPT_RC": agent.QPT_RC, "IBV_LINK_LAYER_ETHERNET": agent.LINK_ETHERNET}
    table |= {"IBV_TRANSPORT_IWARP": agent.TRANSPORT_IWARP, "IBV_PORT_ACTIVE": agent.PORT_ACTIVE}
    lines = ["#include <stdio.h>", "#include <infiniband/verbs.h>", "int main(void) {"]
    lines += [f'printf("%d\\n", (int)({name}));' for name in table]
    source = tmp_path / "numbers.c"
    source.write_text("\n".join([*lines, "return 0; }"]))
    out = subprocess.run([compile_c(source, tmp_path / "numbers")], capture_output=True, text=True, check=True)
    assert dict(zip(table, map(int, out.stdout.split()), strict=True)) == table
