"""What a refused call would have been allowed to answer, in the verbs' terms.

Theory of operation
-------------------
A rule's output test is a formula over fields of the model's state, which a person who debugs a driver has never seen.
So it is solved here, in every state that explains what came before, for each rule that decides the call there.  What
a test says of the arguments and the state is evaluated; what is left says which values an output may have.  An output
that must equal something has that value; of a finite type (enumerator, truth value, few flags) every value is tried;
a number may have a bound.  What none of this solves is quoted if it is short, else the rule is named.

Outputs are told only where what was seen is not among the values, or the answer held nothing.  Lines of one rule that
differ in one output are one line.  The nearest come first: the result that was seen, and the fewest wrong outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from verbs_reference import nodes as n
from verbs_reference.belief import Action, Belief
from verbs_reference.history import Texts
from verbs_reference.model import CallCase, CallCode
from verbs_reference.showing import show
from verbs_reference.store import Store
from verbs_reference.types import Type

LINES = 5
VALUES = 8
LONGEST = 100
"""So many characters of a condition are quoted; a longer one is left to ``verbspec explain``."""
WIDE = 112
"""What was seen stands in the step's line too; here it is left out of a line that would be wider."""
FEW = 5
"""Of so many flags every combination is tried."""
_FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_WORDS = {"!=": "other than", "<": "less than", "<=": "at most", ">": "more than", ">=": "at least"}


def lines(belief: Belief, action: Action, given: Iterable[str]) -> tuple[str, ...]:
    """One line for each way in which the call could have been answered, the nearest first.

    ``given`` names the outputs that the backend's answer held.
    """
    code = belief.model.calls[action.call]
    seen = _Seen(code, action, frozenset(given))
    texts = belief.search.suspects.texts
    found: dict[_Way, None] = {}

    def look(case: CallCase) -> None:
        found[_Solver(belief, texts, seen, case).way()] = None

    belief.rulings(action, look)
    ways = sorted(_merged(found), key=lambda w: (action.result not in w.results, len(w.wrong)))
    told = [w.text(seen) for w in ways[:LINES]]
    if len(ways) > LINES:
        told.append(f"and {len(ways) - LINES} more, of {', '.join(dict.fromkeys(w.rule for w in ways[LINES:]))}")
    return tuple(told) or ("nothing: no rule decides this call here; the specification has a hole",)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the backend answered."""

    code: CallCode
    action: Action
    given: frozenset[str]

    def value(self, output: str) -> Any:
        return dict(zip(self.code.outputs, self.action.outputs, strict=False))[output]


@dataclass(frozen=True, slots=True)
class _Way:
    """What one rule allows in some state: results, and values for the outputs that are wrong."""

    rule: str
    results: tuple[str, ...]
    wrong: tuple[tuple[str, tuple[str, ...]], ...]

    def text(self, seen: _Seen) -> str:
        """The line: what is allowed, the rule, what was seen."""
        result = seen.action.result
        if not self.wrong:
            # only where the outputs hang together: each has a value that some state allows
            told, saw = _listed([_result(r) for r in self.results]), _result(result)
        else:
            told = ", ".join(f"{name} {_listed(values)}" for name, values in self.wrong)
            kinds = seen.code.outputs
            named = [name for name, _ in self.wrong if name in seen.given and kinds[name].tag != "bytes"]
            alone = len(self.wrong) == 1
            saw = ", ".join(("" if alone else f"{name} ") + _shown(kinds[name], seen.value(name)) for name in named)
        line = f"{told} ({self.rule})"
        return f"{line}; seen {saw}" if saw and len(line) + len(saw) < WIDE else line


def _merged(ways: Iterable[_Way]) -> list[_Way]:
    """Ways of one rule that differ in the values of one output are one."""
    made: list[_Way] = []
    for way in ways:
        for i, other in enumerate(made):
            joined = _joined(other, way)
            if joined is not None:
                made[i] = joined
                break
        else:
            made.append(way)
    return made


def _joined(one: _Way, two: _Way) -> _Way | None:
    names = [name for name, _ in one.wrong]
    if (one.rule, one.results, names) != (two.rule, two.results, [name for name, _ in two.wrong]):
        return None
    differ = [i for i, (a, b) in enumerate(zip(one.wrong, two.wrong, strict=True)) if a != b]
    if len(differ) != 1:
        return None
    at = differ[0]
    values = tuple(dict.fromkeys((*one.wrong[at][1], *two.wrong[at][1])))
    return _Way(one.rule, one.results, (*one.wrong[:at], (names[at], values), *one.wrong[at + 1 :]))


@dataclass(slots=True)
class _Output:
    """What is known of one output: its values, or conditions that it must meet; whether what was seen does."""

    values: list[Any] | None = None
    conditions: list[str] = field(default_factory=list)
    fits: bool = True


class _Solver:
    """Solves the output test of one rule in the store's state."""

    def __init__(self, belief: Belief, texts: Texts, seen: _Seen, case: CallCase) -> None:
        self.store: Store = belief.store
        self.enums = belief.model.voc.enums
        self.texts = texts
        self.seen = seen
        self.case = case
        code = seen.code
        self.names = (*code.params, *code.outputs)
        self.values = dict(zip(self.names, (*seen.action.args, *seen.action.outputs), strict=False))
        self.open = {o for o, kind in code.outputs.items() if o not in code.creates}
        self.known: dict[str, _Output] = {}

    def way(self) -> _Way:
        """What the rule allows here."""
        case, action = self.case, self.seen.action
        results = tuple(sorted(case.returns, key=lambda r: (r not in case.prefer, r)))
        if action.result not in case.returns or case.outputs_tree is None:
            return _Way(case.id, results, ())
        self._solve(case.outputs_tree)
        known = {o: self.known[o] for o in self.seen.code.outputs if o in self.known}
        if all(k.fits for k in known.values()):
            return _Way(case.id, results, ())
        told = [(o, self._told(o, k)) for o, k in known.items() if not k.fits or o not in self.seen.given]
        return _Way(case.id, results, tuple(told))

    def _told(self, name: str, known: _Output) -> tuple[str, ...]:
        kind = self.seen.code.outputs[name]
        if known.values is None:
            return (" and ".join(known.conditions),)
        if kind.tag == "bytes":
            return tuple(_difference(v, self.seen.value(name)) for v in known.values)
        return tuple(_shown(kind, v) for v in known.values)

    # -- solving ---------------------------------------------------------------------------------

    def _solve(self, tree: n.Expr) -> None:
        parts = [tree]
        while True:
            parts = [r for p in parts for r in self._rest(p)]
            if not (self._pin_equal(parts) or self._pin_finite(parts)):
                break
        for part in parts:
            self._condition(part)

    def _free(self, tree: n.Expr) -> set[str]:
        return n.free_names(tree) & self.open

    def _value(self, tree: n.Expr) -> Any:
        return self.texts.function(tree, self.names)(self.store, *(self.values[x] for x in self.names))

    def _rest(self, part: n.Expr) -> Iterator[n.Expr]:
        """What is left of a condition when the parts that are decided are evaluated."""
        if not self._free(part):
            return
        match part:
            case n.Logic(op="and"):
                for arg in part.args:
                    yield from self._rest(arg)
            case n.Logic(op="or"):
                decided = [a for a in part.args if not self._free(a)]
                others = [a for a in part.args if self._free(a)]
                if any(self._value(a) for a in decided):
                    return
                yield from self._rest(others[0]) if len(others) == 1 else [n.Logic(part.type, "or", tuple(others))]
            case n.If() if not self._free(part.test):
                yield from self._rest(part.then if self._value(part.test) else part.other)
            case _:
                yield part

    def _pin(self, name: str, values: list[Any]) -> None:
        """These are an output's values; one value decides what hangs on it."""
        self.open.discard(name)
        seen = self.seen.value(name)
        fits = any(_same(self.seen.code.outputs[name], v, seen) for v in values)
        self.known[name] = _Output(values, fits=fits)
        if not fits and values:
            self.values[name] = values[0]

    def _pin_equal(self, parts: list[n.Expr]) -> bool:
        for part in parts:
            name, op, other = self._comparison(part)
            if op == "==" and name in self.open and other is not None:
                self._pin(name, [self._value(other)])
                return True
        return False

    def _pin_finite(self, parts: list[n.Expr]) -> bool:
        for name in sorted(self.open):
            own = [p for p in parts if self._free(p) == {name}]
            if own and (tried := self._all(self.seen.code.outputs[name])):
                self._pin(name, [v for v in tried if all(self._holds(p, name, v) for p in own)])
                return True
        return False

    def _holds(self, part: n.Expr, name: str, value: Any) -> bool:
        old = self.values[name]
        self.values[name] = value
        try:
            return bool(self._value(part))
        finally:
            self.values[name] = old

    def _all(self, kind: Type) -> list[Any]:
        """Every value of a finite type; none if there are too many."""
        match kind.tag:
            case "bool":
                return [False, True]
            case "enum":
                return list(self.enums[kind.name])
            case "flags" if len(self.enums[kind.name]) <= FEW:
                words = self.enums[kind.name]
                return [frozenset(c) for size in range(len(words) + 1) for c in combinations(words, size)]
            case _:
                return []

    def _comparison(self, part: n.Expr) -> tuple[str, str, n.Expr | None]:
        """An output, how it compares, and with what that is decided."""
        if isinstance(part, n.Compare):
            for left, right, op in (
                (part.left, part.right, part.op),
                (part.right, part.left, _FLIPPED[part.op]),
            ):
                if isinstance(left, n.Var) and left.name in self.open and not self._free(right):
                    return left.name, op, right
        return "", "", None

    def _condition(self, part: n.Expr) -> None:
        """Tell a condition that no values could be found for."""
        name, op, other = self._comparison(part)
        if other is not None:
            text = f"{_WORDS[op]} {_shown(other.type, self._value(other))}"
        else:
            name = min(self._free(part))
            text = show(part)
            text = f"with {text}" if len(text) <= LONGEST else f"as {self.case.id} says"
        known = self.known.setdefault(name, _Output())
        known.fits = known.fits and bool(self._value(part))
        if text not in known.conditions:
            known.conditions.append(text)


# -- words ---------------------------------------------------------------------------------------


def _listed(words: Iterable[str]) -> str:
    every = list(words)
    if len(every) > VALUES:
        return ", ".join(every[:VALUES]) + f" or one of {len(every) - VALUES} more"
    return ", ".join(every[:-1]) + " or " + every[-1] if len(every) > 1 else "".join(every) or "no value"


def _result(word: str) -> str:
    return "success" if word == "0" else word


def _shown(kind: Type, value: Any) -> str:
    match kind.tag:
        case "bool":
            return str(bool(value)).lower()
        case "nat" if value > 0xFFFF:
            return f"{value:#x}"
        case "flags":
            return "{" + ", ".join(sorted(value)) + "}"
        case "bytes":
            return f"{len(value)} bytes"
        case _:
            return str(value)


def _same(kind: Type, allowed: Any, seen: Any) -> bool:
    if kind.tag != "bytes":
        return bool(allowed == seen)
    return len(allowed) == len(seen) and _first_wrong(allowed, seen) is None


def _first_wrong(allowed: str, seen: str) -> int | None:
    """Where bytes differ first; the model writes a byte that may be anything as a character beyond them."""
    return next((i for i, (a, s) in enumerate(zip(allowed, seen, strict=False)) if ord(a) < 256 and a != s), None)


def _difference(allowed: str, seen: str) -> str:
    at = _first_wrong(allowed, seen)
    if at is None:
        return f"of {len(allowed)} bytes, not {len(seen)}"
    last = next((i for i in range(at, len(seen)) if i >= len(allowed) or not _wrong(allowed[i], seen[i])), len(seen))
    part = slice(at, min(last, at + VALUES))
    more = "..." if last > part.stop else ""
    return f"[{at}:{last}] = {_hex(allowed[part])}{more} (seen {_hex(seen[part])}{more})"


def _wrong(allowed: str, seen: str) -> bool:
    return ord(allowed) < 256 and allowed != seen


def _hex(text: str) -> str:
    return "".join(f"{ord(c):02x}" for c in text)
