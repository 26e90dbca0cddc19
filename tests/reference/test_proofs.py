"""What is proved of the specification, and that each proof fails where the specification is broken."""

import re

import mutants
import pytest

from verbs_reference import nodes as n
from verbs_reference.model import Family, Model
from verbs_reference.proofs import Result, Scope, names, prove
from verbs_reference.theory import Theory, fields_read

PATIENCE = 120.0
"""For one question, on a machine that does other things too; most take far less than a second."""

THEOREMS = [
    "inductive list/owned-exactly",
    "inductive list/in-flight-is-owned",
    "inductive mr/owned-only-while-outstanding",
    "inductive mr/outstanding-is-owned",
    "inductive mr/in-flight-is-owned",
    "inductive mr/valid-is-granted",
    "inductive qp/failed-is-error",
    "inductive qp/failure-stops",
    "inductive qp/no-stale-access",
]


@pytest.mark.parametrize("profile", [mutants.KERNEL, mutants.KERNEL_2008], ids=lambda p: p[0])
def test_everything_is_proved(profile: tuple[str, str]) -> None:
    model = mutants.model(profile)
    results = list(prove(model, seconds=PATIENCE))
    assert [r.name for r in results if r.verdict != "proved"] == []
    assert [r.name for r in results] == names(model)
    assert set(THEOREMS) <= set(names(model))
    assert {f"partition {f.name}" for f in model.families} <= set(names(model))


def refuted(model: Model, *select: str) -> dict[str, Result]:
    return {r.name: r for r in prove(model, select, seconds=PATIENCE) if r.verdict == "refuted"}


def test_a_local_invalidation_must_invalidate() -> None:
    model = mutants.mutant("            v.state = INVALID\n", "", behind="id: inv/done\n")
    found = refuted(model, "mr/valid-is-granted", "qp/no-stale-access")
    fall = found["inductive mr/valid-is-granted"]
    assert fall.rules == ("inv/done",)
    assert any("granted=true -> false" in line and "state=VALID," in line for line in fall.lines)
    assert "inductive qp/no-stale-access" in found


def test_a_remote_invalidation_must_invalidate() -> None:
    model = mutants.mutant("          v.state = INVALID\n", "", behind="id: send/invalidated")
    found = refuted(model, "mr/valid-is-granted", "qp/no-stale-access")
    assert found["inductive mr/valid-is-granted"].rules == ("send/invalidated",)
    assert "inductive qp/no-stale-access" in found


def test_a_failed_registration_must_stop_the_queue() -> None:
    broken = "finish(w, MEM_MGT_ERR)"
    model = mutants.mutant("fail_local(q, w, MEM_MGT_ERR)", broken, behind="id: reg/valid")
    found = refuted(model, "qp/failure-stops", "qp/no-stale-access")
    fall = found["inductive qp/failure-stops"]
    assert fall.rules == ("reg/valid",)
    assert any("state=RTS" in line and "failed_at=0 -> " in line for line in fall.lines)
    assert "inductive qp/no-stale-access" in found


def test_a_stopped_queue_must_start_nothing() -> None:
    model = mutants.mutant("q.broken == 0 and not waits(q, w)", "not waits(q, w)")
    fall = refuted(model, "qp/no-stale-access")["inductive qp/no-stale-access"]
    assert fall.rules[0] in {"sq/send", "reg/done", "inv/done", "inv/again"}
    model = mutants.mutant(" or q.broken == 0 or w.seq < q.broken", " or true")
    assert refuted(model, "qp/no-stale-access")["inductive qp/no-stale-access"].rules == ("sq/sent",)


def test_a_queue_must_not_leave_error_by_itself() -> None:
    model = mutants.mutant("q.state = ERR\n", "q.broken = 0\n", behind="id: sq/to-error\n")
    fall = refuted(model, "qp/failed-is-error")["inductive qp/failed-is-error"]
    assert fall.rules == ("sq/to-error",)


def test_a_key_must_be_compared() -> None:
    model = mutants.mutant("m.key == key", "true", behind="opens(m: ref mr")
    found = refuted(model, "mr/valid-is-granted", "qp/no-stale-access")
    assert set(found) == {"inductive qp/no-stale-access"}
    fall = found["inductive qp/no-stale-access"]
    assert fall.rules[0] in {"write/done", "read/done", "sq/sent", "send/done", "send/invalidated"}
    assert any("misused=false -> true" in line for line in fall.lines)


def test_a_planted_hole_is_shown() -> None:
    model = mutants.mutant('when: "sending(q) and asks(w.opcode)"', 'when: "false"')
    found = refuted(model, "partition sq/transmit", "possible sq/asked")
    hole = found["partition sq/transmit"]
    assert hole.rules == ("sq/transmit",)
    assert hole.lines[0] == "hole in sq/transmit: no case applies"
    assert any("opcode=RDMA_READ" in line for line in hole.lines)
    assert any("state=RTS" in line for line in hole.lines)
    assert found["possible sq/asked"].rules == ("sq/asked",)


def test_a_planted_overlap_is_shown() -> None:
    model = mutants.mutant(
        "m.state == INVALID and rights_ok(w.access)\n", "rights_ok(w.access)\n", behind="id: reg/done"
    )
    overlap = refuted(model, "partition sq/start")["partition sq/start"]
    assert set(overlap.rules) == {"reg/done", "reg/valid"}
    assert "overlap of reg/done and reg/valid" in overlap.lines
    assert any(line.startswith("mr#") and "state=VALID" in line for line in overlap.lines)


def test_overlapping_successes_of_a_call_are_shown() -> None:
    model = mutants.mutant(' and head(cq.q).send"', '"', behind="id: cq/poll-send")
    overlap = refuted(model, "partition poll_cq")["partition poll_cq"]
    assert set(overlap.rules) == {"cq/poll-send", "cq/poll-recv"}


def test_a_planted_broken_invariant_is_shown() -> None:
    model = mutants.mutant("w.seq <= w.qp.posted", "w.seq < w.qp.posted", behind="id: wr/posted")
    fall = refuted(model, "inductive wr/posted")["inductive wr/posted"]
    assert fall.rules == ("wr/post-send",)
    assert any(re.search(r"posted=(\d+) -> \d+", line) for line in fall.lines)
    assert any(line.startswith("wr#3 (new): ") for line in fall.lines)


def test_an_owner_must_be_remembered() -> None:
    model = mutants.mutant(
        "              push(list.uses, list_use(qp=qp, seq=qp.posted, mr=named(key), access=access))\n",
        "",
        profile=mutants.KERNEL_2008,
    )
    found = refuted(model, "list/owned-exactly", "list/posted-is-use")
    assert found["inductive list/posted-is-use"].rules == ("wr/post-register",)
    assert "inductive list/owned-exactly" in found


def test_a_free_must_respect_the_owner() -> None:
    model = mutants.mutant(
        'cause: "list_owned(list)"', 'cause: "false"', behind="id: list/free-owned",
        profile=mutants.KERNEL_2008,
    )  # fmt: skip
    found = refuted(model, "list/in-flight-is-owned", "possible list/free-owned")
    assert found["inductive list/in-flight-is-owned"].rules == ("list/free",)
    assert "possible list/free-owned" in found


UNRELIABLE = ("unreliable-services", "unreliable-connection", "unreliable-datagram", "shared-receive-queues")


def test_steps_of_features_partition() -> None:
    wanted = ["partition uc/*", "partition ud/*", "partition unreliable/*", "partition srq/*"]
    results = list(prove(mutants.model(mutants.USER, UNRELIABLE), wanted, seconds=PATIENCE))
    assert {r.name for r in results} >= {"partition uc/execute", "partition ud/arrive", "partition srq/take"}
    assert [r.name for r in results if r.verdict != "proved"] == []
    assert "unreliable/carried" in next(r for r in results if r.name == "partition uc/execute").uses


def test_types_that_differ_must_not_be_connected() -> None:
    model = mutants.mutant(
        "peer.type != qp.type",
        "false",
        behind="id: unreliable/connect-mixed",
        profile=mutants.USER,
        features=UNRELIABLE[:2],
    )
    found = refuted(model, "unreliable/equals", "partition uc/execute")
    assert found["inductive unreliable/equals"].rules == ("qp/modify",)
    assert found["partition uc/execute"].lines[0] == "hole in uc/execute: no case applies"


def test_scopes_are_read_and_said() -> None:
    scope = Scope.parse("qp=1, wr=3,cells=2", ["qp", "wr", "mr"])
    assert (scope.size("qp"), scope.size("wr"), scope.size("mr"), scope.cells) == (1, 3, 2, 2)
    assert str(scope) == "1 qp, 3 wr, 2 of each other object, 2 elements a queue"
    for wrong in ("zz=1", "qp", "qp=0", "qp=-1"):
        with pytest.raises(ValueError, match="one of qp, wr, mr, others, cells"):
            Scope.parse(wrong, ["qp", "wr", "mr"])
    assert next(iter(prove(mutants.model(), ["partition cq/purge"], scope))).scope == str(scope)


def test_no_time_is_unknown_and_not_proved() -> None:
    results = list(prove(mutants.model(), ["partition rq/execute", "inductive cq/behind"], seconds=0.001))
    assert results
    assert {r.verdict for r in results} == {"unknown"}


@pytest.mark.parametrize("profile", [mutants.KERNEL, mutants.KERNEL_2008], ids=lambda p: p[0])
def test_history_is_only_written(profile: tuple[str, str]) -> None:
    """What ghosts write no rule reads or writes, so that no verdict depends on it."""
    theory = Theory(mutants.model(profile))
    history = {place for bodies in theory.ghosts.values() for body in bodies for place in written(body)}
    assert ("mr", "granted") in history
    touched = set()
    for transition in theory.transitions:
        touched |= written(transition.case.body)
        for stmt in transition.case.body:
            touched |= {place for tree in n.in_statement(stmt) for place in fields_read(tree)}
    for source in theory.sources:
        if isinstance(source, Family):
            trees = [*source.lets.values(), source.domain_tree, *(case.when_tree for case in source.cases)]
        else:
            trees = [tree for case in source.cases for tree in (case.guard_tree, case.outputs_tree)]
        touched |= {place for tree in trees if tree is not None for place in fields_read(tree)}
    assert history & touched == set()


def written(body: tuple[n.Stmt, ...]) -> set[tuple[str, str]]:
    """The fields that statements change; those of an object that they make are not counted."""
    changes = n.Assign | n.Push | n.Pop | n.Clear
    return {(s.obj.type.name, s.field) for s in n.flat(body) if isinstance(s, changes)}
