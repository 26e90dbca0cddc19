"""A mutant: one place of one of softhca's sources, changed."""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "verbs_adapters.softhca"


def _sources() -> Path:
    """Where the package's sources are, of the checkout or installed; it is not imported, for a mutant comes first."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{PACKAGE} is not installed: run `pip install -e .` in the checkout, and again")
    return Path(spec.origin).parent


SOURCES = _sources()


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one place of a source."""

    group: str
    module: str
    function: str
    line: int
    lines: tuple[int, ...]
    """The lines of the original that execute what was changed; none if that happens whatever is done."""
    old: str
    """The changed lines of the original."""
    new: str
    used: frozenset[tuple[str, int]] = field(repr=False)
    """Lines of all modules that use what was changed, where no line executes it that could be told."""
    source: str = field(repr=False)
    """The whole of the changed source."""

    @property
    def words(self) -> frozenset[str]:
        """The words of the changed lines."""
        return frozenset(re.findall(r'"(\w+)"', self.old))

    @property
    def name(self) -> str:
        """What tells it from every other; the same as long as its module stays as it is."""
        return f"{self.module}:{self.line}:{hashlib.sha256(self.source.encode()).hexdigest()[:8]}"


@dataclass(slots=True)
class Drawn:
    """What was drawn, and how many were passed over, for each reason."""

    mutants: list[Mutant] = field(default_factory=list)
    passed: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    """How many mutants each group has in all."""


def mutant(group: str, module: str, text: str, changed: str, lines: tuple[int, ...] = ()) -> Mutant:
    """The mutant that turns one text into another."""
    one, other = text.splitlines(), changed.splitlines()
    edits = [e for e in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes() if e[0] != "equal"]
    begin, end = edits[0][1], max(edits[-1][2], edits[0][1] + 1)
    new = other[edits[0][3] : edits[-1][4]]
    line = begin + 1
    own = (lines or tuple(range(line, end + 1))) if _in_function(text, line) else ()
    used = frozenset[tuple[str, int]]() if own else _users(module, text, line)
    return Mutant(
        *(group, module, _function(text, line), line, own, _joined(one[begin:end]), _joined(new)), used, changed
    )


def _users(module: str, text: str, line: int) -> frozenset[tuple[str, int]]:
    """The lines of all modules that name what the statement of a line assigns, or what is made of it; of a class, those
    of its module."""
    tree = ast.parse(text)
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Assign | ast.AnnAssign)]
    made = {name: _names(n) for n in nodes if n in tree.body for name in _assigned(n)}
    here = [n for n in nodes if n.lineno <= line <= (n.end_lineno or n.lineno)]
    names = {name for n in here for name in _assigned(n)} - {"__slots__"}
    while more := {name for name, of in made.items() if of & names} - names:
        names |= more
    if not names:
        return frozenset((module, number) for number in range(1, text.count("\n") + 1))
    word = re.compile(rf"\b({'|'.join(names)})\b")
    return frozenset(
        (path.stem, number)
        for path in SOURCES.glob("*.py")
        for number, each in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if word.search(each)
    )


def _assigned(node: ast.Assign | ast.AnnAssign) -> set[str]:
    return {name for t in (node.targets if isinstance(node, ast.Assign) else [node.target]) for name in _names(t)}


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _joined(lines: list[str]) -> str:
    return "\n".join(line.strip() for line in lines)


def _in_function(text: str, line: int) -> bool:
    """Whether a line is executed by calls only."""
    defs = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    return any(n.body[0].lineno <= line <= (n.end_lineno or n.lineno) for n in defs)


def _function(text: str, line: int) -> str:
    """The innermost function or class that a line stands in, by its full name."""
    found: list[str] = []
    nodes: list[ast.stmt] = ast.parse(text).body
    while nodes:
        inner = [n for n in nodes if n.lineno <= line <= (n.end_lineno or n.lineno)]
        named = [n for n in inner if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        found += [n.name for n in named]
        nodes = named[0].body if named else []
    return ".".join(found)
