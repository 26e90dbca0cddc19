"""Programs as data: what is run against a backend, whichever way it was made.

A program file is YAML: one program, or a list of them under ``programs``.  Steps are lines of one block::

    program: reg/valid
    api: [linux-kernel]
    fixture: registered
    steps: |
      post_send(qp=qp1, opcode=REG_MR, mr=mr0, key=tag(mr0.first, 2), wr_id=1, signaled=true)
      settle()
      drain(cq=cq1)

A line is a call with named arguments, whose values are expressions of the specification's language over the names
that earlier lines gave; ``x = call(...)`` names the object that a call returns.  ``settle()`` waits until the
device has nothing left to do; ``drain(cq=...)`` polls until the queue is empty.  A fixture is a program too.

The file of a failure holds all that repeats it: ``seed``, ``adapter`` and ``options`` besides the profiles, and in
``passed`` what decided which suspects are named.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path

from verbs_conformance.errors import BadProgram
from verbs_conformance.step import Step
from verbs_spec.document import Spec
from verbs_spec.errors import SpecError, Where, listed, near
from verbs_spec.text import Map, Node, Seq, Text, read

_KEYS = (
    "program",
    "kind",
    "target",
    "says",
    "sources",
    "api",
    "transport",
    "feature",
    "peril",
    "seed",
    "adapter",
    "options",
    "passed",
    "device",
    "fixture",
    "steps",
)


OWN_STEPS = {"settle", "drain"}
"""Steps that are no calls of the specification."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program: steps after a fixture, and what it was made for.

    ``api`` and ``transport`` restrict it to profiles (empty: any), and it needs each ``feature``.  ``target`` is a
    rule's id or empty.  ``adapter`` and its ``options`` are what a replay uses unless the command line names others.
    ``passed`` says for suspected rules in how many programs of the run they had fired and all was well, see
    :mod:`verbs_conformance.acquittal`.  ``peril`` says which kernel it is known to crash: a run makes it only if
    that is asked for, and then after all others.  ``device`` says what the device does where the rules leave it open,
    see :mod:`verbs_conformance.device`.
    """

    name: str
    steps: tuple[Step, ...]
    fixture: str = ""
    kind: str = "directed"
    target: str = ""
    says: str = ""
    api: tuple[str, ...] = ()
    transport: tuple[str, ...] = ()
    feature: tuple[str, ...] = ()
    seed: int | None = None
    adapter: str = ""
    options: tuple[tuple[str, str], ...] = ()
    passed: tuple[tuple[str, int], ...] = ()
    peril: str = ""
    device: tuple[tuple[str, str], ...] = ()
    before: Program | None = None
    """The fixture made over, where it is not the one of that name."""

    @property
    def prefix(self) -> str:
        """The name of what it stands on."""
        return self.fixture if self.before is None else self.before.name

    def whole(self) -> Program:
        """The program without a fixture, if its fixture is in no file."""
        if self.before is None:
            return self
        return replace(self, fixture="", before=None, steps=(*self.before.steps, *self.steps))

    def applies(self, api: str, transport: str) -> bool:
        """Whether the program is meant for these profiles."""
        return (not self.api or api in self.api) and (not self.transport or transport in self.transport)

    def under(self, spec: Spec) -> bool:
        """Whether the program is meant for the profiles and features that a specification was selected for.

        It is for none that lacks a call which it or its fixture makes, or a rule of which its device makes use.
        """
        meant = self.applies(*(spec.selected or ("", ""))) and set(self.feature) <= set(spec.features)
        return meant and spec.elsewhere.isdisjoint({*self.calls, *dict(self.device)})

    @property
    def calls(self) -> set[str]:
        """The calls of the specification that the program and its fixture make."""
        before, own = full_steps(self, fixtures())
        return {each.call for each in (*before, *own)} - OWN_STEPS

    def to_yaml(self) -> str:
        """The program as a file; the same program gives the same bytes."""
        lines = [f"program: {_quoted(self.name)}", f"kind: {self.kind}"]
        if self.target:
            lines.append(f"target: {self.target}")
        if self.says:
            lines.append(f"says: {_quoted(self.says)}")
        conditions = (("api", self.api), ("transport", self.transport), ("feature", self.feature))
        lines += [f"{key}: [{', '.join(names)}]" for key, names in conditions if names]
        if self.peril:
            lines.append(f"peril: {_quoted(self.peril)}")
        if self.seed is not None:
            lines.append(f"seed: {self.seed}")
        if self.adapter:
            lines.append(f"adapter: {_quoted(self.adapter)}")
        if self.device:
            lines.append("device:")
            lines += [f"  {k}: {v}" for k, v in self.device]
        if self.options:
            lines.append("options:")
            lines += [f"  {k}: {_quoted(v)}" for k, v in self.options]
        if self.passed:
            lines.append("passed:")
            lines += [f"  {k}: {v}" for k, v in self.passed]
        if self.fixture:
            lines.append(f"fixture: {self.fixture}")
        return "\n".join([*lines, "steps: |", *(f"  {step}" for step in self.steps)]) + "\n"


def parse(text: str, file: str) -> list[Program]:
    """The programs of a file's text; BadProgram says file, line and column and whose fault it is."""
    try:
        node = read(text, file)
        if isinstance(node, Map) and "programs" in node:
            return [of_node(item) for item in _seq(node[node.key("programs")])]
        return [of_node(node)]
    except SpecError as e:
        raise BadProgram(f"{e}\nThe fault is the program file's: correct it and run it again.") from None


def load(path: Path) -> list[Program]:
    """The programs of a file; BadProgram if it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise BadProgram(f"the program file {path} cannot be read: {e}") from None
    return parse(text, str(path))


def dump(programs: Iterable[Program]) -> str:
    """Several programs as one file."""
    parts = []
    for program in programs:
        first, *rest = program.to_yaml().rstrip("\n").split("\n")
        parts.append("\n".join([f"  - {first}", *(f"    {line}" for line in rest)]))
    return "programs:\n" + "\n".join(parts) + "\n"


@cache
def shipped(folder: str) -> tuple[Program, ...]:
    """All programs of a folder of this package, in order of the files' names; read once."""
    root = resources.files("verbs_conformance").joinpath(folder)
    found: list[Program] = []
    for item in sorted(root.iterdir(), key=lambda i: i.name):
        if item.name.endswith(".yaml"):
            found += parse(item.read_text(encoding="utf-8"), f"{folder}/{item.name}")
    return tuple(found)


def fixtures() -> dict[str, Program]:
    """The fixtures by name."""
    return {p.name: p for p in shipped("fixtures")}


def continuations(spec: Spec) -> list[Program]:
    """What the sweep lets follow under the profiles and features that a specification was selected for."""
    return [p for p in shipped("continuations") if p.under(spec)]


def full_steps(program: Program, known: Mapping[str, Program]) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """The steps of the fixtures that a program stands on, outermost first, and its own."""
    if program.before is not None:
        return program.before.steps, program.steps
    before: list[Step] = []
    name = program.fixture
    seen: list[str] = []
    while name:
        if name not in known or name in seen:
            raise BadProgram(
                f"program {program.name} stands on the fixture {name!r}, which is not there; "
                f"known: {listed(sorted(known))}{near(name, sorted(known))}"
            )
        seen.append(name)
        before[:0] = known[name].steps
        name = known[name].fixture
    return tuple(before), program.steps


def step(line: Text) -> Step:
    """One step from its line."""
    try:
        tree = ast.parse(line.strip())
    except SyntaxError as e:
        raise SpecError(
            f"{str(line).strip()!r} is not a step: {e.msg}", line.at(0, max((e.offset or 1) - 1, 0))
        ) from None
    form = "a step is 'verb(name=value, ...)' or 'x = verb(...)'"
    if len(tree.body) != 1:
        raise SpecError(f"{str(line).strip()!r} is not one step; {form}", line.where)
    node = tree.body[0]
    names: list[str] = []
    value: ast.expr | None = None
    if isinstance(node, ast.Assign):
        value = node.value
        targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else [node.targets[0]]
        names = [t.id for t in targets if isinstance(t, ast.Name)]
    elif isinstance(node, ast.Expr):
        value = node.value
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name) or value.args:
        raise SpecError(f"{str(line).strip()!r} is not a step; {form}", line.where)
    source = line.strip()
    args = {}
    for k in value.keywords:
        if k.arg is None or k.arg in args:
            raise SpecError(f"{str(line).strip()!r}: each argument stands once and by name; {form}", line.where)
        args[k.arg] = _source(source, k.value)
    return Step(value.func.id, args, {f"#{i}": name for i, name in enumerate(names)})


@cache
def _step(line: str) -> Step:
    """One step; many programs have the same."""
    return step(Text(line, Where("", 1, 1)))


def _source(line: str, tree: ast.expr) -> str:
    """The text of an expression; ast's own function splits the whole source anew for each."""
    if tree.end_lineno != 1 or not line.isascii():  # columns count bytes
        return (ast.get_source_segment(line, tree) or "").strip()
    return line[tree.col_offset : tree.end_col_offset].strip()


def of_node(node: Node) -> Program:
    """The program of a mapping of a YAML file; SpecError says what is wrong with it."""
    if not isinstance(node, Map):
        raise SpecError("a program is a mapping with program and steps", node.where)
    for key in node:
        if key not in _KEYS:
            raise SpecError(
                f"unknown key {str(key)!r} in a program; the keys are {listed(_KEYS)}{near(key, _KEYS)}",
                key.where,
            )
    for needed in ("program", "steps"):
        if needed not in node:
            raise SpecError(f"a program must have {needed!r}; it has {listed([str(k) for k in node])}", node.where)
    seed = _text(node, "seed")
    if seed and not seed.isdigit():
        raise SpecError(f"seed is {seed!r}; it must be a number", node[node.key("seed")].where)
    passed = _map(node, "passed", "the programs in which suspected rules had fired and all was well")
    for count in passed.values():
        if not str(count).isdigit():
            raise SpecError(f"passed counts programs; {str(count)!r} is no number", count.where)
    return Program(
        name=_text(node, "program"),
        steps=_steps(node),
        fixture=_text(node, "fixture"),
        kind=_text(node, "kind") or "directed",
        target=_text(node, "target"),
        says=_text(node, "says"),
        api=_list(node, "api"),
        transport=_list(node, "transport"),
        feature=_list(node, "feature"),
        peril=_text(node, "peril"),
        seed=int(seed) if seed else None,
        adapter=_text(node, "adapter"),
        device=tuple((str(k), str(v)) for k, v in _map(node, "device", "what the device does").items()),
        options=tuple((str(k), str(v)) for k, v in _map(node, "options", "adapter options").items()),
        passed=tuple((str(k), int(str(v))) for k, v in passed.items()),
    )


def _map(node: Map, key: str, what: str) -> dict[Text, Node]:
    found = node[node.key(key)] if key in node else None
    if found is None:
        return {}
    if not isinstance(found, Map):
        raise SpecError(f"{key} is a mapping of {what}", found.where)
    return dict(found.items())


def _steps(node: Map) -> tuple[Step, ...]:
    block = node[node.key("steps")]
    if not isinstance(block, Text):
        raise SpecError("steps is a block of lines ('steps: |'), one step a line", block.where)
    made = []
    start = 0
    for line in block.split("\n"):
        if line.strip() and not line.strip().startswith("#"):
            try:
                made.append(_step(line.strip()))
            except SpecError:
                # Where a line stands takes a walk over the file's text, so it is found only for an error.
                made.append(step(block.part(start, start + len(line))))
        start += len(line) + 1
    return tuple(made)


def _text(node: Map, key: str) -> str:
    if key not in node:
        return ""
    value = node[node.key(key)]
    if not isinstance(value, Text):
        raise SpecError(f"{key} is text", value.where)
    return str(value)


def _list(node: Map, key: str) -> tuple[str, ...]:
    if key not in node:
        return ()
    return tuple(str(v) for v in _seq(node[node.key(key)]))


def _seq(node: Node) -> Seq:
    if not isinstance(node, Seq):
        raise SpecError("this must be a list", node.where)
    return node


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'
