"""``verbspec explain`` knows every kind of word, and its transitions are those that a device makes."""

from __future__ import annotations

from importlib import resources
from typing import Any

import pytest
from cli import verbspec

from verbs_adapters.contract import Answer
from verbs_adapters.softhca import SoftHca
from verbs_conformance.explain import question
from verbs_conformance.target import engine, load
from verbs_conformance.transitions import states, transitions
from verbs_spec.document import Spec
from verbs_spec.loader import loads

WAY = ("RESET", "INIT", "RTR", "RTS")


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("reg/valid", ["reg/valid  (must", "family:    sq/start", "when:", "source:"]),
        ("reg", ["reg: 6 rules", "reg/done (must): A registration", "reg/valid (must)"]),
        ("cq", ["cq: an object", "size: nat  (entries it can hold)", "cq/poll-error (must)"]),
        ("cqe", ["cqe: a record", "status: status"]),
        ("poll_cq", ["poll_cq: a verb", "takes cq: ref cq", "gives n: nat", "cq/poll-empty  (must"]),
        ("alloc_mr", ["alloc_mr: a verb under linux-kernel"]),
        ("stale_inv", ["a choice that the sources leave open", "the same each time", "source:"]),
        ("same_status", ["same_status(meant: status, seen: status): a define", "cq/poll-error (must)"]),
        ("take", ["take(cq: ref cq, h: cqe): a define", "remove(cq, h)", "cq/poll-recv (must)"]),
        (
            "cq/purge",
            ["internal steps of each cq", "may run, need not", "domain:    not alive(h.qp)"],
        ),
        ("cq/epoch", ["cq/epoch: an invariant, for each cq c", "holds:"]),
        ("EBUSY", ["EBUSY: a result of", "destroy_cq", "cq/destroy-busy (must)", "srq/destroy-busy (must)"]),
        ("unmapped", ["a choice that the sources leave open", "reg/"]),
        ("REM_OP_ERR", ["REM_OP_ERR: one of status"]),
        ("linux-kernel-2008", ["linux-kernel-2008: an api profile"]),
        ("RTS-ERR", ["RTS -> ERR: states of qp_state", "the device moves it (qp.state):", "sq/to-error (must)"]),
        ("RESET->RTS", ["is refused (qp.state):", "qp/modify-illegal (must)"]),
        ("INVALID->VALID", ["states of mr_state", "the device moves it (mr.state):", "reg/done (must)"]),
    ],
)
def test_topic(topic: str, words: list[str]) -> None:
    ended = verbspec("explain", topic)

    assert ended.code == 0, ended.text
    for word in words:
        assert word in ended.text


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("RTS->ERRR", ["nothing is said about 'RTS->ERRR'", "a transition (RTS->ERR)"]),
        ("RTS->VALID", ["nothing is said about 'RTS->VALID'"]),
        ("regg", ["did you mean 'reg'"]),
        ("sq/strat", ["did you mean 'sq/start'"]),
    ],
)
def test_no_topic(topic: str, words: list[str]) -> None:
    ended = verbspec("explain", topic)

    assert ended.code == 4
    for word in words:
        assert word in ended.text


def test_every_name_of_the_specification_is_a_topic() -> None:
    spec = load()
    groups: list[Any] = [spec.families, spec.objects, spec.records, spec.enums, spec.calls, spec.choices, spec.defines]
    names = [str(name) for group in groups for name in group]
    names += [str(v) for enum in spec.enums.values() for v in enum.values]

    for name in names:
        assert verbspec("explain", name).code == 0, name


def moved(device: SoftHca, **args: Any) -> str:
    answer = device.call("modify_qp", {"access": [], "peer": 0, **args})
    assert isinstance(answer, Answer)
    return answer.result


def made(device: SoftHca, verb: str, **args: Any) -> int:
    answer = device.call(verb, args)
    assert isinstance(answer, Answer)
    return int(next(iter(answer.out.values())))


@pytest.mark.parametrize("old", [*WAY, "ERR"])
@pytest.mark.parametrize("new", [*WAY, "ERR"])
def test_a_call_moves_a_queue_pair_as_a_device_does(old: str, new: str) -> None:
    device = SoftHca({})
    device.reset(1)
    pd, cq = made(device, "alloc_pd"), made(device, "create_cq", cqe=8)
    qps = [made(device, "create_qp", pd=pd, send_cq=cq, recv_cq=cq, max_send_wr=4, max_recv_wr=4) for _ in range(2)]
    for state in WAY[1 : WAY.index(old) + 1] if old in WAY else ["INIT", "ERR"]:
        assert moved(device, qp=qps[0], state=state, peer=qps[1]) == "0"

    accepted = moved(device, qp=qps[0], state=new, peer=qps[1]) == "0"

    model = engine("linux-kernel", "roce").model
    told = [t for t in transitions(model, old, new) if t.rule in {c.id for c in model.calls["modify_qp"].cases}]
    assert told, "the specification says nothing of it"
    assert {t.refuses for t in told} == {not accepted}
    assert {t.field for t in told} == {"qp.state"}


def test_states_are_what_rules_assign() -> None:
    found = states(engine("linux-kernel", "roce").model)

    assert {"qp_state", "mr_state"} <= found.keys()
    assert "opcode" not in found


QUESTIONS = [
    ("which completions follow ERR", "sq/flush", "WR_FLUSH_ERR", "WR_FLUSHED"),
    ("what does LOCAL_INV on an invalid region do", "inv/again", "finish(w, SUCCESS)", "finish(w, LOC_QP_OP_ERR)"),
    ("why EINVAL from modify_qp RTS to INIT", "qp/modify-illegal", "returns: [EINVAL]", "returns: [EINVAL, EPERM]"),
    ("what may query_qp return for SignalSends", "qp/query-attributes", "sq_sig_all == qp.sig_all", "sq_sig_all"),
]


def edited(rule: str, old: str, new: str) -> Spec:
    """The specification with what one rule says in other words."""
    root = resources.files("verbs_spec")
    files = {
        f"{part}/{each.name}": each.read_text(encoding="utf-8")
        for part in ("rules", "profiles")
        for each in root.joinpath(part).iterdir()
    }
    file, text = next((name, text) for name, text in files.items() if f"- id: {rule}\n" in text)
    before, mark, after = text.partition(f"- id: {rule}\n")
    assert old in after.partition("- id:")[0]
    return loads({**files, file: before + mark + after.replace(old, new, 1)})


@pytest.mark.parametrize(("asked", "rule", "old", "new"), QUESTIONS)
def test_an_answer_changes_with_its_rule(
    asked: str, rule: str, old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    question(load(), asked)
    before = capsys.readouterr().out
    question(edited(rule, old, new), asked)
    after = capsys.readouterr().out

    assert f"\n{rule}  (" in before
    changed = [line for line in after.splitlines() if line not in before.splitlines()]
    assert changed
    assert any(new.removeprefix("returns: [").rstrip("]") in line for line in changed)


def test_a_refusal_tells_what_the_move_requires(capsys: pytest.CaptureFixture[str]) -> None:
    asked = "why EINVAL from modify_qp INIT to RTR"
    question(load(), asked)
    before = capsys.readouterr().out
    question(edited("move/init-rtr-rc", "required: [AV, PATH_MTU,", "required: [AV, RETRY_CNT, PATH_MTU,"), asked)
    after = capsys.readouterr().out

    required = "From INIT to RTR (type: RC or XRC_RECV) with STATE and AV, {}PATH_MTU, DEST_QPN, RQ_PSN"
    assert required.format("") in " ".join(before.split())
    assert required.format("RETRY_CNT, ") in " ".join(after.split())
    for named in ("qp/modify-lacking", "qp/modify-excess"):
        assert f"\n{named}  (must, only qp-attributes" in before
    assert "qp/modify-illegal" not in before  # the states alone rule it out


def test_a_refusal_is_of_those_states(capsys: pytest.CaptureFixture[str]) -> None:
    question(load(), "why EINVAL from modify_qp RESET to RTS")
    assert "qp/no-stream  (" not in capsys.readouterr().out

    question(load(), "Why does modify_qp, RTR -> RTS, return EINVAL?")
    assert "qp/no-stream  (may, only iwarp)" in capsys.readouterr().out


def test_what_is_no_question_names_the_nearest() -> None:
    ended = verbspec("explain", "Which completions come after ERR?")

    assert ended.code == 4
    assert "The nearest that have an answer:\n  which completions follow ERR\n" in ended.text


def test_every_question_has_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    spec = load()
    for each in spec.questions:
        for ask in each.asks:
            if "{" not in ask:
                question(spec, str(ask))
                told = capsys.readouterr().out
                assert told.startswith(f"{ask}? ({each.id})"), ask
                assert "no rule does" not in told
