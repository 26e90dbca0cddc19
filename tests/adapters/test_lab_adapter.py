"""The lab without a guest: options, what the host lacks, the emulator's command, the kernel module's interface."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from verbs_adapters.contract import VERBS, AdapterError
from verbs_adapters.kverbs import agent
from verbs_adapters.lab import adapter, host, kernels, machine, modules


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"colour": "red"}, "Known: kernel, device, api"),
        ({"kernel": "2.4"}, "Known: 6.1, 6.12, 7.2"),
        ({"device": "mlx5"}, "Known: rxe"),
        ({"api": "windows"}, "Known: linux-kernel, linux-user"),
        ({"deadline": "soon"}, "not a time"),
        ({"boot_deadline": "-1"}, "not a time"),
    ],
)
def test_an_unusable_option_is_refused_with_what_is_known(options: dict[str, str], said: str) -> None:
    with pytest.raises(AdapterError, match=re.escape(said)):
        adapter.settings(options)


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(host, "_SYSTEM_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(
        AdapterError, match=r"needs cpio, qemu-system-x86_64, which.*apt-get install cpio qemu-system-x86"
    ):
        host.require(("qemu-system-x86_64", "cpio"), "starting a guest")


def test_a_failing_program_is_told_with_the_end_of_its_output(tmp_path: Path) -> None:
    log = tmp_path / "log"

    with pytest.raises(AdapterError, match=r"(?s)unpacking failed.*ended with 3.*/log;.*\n  no such thing"):
        host.run(["sh", "-c", "echo no such thing >&2; exit 3"], log, what="unpacking")


def test_the_emulator_gets_each_port_as_a_socket_and_the_console_on_its_output() -> None:
    words = machine.command(Path("/k"), Path("/i"), "tcg", {"device": "rxe"}, {"agent": 7, "warden": 9})

    line = " ".join(words)
    assert "-kernel /k -initrd /i" in line
    assert "socket,id=agent,fd=7" in line
    assert "virtserialport,chardev=warden,name=warden" in line
    assert "verbspec.device=rxe" in line
    assert "-accel tcg" in line


def test_every_kernel_names_a_suite_of_its_own() -> None:
    suites = [kernel.suite for kernel in kernels.KERNELS.values()]

    assert len(set(suites)) == len(suites)


# -- the agent and the module must agree on what crosses the device file --------------------------------


def header() -> str:
    return (modules.KVERBS / "abi.h").read_text(encoding="utf-8")


def enumerators(name: str) -> list[str]:
    found = re.search(rf"enum {name} {{(.*?)}};", header(), re.DOTALL)
    assert found
    return re.findall(r"^\s*(KV_\w+)", found[1], re.MULTILINE)


def test_verbs_have_the_same_numbers_on_both_sides() -> None:
    names = [name.removeprefix("KV_").lower() for name in enumerators("kverbs_verb")][:-1]

    assert names == list(agent.NUMBERS)


def test_opcodes_have_the_same_numbers_on_both_sides() -> None:
    names = [name.removeprefix("KV_OP_") for name in enumerators("kverbs_opcode")]

    assert names == list(agent.OPCODES)


def test_the_structures_have_the_same_size_on_both_sides() -> None:
    ins, outs = (int(re.search(rf"#define KVERBS_{n} (\d+)", header())[1]) for n in ("INS", "OUTS"))  # type: ignore[index]

    assert agent.CALL.size == 4 + 4 + 8 + 8 * (ins + outs)
    assert agent.OPEN.size == 64 + 64 + 7 * 8


def test_the_agent_has_every_verb_of_its_api() -> None:
    other = {"alloc_fast_reg_mr", "alloc_fast_reg_page_list", "free_fast_reg_page_list", "set_page_list"}
    kernel = {"alloc_mr", "map_mr_sg", "update_fast_reg_key", "post_send", "post_recv", "poll_cq", "settle"}

    missing = {verb for verb in VERBS if not hasattr(agent.Device, verb)}

    assert not missing & kernel
    assert other <= missing


def test_an_errno_that_user_space_never_sees_has_a_name() -> None:
    assert agent.name_of(22) == "EINVAL"
    assert agent.name_of(524) == "ENOTSUPP"
    assert agent.name_of(4000) == "E4000"
