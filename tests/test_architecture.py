"""The arrows between the packages go one way, and the built-in device knows nothing of the specification."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "verbs_spec": ("spec", set()),
    "verbs_reference": ("reference", {"verbs_spec"}),
    "verbs_adapters": ("adapters", set()),
    "verbs_reports": ("reports", set()),
    "verbs_conformance": ("conformance", {"verbs_spec", "verbs_reference", "verbs_adapters", "verbs_reports"}),
}


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    names += [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    return {n for n in names if n.split(".")[0] in PACKAGES}


@pytest.mark.parametrize("package", PACKAGES)
def test_arrows(package: str) -> None:
    folder, allowed = PACKAGES[package]
    files = sorted((ROOT / folder / package).rglob("*.py"))
    assert files
    for path in files:
        others = {n.split(".")[0] for n in imported(path)} - {package}

        assert others <= allowed, f"{path.name} imports {others - allowed}"


def test_softhca_knows_only_the_contract() -> None:
    for path in (ROOT / "adapters/verbs_adapters/softhca").rglob("*.py"):
        for name in imported(path):
            assert name.startswith(("verbs_adapters.softhca", "verbs_adapters.contract")), path.name


def test_only_one_module_knows_z3() -> None:
    users = {
        p.name
        for folder, _ in PACKAGES.values()
        for p in (ROOT / folder).rglob("*.py")
        if "import z3" in p.read_text(encoding="utf-8")
    }

    assert users == {"symbolic.py"}


def test_conformance_names_the_device_only_to_list_its_faults() -> None:
    users = {p.name for p in (ROOT / "conformance").rglob("*.py") if any("softhca" in n for n in imported(p))}

    assert users == {"faults.py"}
