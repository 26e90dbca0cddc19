"""Suspects under a specification that a waiver amends: a step may take the element that another was to work on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from verbs_adapters import registry
from verbs_adapters.contract import Answer, Backend, Hello, Trouble, Value
from verbs_conformance import program as programs
from verbs_conformance import target
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge
from verbs_conformance.waivers import load, model
from verbs_reports.verdicts import Verdict

WAIVERS = Path(__file__).parents[2] / "reports/published/waivers/siw.yaml"

# Under the waiver the failure of qp0 is announced to qp1 while its message is still to be refused there, and the
# refusal takes the announcement away.
PROGRAM = """
program: two-ends-of-one-stream
api: [linux-kernel]
fixture: pair
steps: |
  post_send(WRITE, wr_id=1, sg_list=[sge(addr=buf0.addr, length=64, lkey=KEY)], remote_addr=4096, rkey=0)
  post_send(qp=qp0, opcode=LOCAL_INV, wr_id=2, invalidate_rkey=0)
  post_recv(qp=qp1, wr_id=3, sg_list=[])
  poll_cq(cq=cq1)
""".replace("KEY", "pd0.local_dma_lkey").replace("WRITE", "qp=qp0, opcode=RDMA_WRITE")


class Liar:
    """softhca, but for polls: each finds the completion of a work request that nobody has posted."""

    def __init__(self, device: Backend) -> None:
        self.device = device

    def hello(self) -> Hello:
        return self.device.hello()

    def reset(self, seed: int) -> Trouble | None:
        return self.device.reset(seed)

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        if verb == "poll_cq":
            outputs = {"opcode": "SEND", "status": "SUCCESS", "n": 1, "wr_id": 77, "qp_num": 1, "byte_len": 0}
            return Answer("0", {**outputs, "wc_flags": [], "invalidate_rkey": 0})
        return self.device.call(verb, args)

    def close(self) -> None:
        self.device.close()


def test_a_step_that_lost_its_element_to_another_is_not_looked_at() -> None:
    spec = target.load()
    healthy = target.engine("linux-kernel", "iwarp")
    waiver = next(w for w in load(WAIVERS, spec) if w.name == "siw-failure-keeps-rts")
    amended = Engine(model(healthy.model.spec, [waiver]), healthy)
    device = Liar(registry.create("softhca", {"api": "linux-kernel", "transport": "iwarp"}))
    (program,) = programs.parse(PROGRAM, "a test")

    done = Judge(amended, device, device.hello(), programs.fixtures()).run(program, seed=1)

    assert done.verdict is Verdict.FAIL
    assert done.failed_step is not None
    assert done.failed_step.call == "poll_cq"
    assert done.suspects
