"""What programs on one fixture have in common is judged once, and every judgement is as if it were not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

import pytest

from verbs_adapters.contract import AdapterError, Answer, Backend, Hello, Trouble, Value
from verbs_adapters.softhca import SoftHca
from verbs_conformance import machine
from verbs_conformance import program as programs
from verbs_conformance.judge import Judge, Judgement
from verbs_conformance.machine import Stateful, machine_class
from verbs_conformance.prefix import same
from verbs_conformance.program import Program, full_steps
from verbs_conformance.step import Step
from verbs_conformance.sweep import Sweep
from verbs_conformance.target import engine
from verbs_reports.verdicts import Verdict

API, TRANSPORT = "linux-kernel", "roce"
Turn = Callable[[int, int, Answer | Trouble], Answer | Trouble]
"""From which program and which of its calls, and what the device answered, what is answered instead."""


class Watched:
    """A backend that notes all that it is told and answers; some answers it may change."""

    def __init__(self, options: Mapping[str, str], turn: Turn | None = None) -> None:
        self.device = SoftHca({"api": API, "transport": TRANSPORT, **options})
        self.turn = turn
        self.noted: list[tuple[str, object, object]] = []
        self.program = 0
        self.place = 0

    def hello(self) -> Hello:
        return self.device.hello()

    def reset(self, seed: int) -> Trouble | None:
        self.program += 1
        self.place = 0
        self.noted.append(("reset", seed, None))
        return self.device.reset(seed)

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        self.place += 1
        self.noted.append((verb, dict(args), None))
        answer = self.device.call(verb, args)
        if self.turn is not None:
            answer = self.turn(self.program, self.place, answer)
        self.noted[-1] = (verb, dict(args), answer)
        return answer

    def close(self) -> None:
        self.device.close()


def _fixtures() -> dict[str, Program]:
    return programs.fixtures()


def _judge(
    backend: Backend,
    *,
    resumes: bool,
    fixtures: Mapping[str, Program] | None = None,
    cap: int = 512,
    allow_undefined: bool = False,
) -> Judge:
    return Judge(
        engine(API, TRANSPORT),
        backend,
        backend.hello(),
        _fixtures() if fixtures is None else fixtures,
        cap=cap,
        allow_undefined=allow_undefined,
        resumes=resumes,
    )


def _swept(every: int, only: Callable[[str], bool] = lambda _: True) -> list[Program]:
    found = Sweep(engine(API, TRANSPORT), _fixtures()).programs(only)
    return list(islice(found, 0, None, every))


def _both(
    chosen: list[Program],
    options: Mapping[str, str] | None = None,
    *,
    turn: Turn | None = None,
    seed: Callable[[int], int] = lambda _: 1,
    fixtures: Mapping[str, Program] | None = None,
    cap: int = 512,
    allow_undefined: bool = False,
) -> list[Judgement]:
    """Run programs in both ways; their judgements, which must be the same, and so must be what the device was told."""
    runs = []
    for resumes in (False, True):
        backend = Watched(options or {}, turn)
        judge = _judge(backend, resumes=resumes, fixtures=fixtures, cap=cap, allow_undefined=allow_undefined)
        made = []
        for i, program in enumerate(chosen):
            made.append(replace(judge.run(program, seed(i)), seconds=0.0))
            judge.acquit(made[-1])
        runs.append((made, backend.noted))
    (plain, told), (resumed, told_again) = runs
    for one, other in zip(plain, resumed, strict=True):
        assert one == other, one.program.name
    assert told == told_again
    return plain


def test_two_hundred_programs_are_judged_alike() -> None:
    chosen = _swept(19)
    shipped = [p for p in programs.shipped("programs") if p.applies(API, TRANSPORT) and not p.feature]

    done = _both([*chosen, *shipped[::12]])

    assert len(chosen) >= 150
    assert len({d.program.fixture for d in done}) >= 10
    assert {d.verdict for d in done} <= {Verdict.PASS, Verdict.DEVIATION}


@pytest.mark.parametrize("pace", ["random", "lazy", "eager"])
def test_a_fixture_that_is_answered_otherwise_is_judged_anew(pace: str) -> None:
    _both(_swept(150), {"pace": pace}, seed=lambda i: i // 2 % 3)


def test_programs_of_one_fixture_go_on_from_several_explanations() -> None:
    done = _both(_swept(12, lambda name: name.startswith("sweep/reconnected")))

    assert max(d.belief for d in done) > 3


@pytest.mark.parametrize("fault", ["new-qp-starts-in-init", "inv-does-nothing", "wr-id-lost-on-error"])
def test_failures_are_told_alike(fault: str) -> None:
    done = _both(_swept(60), {"fault": fault})

    assert any(d.refused is not None and d.suspects for d in done)


def _now_and_then(what: Callable[[Answer], Answer | Trouble]) -> Turn:
    """Change an answer of every third program, each time a later one."""

    def turn(program: int, place: int, answer: Answer | Trouble) -> Answer | Trouble:
        if program % 3 == 0 and place == program // 3 and isinstance(answer, Answer):
            return what(answer)
        return answer

    return turn


def _dies(_answer: Answer) -> Trouble:
    return Trouble("crash", "backend", "it ended")


def _refuses(_answer: Answer) -> Answer:
    raise AdapterError("the guest is gone")


TURNS: dict[str, Callable[[Answer], Answer | Trouble]] = {
    "dies": _dies,
    "cannot go on": _refuses,
    "another result": lambda _: Answer("EIO"),
    "other handles": lambda a: Answer(a.result, {k: v + 4096 if type(v) is int else v for k, v in a.out.items()}),
    "no handle": lambda a: Answer(a.result, dict.fromkeys(a.out, True)),
    "another order": lambda a: Answer(a.result, dict(reversed(a.out.items()))),
    "nothing given": lambda a: Answer(a.result, {}),
}


@pytest.mark.parametrize("what", TURNS)
def test_a_backend_that_changes_in_the_fixture(what: str) -> None:
    chosen = _swept(40, lambda name: name.startswith("sweep/inside"))[:1] * 60

    done = _both(chosen, turn=_now_and_then(TURNS[what]))

    if what != "another order":
        assert {d.verdict for d in done} > {Verdict.PASS}
        assert any(d.broken and not d.fixture_lines for d in done)


def test_a_reset_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Watched({})
    judge = _judge(backend, resumes=True)
    program = _swept(40)[0]
    judge.run(program, 1)
    monkeypatch.setattr(backend, "reset", lambda seed: Trouble("hang", "backend", f"no answer to seed {seed}"))

    done = judge.run(program, 1)

    assert done.trouble is not None
    assert (done.calls, done.lines) == (0, [])


@pytest.mark.parametrize("allow_undefined", [False, True])
def test_a_consumer_who_breaks_a_duty_in_the_fixture(allow_undefined: bool) -> None:
    shipped = [p for p in programs.shipped("programs") if p.applies(API, TRANSPORT) and not p.feature]
    judge = _judge(Watched({}), resumes=False)
    breaches = list(islice((p for p in shipped if judge.run(p, 1).reason.startswith("the consumer breaks")), 5))
    fixtures = {**_fixtures(), **{p.name: p for p in breaches}}
    after = [Program(f"{p.name}/{i}", (Step("settle", {}),), p.name) for p in breaches for i in range(3)]

    done = _both(after, fixtures=fixtures, allow_undefined=allow_undefined)

    assert len(done) >= 9
    assert {d.verdict for d in done} == {Verdict.CONSUMER_ERROR}


def test_a_limit_that_is_reached_in_the_fixture() -> None:
    done = _both(_swept(20, lambda name: name.startswith("sweep/reconnected")), cap=4)

    assert {d.verdict for d in done} == {Verdict.INCONCLUSIVE}


def _drawn(resumes: bool, options: Mapping[str, str]) -> tuple[list[Judgement], list[tuple[str, object, object]]]:
    backend = Watched(options)
    stateful = Stateful(_judge(backend, resumes=resumes), 7, 0.0)
    stateful.until = float("inf")
    drawing = machine_class(stateful.shapes, stateful._driver, stateful._finished)
    found = stateful.draw_chunk(drawing, 1)
    return [*stateful.done, *([found] if found is not None else [])], backend.noted


@pytest.mark.parametrize("options", [{}, {"fault": "send-completions-out-of-order"}], ids=["healthy", "faulty"])
def test_drawn_programs_are_judged_alike(options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "CHUNK", 6)

    assert _drawn(False, options) == _drawn(True, options)


def test_the_second_program_goes_on_from_what_the_first_has_left() -> None:
    backend = Watched({})
    judge = _judge(backend, resumes=True)
    program = next(p for p in _swept(40) if p.fixture)
    before, _ = full_steps(program, judge.fixtures)
    judge.run(program, 1)
    backend.noted.clear()

    backend.reset(1)
    start = judge.start(program.fixture, before)
    told = len(backend.noted)
    first = [str(outcome) for step in program.steps for _, outcome in start.session.run(step)]
    backend.reset(1)
    again = judge.start(program.fixture, before)

    assert start.left == again.left == ()
    assert told > len(before) // 2
    assert again.session.belief is not start.session.belief
    assert [str(outcome) for step in program.steps for _, outcome in again.session.run(step)] == first


def _pairs() -> Iterator[tuple[object, object]]:
    yield 1, True
    yield 0, False
    yield {"a": 1, "b": 2}, {"b": 2, "a": 1}
    yield [1, 2], [1, 2, 3]
    yield [{"key": 1}], [{"key": True}]
    yield Answer("0", {"n": 1}), Answer("0", {"n": True})
    yield Answer("0"), Trouble("crash", "backend", "")
    yield Answer("0"), Answer("EIO")


@pytest.mark.parametrize(("one", "other"), list(_pairs()), ids=str)
def test_answers_that_are_equal_only_to_python_differ(one: object, other: object) -> None:
    assert not same(one, other)
    assert same(one, one)
    assert same(other, other)
