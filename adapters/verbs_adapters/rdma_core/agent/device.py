"""The device that was asked for, opened, with what connecting two of its queue pairs takes."""

from __future__ import annotations

import argparse
import contextlib
import ctypes as c
import errno
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from verbs_adapters.rdma_core.agent.layout import Context, Device, DeviceAttr, PortAttr
from verbs_adapters.rdma_core.agent.library import Unusable, load_library, succeed
from verbs_adapters.rdma_core.agent.names import LINK_ETHERNET, PORT_ACTIVE, TRANSPORT_IWARP


def devices(library: Any) -> list[tuple[str, int]]:
    """The name and the address of each device; the list is never freed, so that they stay valid."""
    count = c.c_int(0)
    c.set_errno(0)
    array = library.ibv_get_device_list(c.byref(count))
    if not array and c.get_errno() not in (0, errno.ENOSYS):  # ENOSYS: the kernel has no ib_uverbs
        raise Unusable(f"the RDMA devices cannot be listed: {os.strerror(c.get_errno())}")
    pointers: Any = c.cast(array, c.POINTER(c.c_void_p)) if array else []
    found = [pointers[i] for i in range(count.value)]
    return [(library.ibv_get_device_name(device).decode(), int(device or 0)) for device in found]


def choose(found: Sequence[tuple[str, int]], wanted: str) -> tuple[str, int]:
    """The device that was asked for, or the only one."""
    names = ", ".join(name for name, _ in found) or "none"
    if not found:
        raise Unusable(
            "no RDMA device on this machine (devices found: none). Load the driver of a device, or make a "
            "software one (`modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0`), or name another machine "
            "with `-o agent='ssh HOST'`."
        )
    if not wanted and len(found) > 1:
        raise Unusable(f"several RDMA devices on this machine; choose one with `-o device=NAME`: {names}.")
    for name, address in found:
        if wanted in ("", name):
            return name, address
    raise Unusable(f"no RDMA device is called `{wanted}`; devices found: {names}. Choose one with `-o device=NAME`.")


CONTRACT = "1.1"
VERSION = "1.1"


class Opened:
    """An open device with what connecting two of its queue pairs takes."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.library = load_library()
        self.name, device = choose(devices(self.library), options.device)
        c.set_errno(0)
        address = self.library.ibv_open_device(device)
        if not address:
            why = os.strerror(c.get_errno())
            raise Unusable(
                f"the device {self.name} cannot be opened: {why}. May this user read and write /dev/infiniband/uverbs*?"
            )
        self.context = Context.from_address(address)
        self.address = address
        self.attr = DeviceAttr()
        succeed(self.library.ibv_query_device(address, c.byref(self.attr)))
        if Device.from_address(device).transport_type == TRANSPORT_IWARP:
            raise Unusable(
                f"the device {self.name} is an iWARP device; its queue pairs are connected by rdma_cm, which this "
                "agent cannot do. Choose an InfiniBand or RoCE device."
            )
        self.port = self._port(options.port)
        self.ethernet = self.port.link_layer == LINK_ETHERNET
        self.port_number: int = options.port
        self.gid_index, self.gid = self._gid(options.gid_index)

    def _port(self, number: int) -> PortAttr:
        ports = self.attr.phys_port_cnt
        if not 1 <= number <= ports:
            raise Unusable(f"the device {self.name} has the ports 1 to {ports}, not {number}; see `-o port=NUMBER`.")
        attr = PortAttr()
        succeed(self.library.ibv_query_port(self.address, number, c.byref(attr)))
        if attr.state != PORT_ACTIVE:
            raise Unusable(
                f"port {number} of {self.name} is not active, so nothing can be sent. Bring its network up, or "
                "choose another with `-o port=NUMBER`."
            )
        return attr

    def _gid(self, wanted: int | None) -> tuple[int, bytes]:
        """The index and bytes of the source GID; a fresh RoCE device takes a moment until it has one."""
        until = time.monotonic() + 5.0
        while True:
            table = dict(self._gids())
            if wanted is not None and wanted in table:
                return wanted, table[wanted]
            if wanted is None and table:
                return min(table.items(), key=self._rank)
            if time.monotonic() > until:
                known = ", ".join(map(str, table)) or "none"
                which = "" if wanted is None else f" with index {wanted}"
                raise Unusable(
                    f"port {self.port_number} of {self.name} has no GID{which} (indices found: {known}). Give its "
                    "network interface an address, or see `-o gid_index=NUMBER`."
                )
            time.sleep(0.05)

    def _gids(self) -> Iterator[tuple[int, bytes]]:
        room = (c.c_uint8 * 16)()
        for index in range(min(self.port.gid_tbl_len, 256)):
            if not self.library.ibv_query_gid(self.address, self.port_number, index, room) and any(room):
                yield index, bytes(room)

    def _rank(self, entry: tuple[int, bytes]) -> tuple[bool, bool, int]:
        """RoCE v2 first, of these an IPv4 address, then the lowest index."""
        index, gid = entry
        kind = ""
        with contextlib.suppress(OSError):
            ports = Path("/sys/class/infiniband") / self.name / "ports" / str(self.port_number)
            kind = (ports / "gid_attrs" / "types" / str(index)).read_text(encoding="ascii").strip()
        return kind != "RoCE v2", not gid.startswith(b"\0" * 10 + b"\xff\xff"), index

    def hello(self, capabilities: Sequence[str]) -> dict[str, Any]:
        """The contract's Hello."""
        limits = {
            name: getattr(self.attr, name)
            for name in (field[0] for field in DeviceAttr._fields_)
            if name.startswith(("max_", "phys_port_cnt")) and getattr(self.attr, name) >= 0
        }
        limits |= {name: 128 << getattr(self.port, name) for name in ("max_mtu", "active_mtu")}
        return {
            "contract": CONTRACT,
            "name": "rdma-core",
            "version": VERSION,
            "device": self.name,
            "firmware": self.attr.fw_ver.decode("ascii", "replace"),
            "kernel": os.uname().release,
            "api": ["linux-user"],
            "transport": ["roce" if self.ethernet else "ib"],
            "capabilities": list(capabilities),
            "limits": limits,
        }
