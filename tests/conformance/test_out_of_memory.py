"""A backend that runs out of memory has not failed, and nothing that was not made is used."""

from __future__ import annotations

from verbs_adapters.softhca import SoftHca
from verbs_conformance import program as programs
from verbs_conformance import target
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge, Judgement
from verbs_reference.belief import Action, Belief, Refused
from verbs_reports.verdicts import Verdict

TWO_QUEUES = """
      pd0 = alloc_pd(hca=hca0)
      cq0 = create_cq(hca=hca0, cqe=16)
      cq1 = create_cq(hca=hca0, cqe=16)
"""


DEFAULT: dict[str, object] = {"ref": None, "nat": 0, "bool": False}


def engine() -> Engine:
    return target.engine("linux-kernel", "roce")


def judged(steps: str, objects: int) -> Judgement:
    """What comes of steps on a device that holds so many objects of each kind."""
    text = f"programs:\n  - program: p\n    kind: regression\n    says: x\n    fixture: device\n    steps: |{steps}"
    device = SoftHca({"max_objects": str(objects)})
    judge = Judge(engine(), device, device.hello(), programs.fixtures())
    return judge.run(programs.parse(text, "p.yaml")[0], 1)


def test_a_refused_allocation_is_no_failure_and_changes_nothing() -> None:
    steps = ("poll_cq(cq=cq0)", "destroy_cq(cq=cq0)", "cq2 = create_cq(hca=hca0, cqe=16)", "poll_cq(cq=cq2)")
    rest = "".join(f"      {s}\n" for s in steps)
    done = judged(TWO_QUEUES + rest, objects=1)
    assert done.lines[3].endswith("-> ENOMEM"), done.lines
    assert done.verdict == Verdict.PASS, done.reason
    assert done.fired["cq/create-memory"] == 1
    assert done.fired["cq/create"] == 2


def test_what_was_not_made_decides_nothing() -> None:
    done = judged(TWO_QUEUES + "      poll_cq(cq=cq1)\n", objects=1)
    assert done.verdict == Verdict.INCONCLUSIVE
    assert "did not make cq1" in done.reason
    assert "ENOMEM" in done.reason
    assert done.lines[-1].endswith("-> not called")


def test_what_was_made_at_the_second_try_is_used() -> None:
    rest = "      destroy_cq(cq=cq0)\n      cq1 = create_cq(hca=hca0, cqe=16)\n      poll_cq(cq=cq1)\n"
    done = judged(TWO_QUEUES + rest, objects=1)
    assert done.verdict == Verdict.PASS, done.reason
    assert done.fired["cq/poll-empty"] == 1


def test_with_room_the_rule_does_not_fire() -> None:
    done = judged(TWO_QUEUES + "      poll_cq(cq=cq1)\n", objects=2)
    assert done.verdict == Verdict.PASS
    assert "cq/create-memory" not in done.fired


def opened(hca: int) -> dict[str, object]:
    """What a device tells that has what user verbs of 2008 had, and no feature."""
    outputs = {name: DEFAULT[kind.tag] for name, kind in engine().model.calls["open_device"].outputs.items()}
    limits = {"max_qp_wr": 64, "max_cqe": 256, "max_fast_reg_page_list_len": 16}
    pages = {"min_page_size": 4096, "max_page_size": 65536}
    return outputs | {"hca": hca} | limits | pages | {"mem_mgt_extensions": True, "fast_reg_page_list": True}


def asked(pages: int, result: str) -> tuple[Refused | None, set[str]]:
    """What the belief makes of an answer to alloc_mr, and which of its rules fired for certain."""
    belief = Belief(engine().model, engine().analysis)
    hca, pd = belief.number(), belief.number()
    assert belief.observe(Action("open_device", (), "0", tuple(opened(hca).values()))) is None
    assert belief.observe(Action("alloc_pd", (hca,), "0", (pd, 7))) is None
    found = belief.observe(Action("alloc_mr", (pd, pages), result, (0, 0)))
    assert found is None or isinstance(found, Refused)
    return found, {rule for rule in belief.certain() if rule.startswith("mr/")}


def test_a_reason_that_can_be_seen_comes_first() -> None:
    assert asked(17, "ENOMEM") == (None, {"mr/alloc-too-long"})
    assert asked(4, "ENOMEM") == (None, {"mr/alloc-memory"})


def test_no_other_errno_is_explained() -> None:
    refused, _ = asked(4, "EINVAL")
    assert isinstance(refused, Refused)
