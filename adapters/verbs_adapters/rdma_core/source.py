"""The agent as one plain Python file, made of the modules of the package `agent`.

Theory of operation
-------------------
A target is given one file (decision 50), and what people read and change has parts of a readable size.  So the parts
are put one behind the other: the docstring of the package in front, then what they import of the standard library,
then each part, its docstring as a comment, without what it imports of the others.  Nothing is rewritten, so names of
the parts must not collide, and a part may import names of earlier parts only; both are checked here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib import resources
from textwrap import indent
from typing import NamedTuple

PACKAGE = "verbs_adapters.rdma_core.agent"

PARTS = (
    *("names", "layout", "library", "values", "memory", "device", "objects", "regions", "inquiry", "events"),
    *("queues", "pairs", "work", "consumer", "wire", "worker", "supervisor"),
)
"""The modules of the package, each behind those that it imports from."""

TAIL = """
if __name__ == "__main__":
    main()
"""


class Part(NamedTuple):
    """What a module gives to the file."""

    name: str
    title: str
    imports: list[str]
    """Of the standard library."""
    names: set[str]
    """What it defines at its outermost level."""
    text: str


def _text(name: str) -> str:
    return resources.files(PACKAGE).joinpath(f"{name}.py").read_text(encoding="utf-8")


def _own_imports(name: str, node: ast.ImportFrom, known: dict[str, set[str]]) -> None:
    """Raise unless the import can be left out of the file."""
    module = (node.module or "").removeprefix(f"{PACKAGE}.")
    for alias in node.names:
        if alias.asname or module not in known or alias.name not in known[module]:
            raise AssertionError(f"{name}.py imports {alias.name} of {module}, which no earlier part defines")


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    for alias in node.names:
        yield ast.unparse(
            ast.ImportFrom(node.module, [alias], 0) if isinstance(node, ast.ImportFrom) else ast.Import([alias])
        )


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            yield from (leaf.id for leaf in ast.walk(target) if isinstance(leaf, ast.Name))


def part(name: str, known: dict[str, set[str]]) -> Part:
    """Take a module apart; `known` is what the parts before it define."""
    text = _text(name)
    tree, lines = ast.parse(text), text.splitlines()
    imports: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            _own_imports(name, node, known)
        elif isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "module", "") != "__future__":
            imports += _imported(node)
        if isinstance(node, ast.Import | ast.ImportFrom) or node is tree.body[0]:
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return Part(name, ast.get_docstring(tree) or "", imports, set(_defined(tree)), "\n".join(lines).strip())


def parts() -> list[Part]:
    """All parts, in order."""
    known: dict[str, set[str]] = {}
    found = []
    for name in PARTS:
        made = part(name, known)
        for other, names in known.items():
            if collision := names & made.names:
                raise AssertionError(f"{name}.py and {other}.py both define {', '.join(sorted(collision))}")
        known[name] = made.names
        found.append(made)
    return found


def _joined(imports: set[str]) -> list[str]:
    """Import statements, one for each module."""
    members: dict[str, list[str]] = {}
    for line in sorted(line for line in imports if line.startswith("from ")):
        module, _, member = line.partition(" import ")
        members.setdefault(module, []).append(member)
    plain = sorted(line for line in imports if line.startswith("import "))
    return plain + [f"{module} import {', '.join(names)}" for module, names in members.items()]


@cache
def agent_source() -> bytes:
    """The agent, as it is sent to the target."""
    found = parts()
    text = _text("__init__").strip() + "\n\nfrom __future__ import annotations\n\n"
    text += "\n".join(_joined({line for made in found for line in made.imports})) + "\n"
    for made in found:
        rule = f"# -- {made.name} ".ljust(104, "-")
        title = indent(made.title, "# ", lambda _: True).replace("# \n", "#\n")
        text += f"\n{rule}\n\n{title}\n\n{made.text}\n\n"
    return (text + TAIL).encode()
