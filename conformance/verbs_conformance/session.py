"""One program's run: calls go to the backend, and what comes back to the belief.

The session translates between three worlds: the *text* of a program (``tag(mr0.first, 1)``), the model's *values*
(object numbers, sets, tuples) and the *contract's* (handles, lists, hexadecimal text).  Names of verbs, parameters
and outputs are the specification's; none is known here.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from verbs_adapters.contract import Answer, Backend, Hello, OtherDevice, Trouble
from verbs_conformance.engine import Engine
from verbs_conformance.errors import BadProgram
from verbs_conformance.step import Step, pattern, words
from verbs_reference.belief import Action, Belief, ConsumerError, Inconclusive, Refused
from verbs_reference.model import CallCode
from verbs_reference.store import Store
from verbs_reference.types import Type

MAX_POLLS = 64
CROWDED = 3
"""A continuation gives no further work while so much is in flight: the orders of more cost too much."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step came to: None for explained, or why the program ends."""

    seen: str
    problem: Refused | ConsumerError | Inconclusive | Trouble | None = None


class Session:
    """Runs steps on one backend and keeps the belief."""

    def __init__(
        self, engine: Engine, backend: Backend, hello: Hello, *, cap: int = 512, allow_undefined: bool = False
    ) -> None:
        self.engine = engine
        self.model = engine.model
        self.backend = backend
        self.hello = hello
        self.belief = Belief(engine.model, engine.analysis, cap=cap)
        self.names: dict[str, tuple[str, int]] = {}
        self.handles: dict[int, int] = {}
        self.numbers: dict[tuple[str, int], int] = {}
        """The number of the object that had a handle last, by its kind and the handle."""
        self.calls = 0
        self.unobserved = 0
        self.allow_undefined = allow_undefined
        self._last_count = 0
        self._opened = 0
        """How many devices were opened."""
        self.given: frozenset[str] = frozenset()
        """The outputs that the last answer held."""
        self._valued: tuple[Step | None, int, tuple[Any, ...]] = (None, 0, ())
        self.log: list[tuple[Step, Outcome]] = []
        self.lost: dict[str, str] = {}
        """Names of objects that a call was to make and did not, as the rules allow, with the call and its answer."""

        self.stuck = 0
        """What stood in the device's queues when it was last silent: it waits for the consumer."""

    def fork(self, backend: Backend) -> Session:
        """A session that goes on from here on its own, with a backend that has been through the same."""
        made = copy.copy(self)
        made.backend = backend
        made.belief = self.belief.fork()
        made.names = self.names.copy()
        made.handles = self.handles.copy()
        made.numbers = self.numbers.copy()
        made.log = self.log.copy()
        made.lost = self.lost.copy()
        return made

    def run(self, step: Step) -> list[tuple[Step, Outcome]]:
        """Run one step; a drain gives several outcomes, the last one decides."""
        lost = next((name for name in self.lost if name in words(step)), None)
        if lost is not None:
            reason = f"the backend did not make {lost}, which this step needs: {self.lost[lost]}"
            return [self._note(step, Outcome("not called", Inconclusive(reason)))]
        if step.call == "settle":
            return [self._note(step, self._settle())]
        if step.call == "drain":
            return self._drain(step)
        return [self._note(step, self._call(step))]

    def _note(self, step: Step, outcome: Outcome) -> tuple[Step, Outcome]:
        self.log.append((step, outcome))
        return step, outcome

    def _settle(self) -> Outcome:
        answer = self.backend.call("settle", {})
        self.calls += 1
        if isinstance(answer, Trouble):
            return Outcome(f"no answer: {answer.kind}", answer)
        problem = self.belief.settle()
        self.stuck = self.belief.in_flight()
        return Outcome(answer.result, problem)

    def _drain(self, step: Step) -> list[tuple[Step, Outcome]]:
        poll, result = self.engine.polling
        made = []
        for _ in range(MAX_POLLS):
            before = self.calls
            done = self._note(Step(poll, step.args), self._call(Step(poll, step.args), watch=result))
            made.append(done)
            if done[1].problem is not None or self._last_count == 0 or self.calls == before:
                break
        return made

    # -- calls -----------------------------------------------------------------------------------

    def values(self, step: Step) -> tuple[Any, ...]:
        """The arguments in the model's terms, defaults where the program gives none."""
        if self._valued[0] is not step or self._valued[1] != self.belief.time:
            self._valued = (step, self.belief.time, self._evaluated(step))
        return self._valued[2]

    def _evaluated(self, step: Step) -> tuple[Any, ...]:
        code = self.code(step.call)
        for unknown in step.args.keys() - code.params.keys():
            raise BadProgram(f"{step.call} has no parameter {unknown!r}; it has {', '.join(code.params)}")
        given = [(name, want, step.args.get(name)) for name, want in code.params.items()]
        values: tuple[Any, ...] = self.belief.evaluate(
            lambda store: tuple(
                self.model.left_out(code, name) if text is None else self._argument(store, name, want, text)
                for name, want, text in given
            )
        )
        return values

    def _argument(self, store: Store, name: str, want: Type, text: str) -> Any:
        if want.tag == "bytes":
            return pattern(text)
        function, numbers = self.engine.argument(text, want, self.names)
        value = function(store, *numbers)
        if want.tag == "nat" and value >= 1 << 64:
            raise BadProgram(f"{name} is {value}, and a number of the contract has 64 bits")
        return value

    def code(self, call: str) -> CallCode:
        """The call of this name; BadProgram lists the known ones."""
        if call not in self.model.calls:
            known = ", ".join(["settle", "drain", *self.model.calls])
            raise BadProgram(f"unknown verb {call!r}; known under this profile: {known}")
        return self.model.calls[call]

    def _gone(self, step: Step, code: CallCode, args: tuple[Any, ...]) -> str:
        """The parameters that name objects which are there no longer, or nothing."""
        params = zip(code.params.items(), args, strict=True)
        may_be = self.engine.model.spec.calls[step.call].gone
        refs = {
            name: n
            for (name, kind), n in params
            if kind.tag == "ref" and name not in may_be and step.args.get(name) in self.names
        }
        gone = [
            f"{name}={step.args[name]}"
            for name, number in refs.items()
            if not self.belief.evaluate(lambda store, n=number: store.objects[n][1])
        ]
        return ", ".join(gone)

    def _call(self, step: Step, watch: str = "") -> Outcome:
        code = self.code(step.call)
        args = self.values(step)
        if step.call == self.engine.opening and self._opened > len(self.hello.others):
            reason = f"the program opens another device, and the backend has {self._opened}"
            return Outcome("not called", Inconclusive(reason))
        gone = self._gone(step, code, args)
        if gone:
            reason = f"the program uses what is gone: {gone}. Verbs take no object that was destroyed; mend the program"
            return Outcome("not called", Inconclusive(reason))
        return self._made(step, code, args, watch)

    def _made(self, step: Step, code: CallCode, args: tuple[Any, ...], watch: str) -> Outcome:
        self.calls += 1
        self.unobserved += self.belief.unobserved()
        judged = not self._depends_on_tainted(code, args)
        duty = self.belief.duty(Action(step.call, args)) if judged else None
        if duty is not None and not self.allow_undefined:
            return Outcome("not called", duty)
        answer: Answer | Trouble
        if step.call == self.engine.opening:
            answer = self._open(code)
        else:
            answer = self.backend.call(step.call, self._outward(code, step, args))
        if isinstance(answer, Trouble):
            return Outcome(f"no answer: {answer.kind}", answer)
        try:
            outputs, bound = self._inward(code, answer)
        except (KeyError, TypeError, ValueError) as e:
            trouble = Trouble(
                "garbage", "glue", f"{step.call} answered {answer!r}, which is not of the contract: {e!r}"
            )
            return Outcome("not of the contract", trouble)
        seen = _seen(answer)
        self.given = frozenset(answer.out)
        if watch:
            self._last_count = answer.out.get(watch, 0)
        if duty is not None or not judged:
            if duty is not None:
                self.belief.taint(duty.objects)
            self.belief.observe(Action(step.call, args, answer.result, outputs))
            self._bind(step, code, bound)
            return Outcome(seen + " (not judged)", duty)
        problem = self.belief.observe(Action(step.call, args, answer.result, outputs))
        if problem is None:
            self._bind(step, code, bound)
            if bound:
                self.lost = {name: why for name, why in self.lost.items() if name not in step.out.values()}
            self.lost.update({name: f"{step} -> {seen}" for name in step.out.values() if name not in self.names})
        return Outcome(seen, problem)

    def live(self) -> dict[str, str]:
        """The names of live objects with their kinds."""
        return self.belief.evaluate(  # type: ignore[no-any-return]
            lambda store: {n: kind for n, (kind, number) in self.names.items() if store.objects[number][1]}
        )

    def can(self, step: Step) -> bool:
        """Whether the step is :meth:`sensible`, and leaves no more in flight than can be told apart at little cost."""
        if step.call in self.engine.giving and self.belief.in_flight() >= CROWDED:
            return False
        return self.sensible(step)

    def sensible(self, step: Step, target: str = "") -> bool:
        """Whether every object that the step names is there and no duty forbids it, but for one by the target."""
        used = words(step)
        if not used.isdisjoint(self.lost):
            return False
        named = [self.names[w][1] for w in used if w in self.names]
        if not self.belief.evaluate(lambda store: all(store.objects[number][1] for number in named)):
            return False
        return not self.breaks_duty(step, target)

    def breaks_duty(self, step: Step, target: str = "") -> bool:
        """Whether the consumer would break a duty with this step, another than the target's; a drain begins with a
        poll."""
        if step.call == "settle":
            return False
        made = Step(self.engine.polling[0], step.args) if step.call == "drain" else step
        broken = self.belief.duty(Action(made.call, self.values(made)))
        return broken is not None and broken.rule != target

    def _depends_on_tainted(self, code: CallCode, args: tuple[Any, ...]) -> bool:
        return bool(self.belief.tainted) and any(
            t.tag == "ref" and a in self.belief.tainted for t, a in zip(code.params.values(), args, strict=True)
        )

    def _open(self, code: CallCode) -> Answer:
        devices: tuple[Hello | OtherDevice, ...] = (self.hello, *self.hello.others)
        device = devices[self._opened]
        self._opened += 1
        numbers = {name: self._opened for name, kind in code.outputs.items() if kind.tag == "ref"}
        return Answer("0", {**attributes(code, device), **numbers})

    def _bind(self, step: Step, code: CallCode, bound: dict[str, tuple[int, int]]) -> None:
        for name, (number, handle) in bound.items():
            self.handles[number] = handle
            self.numbers[code.outputs[name].name, handle] = number
            given = step.out.get(f"#{code.creates.index(name)}")
            if given is not None:
                self.names[given] = (code.outputs[name].name, number)

    # -- translation -----------------------------------------------------------------------------

    def _outward(self, code: CallCode, step: Step, args: tuple[Any, ...]) -> dict[str, Any]:
        return {
            name: self._out(want, value)
            for (name, want), value in zip(code.params.items(), args, strict=True)
            if (name in step.args or (want.tag == "bool" and name not in code.optional))
            and (want != self.engine.device or self._names_device(value))
        }

    def _names_device(self, value: Any) -> bool:
        """Whether a device must be named: where none is, the first is meant."""
        return self.handles.get(value, 0) > 1

    def _out(self, want: Type, value: Any) -> Any:
        match want.tag:
            case "ref":
                return self.handles.get(value, 0) if value > 0 else 0
            case "flags":
                return sorted(value)
            case "bytes":
                return value.encode("latin-1").hex()
            case "queue":
                assert want.elem is not None
                return [self._out(want.elem, v) for v in value]
            case "record":
                fields = self.model.voc.records[want.name]
                return {f: self._out(t, v) for (f, t), v in zip(fields.items(), value, strict=True)}
            case _:
                return value

    def _inward(self, code: CallCode, answer: Answer) -> tuple[tuple[Any, ...], dict[str, tuple[int, int]]]:
        made: list[Any] = []
        bound: dict[str, tuple[int, int]] = {}
        success = answer.result in {r for c in code.successes for r in c.returns}
        nothing = code.gives_nothing(answer.out)
        for name, kind in code.outputs.items():
            if not success or name not in answer.out:
                made.append(self.model.left_out(code, name))
                if success and not nothing and name not in code.optional and name not in code.found:
                    raise ValueError(f"the output `{name}` is missing")
                continue
            value = answer.out[name]
            if name in code.found:
                value = self.numbers[kind.name, value] if value else 0
            elif kind.tag == "ref":
                if type(value) is not int or value <= 0:
                    raise ValueError(f"{name} is {value!r}, not a handle")
                bound[name] = (self.belief.number(), value)
                value = bound[name][0]
            else:
                value = self._in(kind, value)
            made.append(value)
        return tuple(made), bound

    def _in(self, kind: Type, value: Any) -> Any:
        match kind.tag:
            case "nat" if type(value) is int and value >= 0:
                return value
            case "bool" if type(value) is bool:
                return value
            case "enum" if value in self.model.voc.enums[kind.name]:
                return value
            case "flags":
                return frozenset(self._in(Type("enum", kind.name), v) for v in value)
            case "bytes":
                return bytes.fromhex(value).decode("latin-1")
            case _:
                raise ValueError(f"{value!r} is not a {kind}")


def attributes(code: CallCode, device: Hello | OtherDevice) -> dict[str, Any]:
    """What the call that opens a device tells of it: the outputs but for the device itself, in their order."""
    declared = {c.upper() for c in device.capabilities}
    return {
        name: name.upper() in declared if kind.tag == "bool" else device.limits.get(name, 0)
        for name, kind in code.outputs.items()
    }


def _seen(answer: Answer) -> str:
    if not answer.out:
        return answer.result
    shown = ", ".join(f"{k}={_short(v)}" for k, v in answer.out.items())
    return f"{answer.result}, {shown}"


def _short(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0xFFFF:
        return f"{value:#x}"
    text = str(value)
    return text if len(text) <= 40 else f"{text[:32]}... ({len(text) // 2} bytes)"
