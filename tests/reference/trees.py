"""Random typed trees over a small vocabulary that has a field of every type.

Everything the parser can make may come out, borders more often than chance would have it: null, 0, empty
queues, divisors that may be 0.  ``opaque`` trees use memory too; the solver knows nothing of it, so they
are for the two other readings.
"""

from __future__ import annotations

import random

from verbs_reference import nodes as n
from verbs_reference.types import BOOL, BYTES, NAT, NULL, SPANS, Type
from verbs_reference.vocabulary import FieldInfo, Vocabulary

COLOR = Type("enum", "color")
COLORS = Type("flags", "color")
POINT = Type("record", "point")
A, B, MEM = Type("ref", "a"), Type("ref", "b"), Type("ref", "mem")
NATS, POINTS, BS = Type("queue", "", NAT), Type("queue", "", POINT), Type("queue", "", B)
OPTION = Type("enum", "option")

Scope = dict[str, Type]

NAMES: Scope = {
    "vn": NAT, "vm": NAT, "vb": BOOL, "ve": COLOR, "vf": COLORS, "va": A, "vr": B, "vp": POINT,
    "vq": NATS, "vqp": POINTS, "vqb": BS,
}  # fmt: skip
OPAQUE_NAMES: Scope = {**NAMES, "vs": SPANS, "vy": BYTES}

FIELDS = {
    "a": {
        "n": NAT, "b": BOOL, "e": COLOR, "f": COLORS, "r": A, "s": B,
        "p": POINT, "q": NATS, "qp": POINTS, "qb": BS,
    },
    "b": {"key": NAT, "n": NAT, "e": COLOR, "r": A, "q": NATS},
    "mem": {"addr": NAT, "length": NAT, "data": Type("memory")},
}  # fmt: skip
FROZEN = {("b", "key"), ("mem", "addr"), ("mem", "length"), ("mem", "data")}


def vocabulary() -> Vocabulary:
    voc = Vocabulary()
    voc.enums = {"color": ("RED", "GREEN", "BLUE"), "option": ("LEFT", "RIGHT")}
    voc.enum_of = {value: enum for enum, values in voc.enums.items() for value in values}
    voc.records = {"point": {"x": NAT, "e": COLOR, "s": B}}
    voc.objects = {
        kind: {name: FieldInfo(t, None, ("addr", "length") if name == "data" else None) for name, t in fields.items()}
        for kind, fields in FIELDS.items()
    }
    voc.choices = {"side": (("LEFT", "RIGHT"), True)}
    return voc


VOC = vocabulary()


class Grower:
    """Grows trees from one random source."""

    def __init__(self, rng: random.Random, opaque: bool = False) -> None:
        self.rng = rng
        self.opaque = opaque
        self.bound = 0
        self.keys = 100

    def expr(self, kind: Type, depth: int, scope: Scope) -> n.Expr:
        """An expression of a type."""
        if depth <= 0 or self.rng.random() < 0.1:
            return self.leaf(kind, scope)
        makers = {
            "nat": self._nat, "bool": self._bool, "enum": self._enum, "flags": self._flags, "ref": self._ref,
            "record": self._record, "queue": self._queue, "spans": self._spans, "bytes": self._bytes,
        }  # fmt: skip
        roll = self.rng.random()
        if roll < 0.12 and kind.tag not in {"spans", "bytes"}:
            test, then = self.expr(BOOL, depth - 1, scope), self.expr(kind, depth - 1, scope)
            return n.If(kind, test, then, self.expr(kind, depth - 1, scope))
        if roll < 0.35:
            found = self._field(kind, depth, scope)
            if found is not None:
                return found
        return makers[kind.tag](kind, depth, scope)

    def leaf(self, kind: Type, scope: Scope) -> n.Expr:
        named = [name for name, t in scope.items() if t == kind]
        if named and self.rng.random() < 0.6:
            return n.Var(kind, self.rng.choice(named))
        match kind.tag:
            case "nat":
                return n.Const(NAT, self.rng.choice([0, 0, 1, 2, 3, 5, 63, 64, 256]))
            case "bool":
                return n.Const(BOOL, self.rng.random() < 0.5)
            case "enum":
                return n.Const(kind, self.rng.choice(VOC.enums[kind.name]))
            case "flags":
                return n.Flags(kind, tuple(self.leaf(COLOR, scope) for _ in range(self.rng.randrange(3))))
            case "ref":
                return n.If(kind, n.Const(BOOL, True), n.Const(NULL, 0), n.Const(NULL, 0))
            case "record":
                return n.Record(kind, tuple(self.leaf(t, scope) for t in VOC.records[kind.name].values()))
            case "queue":
                assert kind.elem is not None
                return n.Sequence(kind, tuple(self.leaf(kind.elem, scope) for _ in range(self.rng.randrange(3))))
            case "spans":
                return n.Builtin(SPANS, "span", (self._address(), n.Const(NAT, self.rng.randrange(6))))
            case _:
                return n.Builtin(BYTES, "load", (self.leaf(SPANS, scope),))

    def _address(self) -> n.Expr:
        start = self.rng.choice([0, 4090, 4096, 4100, 8190, 12288, 12290])
        return n.Arith(NAT, "+", n.Const(NAT, start), n.Const(NAT, self.rng.randrange(8)))

    def _field(self, kind: Type, depth: int, scope: Scope) -> n.Expr | None:
        places = [(k, f) for k in ("a", "b") for f, t in FIELDS[k].items() if t == kind]
        if not places:
            return None
        owner, name = self.rng.choice(places)
        return n.Field(kind, self.expr(Type("ref", owner), depth - 1, scope), name)

    def _element(self, kind: Type, depth: int, scope: Scope) -> n.Expr:
        """The head, last or n-th of a queue."""
        queue = self.expr(Type("queue", "", kind), depth - 1, scope)
        op = self.rng.choice(["head", "last", "nth"])
        args = (queue, self.small(scope)) if op == "nth" else (queue,)
        return n.Builtin(kind, op, args)

    def small(self, scope: Scope, limit: int = 4) -> n.Expr:
        """A number below a limit."""
        return n.Arith(NAT, "%", self.expr(NAT, 1, scope), n.Const(NAT, self.rng.randrange(1, limit + 1)))

    def _part(self, kind: Type, depth: int, scope: Scope) -> n.Expr:
        name = next(f for f, t in VOC.records["point"].items() if t == kind)
        return n.Part(kind, self.expr(POINT, depth - 1, scope), name)

    def _nat(self, _: Type, depth: int, scope: Scope) -> n.Expr:
        def sub(t: Type = NAT) -> n.Expr:
            return self.expr(t, depth - 1, scope)

        options = ["arith"] * 5 + ["over"] * 2 + ["len", "element", "part", "shl", *(["size"] if self.opaque else [])]
        match self.rng.choice(options):
            case "arith":
                op = self.rng.choice(["+", "-", "-", "*", "//", "%"])
                right = sub() if self.rng.random() < 0.7 else n.Const(NAT, self.rng.choice([0, 1, 2, 7]))
                return n.Arith(NAT, op, sub(), right)
            case "over":
                return self.over(self.rng.choice(["count", "sum"]), depth, scope)
            case "len":
                return n.Builtin(NAT, "len", (sub(self.rng.choice([NATS, POINTS, BS])),))
            case "element":
                return self._element(NAT, depth, scope)
            case "part":
                return self._part(NAT, depth, scope)
            case "size":
                return n.Builtin(NAT, "size", (sub(BYTES),))
            case _:
                return n.Builtin(NAT, "shl", (self.rng.choice([self.small(scope), sub(), n.Const(NAT, 70)]),))

    def _bool(self, _: Type, depth: int, scope: Scope) -> n.Expr:
        def sub(t: Type = BOOL) -> n.Expr:
            return self.expr(t, depth - 1, scope)

        match self.rng.choice(["not", "logic", "order", "same", "same", "in", "over", "over", "alive", "pow2"]):
            case "not":
                return n.Not(BOOL, sub())
            case "logic":
                return n.Logic(
                    BOOL, self.rng.choice(["and", "or"]), tuple(sub() for _ in range(self.rng.choice([2, 3])))
                )
            case "order":
                return n.Compare(BOOL, self.rng.choice(["<", "<=", ">", ">="]), sub(NAT), sub(NAT))
            case "same":
                types = [
                    NAT,
                    BOOL,
                    COLOR,
                    COLORS,
                    A,
                    B,
                    POINT,
                    NATS,
                    POINTS,
                    BS,
                    *([BYTES] * 3 if self.opaque else []),
                ]
                t = self.rng.choice(types)
                right = n.Const(NULL, 0) if t.tag == "ref" and self.rng.random() < 0.3 else sub(t)
                return n.Compare(BOOL, self.rng.choice(["==", "!="]), sub(t), right)
            case "in":
                item, group = self.rng.choice([(COLOR, COLORS), (NAT, NATS), (POINT, POINTS), (B, BS)])
                return n.Member(BOOL, sub(item), sub(group))
            case "over":
                return self.over(self.rng.choice(["any", "all"]), depth, scope)
            case "alive":
                return n.Builtin(BOOL, "alive", (sub(self.rng.choice([A, B])),))
            case _:
                small = n.Arith(NAT, "%", sub(NAT), n.Const(NAT, 300))
                return n.Builtin(BOOL, "pow2", (small,))

    def over(self, op: str, depth: int, scope: Scope) -> n.Expr:
        """A quantifier; its variable may hide another of the same name."""
        domain, elem = self._domain(depth, scope)
        self.bound += 1
        var = self.rng.choice([f"x{self.bound}", "vn", "x"])
        inner = {**scope, var: elem}
        test = self.expr(BOOL, depth - 2, inner) if self.rng.random() < 0.5 else None
        result = {"any": BOOL, "all": BOOL, "count": NAT, "sum": NAT, "flat": SPANS}[op]
        body = n.Const(BOOL, True) if op == "count" else self.expr(result, depth - 2, inner)
        return n.Over(result, op, var, elem, domain, test, body)

    def _domain(self, depth: int, scope: Scope) -> tuple[n.Expr | str, Type]:
        match self.rng.choice(["kind", "kind", "queue", "queue", "flags", "upto"]):
            case "kind":
                kind = self.rng.choice(["a", "b"])
                return kind, Type("ref", kind)
            case "flags":
                return self.expr(COLORS, depth - 1, scope), COLOR
            case "upto":
                return self._upto(depth, scope), NAT
            case _:
                queue = self.rng.choice([NATS, POINTS, BS])
                assert queue.elem is not None
                return self.expr(queue, depth - 1, scope), queue.elem

    def _upto(self, depth: int, scope: Scope) -> n.Expr:
        long = depth <= 2 and self.rng.random() < 0.25
        return n.Builtin(NATS, "upto", (n.Const(NAT, 70) if long else self.small(scope),))

    def _enum(self, kind: Type, depth: int, scope: Scope) -> n.Expr:
        if kind == OPTION:
            return n.Choice(OPTION, "side")
        return self._part(kind, depth, scope) if self.rng.random() < 0.5 else self.leaf(kind, scope)

    def _flags(self, kind: Type, depth: int, scope: Scope) -> n.Expr:
        count = self.rng.randrange(4)
        return n.Flags(kind, tuple(self.expr(COLOR, depth - 1, scope) for _ in range(count)))

    def _ref(self, kind: Type, depth: int, scope: Scope) -> n.Expr:
        if kind == A:
            return self.leaf(kind, scope)
        match self.rng.choice(["lookup", "lookup", "element", "part"]):
            case "lookup":
                wanted = n.Const(NAT, self.rng.choice([7, 8, 9, 100, 101]))
                return n.Lookup(B, "b", "key", self.rng.choice([wanted, self.expr(NAT, depth - 1, scope)]))
            case "element":
                return self._element(kind, depth, scope)
            case _:
                return self._part(kind, depth, scope)

    def _record(self, kind: Type, depth: int, scope: Scope) -> n.Expr:
        if self.rng.random() < 0.4:
            return self._element(kind, depth, scope)
        return n.Record(kind, tuple(self.expr(t, depth - 1, scope) for t in VOC.records[kind.name].values()))

    def _queue(self, kind: Type, depth: int, scope: Scope) -> n.Expr:
        if kind == NATS and self.rng.random() < 0.3:
            return self._upto(depth, scope)
        assert kind.elem is not None
        return n.Sequence(kind, tuple(self.expr(kind.elem, depth - 1, scope) for _ in range(self.rng.randrange(3))))

    def _spans(self, kind: Type, depth: int, scope: Scope) -> n.Expr:
        match self.rng.choice(["span", "walk", "slice", "flat", "leaf"]):
            case "span":
                return n.Builtin(SPANS, "span", (self._address(), self.small(scope, 9)))
            case "walk":
                pages = tuple(n.Const(NAT, self.rng.choice([4096, 8192, 12288])) for _ in range(self.rng.randrange(4)))
                rest = (n.Const(NAT, self.rng.choice([0, 4, 8])), *(self.small(scope, 9) for _ in range(3)))
                return n.Builtin(SPANS, "walk", (n.Sequence(NATS, pages), *rest))
            case "slice":
                places = self.expr(SPANS, depth - 1, scope)
                return n.Builtin(SPANS, "slice", (places, self.small(scope, 9), self.small(scope, 9)))
            case "flat":
                return self.over("flat", depth, scope)
            case _:
                return self.leaf(kind, scope)

    def _bytes(self, _: Type, depth: int, scope: Scope) -> n.Expr:
        loaded = n.Builtin(BYTES, "load", (self.expr(SPANS, depth - 1, scope),))
        match self.rng.randrange(4):
            case 0:
                return n.Builtin(BYTES, "added", (loaded, self._word()))
            case 1:
                return n.Builtin(BYTES, "exchanged", (loaded, self._word(), self._word()))
            case _:
                return loaded

    def _word(self) -> n.Expr:
        return n.Const(NAT, self.rng.choice([0, 0, 1, 255, 256, 2**16 - 1, 2**32 + 7]))

    # -- statements ------------------------------------------------------------------------------

    def block(self, count: int, scope: Scope, *, top: bool = True) -> tuple[n.Stmt, ...]:
        """Statements; local names are added to the scope."""
        return tuple(self.statement(scope, top) for _ in range(count))

    def statement(self, scope: Scope, top: bool) -> n.Stmt:
        """One statement.  Objects are made on the top level only, where their numbers are known."""
        kinds = ["assign"] * 4 + ["push", "push", "pop", "pop", "clear", "let", "delete"]
        kinds += ["new", "branch", "branch"] if top else []
        kinds += ["store", "havoc"] * 2 if self.opaque else []
        match self.rng.choice(kinds):
            case "let":
                self.bound += 1
                kind = self.rng.choice([NAT, A, B, POINT, NATS])
                value = self.expr(kind, 2, scope)
                scope[f"local{self.bound}"] = kind
                return n.Let(f"local{self.bound}", value)
            case "new":
                return self._new(scope)
            case "branch":
                test = self.expr(BOOL, 2, scope)
                then = self.block(self.rng.randrange(1, 3), dict(scope), top=False)
                return n.Branch(test, then, self.block(self.rng.randrange(2), dict(scope), top=False))
            case "delete":
                return n.Delete(self.expr(self.rng.choice([A, B]), 1, scope))
            case "store":
                return n.Store(self.expr(SPANS, 2, scope), self.expr(BYTES, 2, scope))
            case "havoc":
                return n.Havoc(self.expr(SPANS, 2, scope))
            case op:
                return self._write(op, scope)

    def _new(self, scope: Scope) -> n.Stmt:
        self.bound += 1
        kind = self.rng.choice(["a", "b"])
        given = [(f, t) for f, t in FIELDS[kind].items() if (kind, f) not in FROZEN and self.rng.random() < 0.5]
        values = tuple((f, self.expr(t, 1, scope)) for f, t in given)
        if kind == "b":
            values = (*values, ("key", n.Const(NAT, self.keys)))
            self.keys += 1
        scope[f"made{self.bound}"] = Type("ref", kind)
        return n.New(f"made{self.bound}", kind, values)

    def _write(self, op: str, scope: Scope) -> n.Stmt:
        places = [
            (k, f, t)
            for k in ("a", "b")
            for f, t in FIELDS[k].items()
            if (k, f) not in FROZEN and (op == "assign" or t.tag == "queue")
        ]
        kind, name, t = self.rng.choice(places)
        obj = self.expr(Type("ref", kind), 2, scope)
        match op:
            case "assign":
                return n.Assign(obj, name, self.expr(t, 2, scope))
            case "push":
                assert t.elem is not None
                return n.Push(obj, name, self.expr(t.elem, 2, scope))
            case "pop":
                return n.Pop(obj, name)
            case _:
                return n.Clear(obj, name)
