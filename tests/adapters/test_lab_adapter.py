"""The lab without a guest: options, what the host lacks, the emulator's command, the kernel module's interface."""

from __future__ import annotations

import ast
import fcntl
import os
import re
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from verbs_adapters.contract import VERBS, AdapterError
from verbs_adapters.kverbs import agent
from verbs_adapters.lab import adapter, host, kernels, machine, modules, own, tree
from verbs_conformance import cli, lab_cli, run_cli, running


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"colour": "red"}, "Known: kernel, device, api"),
        ({"kernel": "2.4"}, "Known: 6.1, 6.12, 7.2. Or give the folder of a kernel that you built"),
        ({"kernel": "./gone"}, "there is no folder ./gone"),
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


def test_every_program_that_is_asked_for_has_a_package() -> None:
    """A program without an entry would be told as a package of its own name, which is true of compilers only."""
    lab = Path(host.__file__).parent
    calls = [
        node
        for file in sorted(lab.glob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "host.require"
    ]
    asked = {word.value for call in calls for word in ast.walk(call.args[0]) if isinstance(word, ast.Constant)}

    assert len(asked) > 10
    assert asked <= set(host.PROGRAMS)


@pytest.mark.parametrize(
    ("series", "named", "unnamed"),
    [
        ("6.1", {"qemu-system-x86", "zstd", "gcc-12", "make", "debian-archive-keyring"}, {"debootstrap", "gcc-14"}),
        ("6.12", {"qemu-system-x86", "zstd", "debootstrap", "make", "debian-archive-keyring"}, {"gcc-12", "gcc-14"}),
    ],
)
def test_the_packages_of_a_kernel_are_named(series: str, named: set[str], unnamed: set[str]) -> None:
    done = CliRunner().invoke(lab_cli.lab, ["packages", series], standalone_mode=False)

    assert done.exit_code == 0
    assert named <= set(done.output.split())
    assert not unnamed & set(done.output.split())


def test_what_a_kernel_needs_that_one_built_is_told_before_it_boots(tmp_path: Path) -> None:
    headers = tmp_path / "usr/src/linux-headers-9.9"
    (headers / "include/config").mkdir(parents=True)
    (headers / "Makefile").touch()
    settings = "".join(f"CONFIG_{name}=y\n" for name in own.NEEDED if name not in {"VETH", "RDMA_RXE"})
    (headers / "include/config/auto.conf").write_text(f'CONFIG_CC_VERSION_TEXT="gcc-12 (x) 12"\n{settings}')
    (tmp_path / "lib/modules/9.9").mkdir(parents=True)
    (tmp_path / "lib/modules/9.9/modules.builtin").touch()

    with pytest.raises(AdapterError, match=r"9\.9 was configured without CONFIG_VETH, CONFIG_RDMA_RXE"):
        own.take(tmp_path, tmp_path / "run", adapter.tell)
    with pytest.raises(AdapterError, match=r"should hold the image of one kernel.*it holds none"):
        _ = own.OwnKernel(tmp_path, tmp_path).vmlinuz
    assert own.OwnKernel(tmp_path, tmp_path).kernel.compiler == "gcc-12"


@pytest.mark.skipif(
    host.missing(["make", "depmod"]) != {} and not os.environ.get("VERBSPEC_NEEDS_C"), reason="needs make and depmod"
)
def test_a_build_tree_installs_its_own_modules_and_stays_as_it_is(tmp_path: Path) -> None:
    tree, run = tmp_path / "linux", tmp_path / "run"
    (tree / "arch/x86/boot").mkdir(parents=True)
    (tree / "arch/x86/boot/bzImage").write_bytes(b"image")
    (tree / "include/config").mkdir(parents=True)
    settings = "".join(f"CONFIG_{name}=y\n" for name in own.NEEDED)
    (tree / "include/config/auto.conf").write_text(f"CONFIG_CC_IS_CLANG=y\n{settings}")
    (tree / "Makefile").write_text(
        "there := $(INSTALL_MOD_PATH)/lib/modules/9.9-mine\n"
        "modules_install:\n"
        "\tmkdir -p $(there)\n"
        "\techo kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko > $(there)/modules.builtin\n"
    )
    before = sorted(tree.rglob("*"))
    run.mkdir()

    kernel = own.take(tree, run, adapter.tell)
    kernel.copy_modules(("rdma_rxe",), run / "copied", run / "log")

    assert (kernel.release, kernel.vmlinuz, kernel.headers) == ("9.9-mine", tree / "arch/x86/boot/bzImage", tree)
    assert kernel.kernel.compiler == "clang"
    assert (run / "copied/9.9-mine/modules.builtin").exists()
    assert sorted(tree.rglob("*")) == before


@pytest.mark.parametrize(("end", "code"), [(0, 0), (1, 1), (2, 125), (3, 125), (4, 4), (5, 5)])
def test_a_run_that_decides_nothing_about_ones_own_kernel_cannot_test_it(
    end: int, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(running, "run", lambda *_args, **_rest: end)
    monkeypatch.setattr(run_cli, "opened", lambda _target: nullcontext((None, None)))

    done = CliRunner().invoke(cli.main, ["lab", "run", "--kernel", str(tmp_path)])
    usual = CliRunner().invoke(cli.main, ["lab", "run", "--kernel", "6.1"])

    assert done.exit_code == code
    assert usual.exit_code == end


def test_a_failing_program_is_told_with_the_end_of_its_output(tmp_path: Path) -> None:
    log = tmp_path / "log"

    with pytest.raises(AdapterError, match=r"(?s)unpacking failed.*ended with 3.*/log;.*\n  no such thing"):
        host.run(["sh", "-c", "echo no such thing >&2; exit 3"], log, what="unpacking")


def test_two_that_want_the_same_module_at_once_build_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "probe.c").touch()
    (tmp_path / "kernel/lib/modules/9.9").mkdir(parents=True)
    (tmp_path / "kernel/lib/modules/9.9/modules.builtin").touch()
    second_waits = threading.Event()
    builds: list[Path] = []
    lock = fcntl.flock

    def make_probe() -> Path:
        kernel = kernels.Kernel("9.9", "none", "cc")
        shop = modules.Workshop(kernel, tmp_path / "image", tree.Tree(tmp_path / "kernel"), adapter.tell)
        return shop.build("probe", source, (), strict=True)

    def tell_and_lock(file: int, how: int) -> None:
        if builds:
            second_waits.set()
        lock(file, how)

    with ThreadPoolExecutor() as pool:
        seconds: list[Future[Path]] = []

        def make(words: list[str], log: Path, **_rest: object) -> None:
            log.touch()
            if words[0] != "make":
                return
            folder = Path(next(word for word in words if word.startswith("M=")).removeprefix("M="))
            (folder / "probe.ko").write_bytes(b"module")
            builds.append(folder)
            seconds.append(pool.submit(make_probe))
            assert second_waits.wait(10), "the second one builds too"

        monkeypatch.setattr(host, "run", make)
        monkeypatch.setattr(host, "require", lambda *_: None)
        monkeypatch.setattr(fcntl, "flock", tell_and_lock)

        first = make_probe()

        assert [second.result() for second in seconds] == [first]
    assert first.read_bytes() == b"module"
    assert len(builds) == 1


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
