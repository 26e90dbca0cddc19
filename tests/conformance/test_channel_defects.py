"""Completion channels: each regression program finds the device that it was written for, and passes on a good one."""

import pytest
from defective import Defect, judged

from verbs_reports.verdicts import Verdict

FEATURES = ("completion-channels",)
NOTIFY, PROFILE = "rules/cq_event.yaml", "profiles/completion-channels.yaml"
DEFECTS = {
    "again-disarms": Defect(
        NOTIFY, "id: cq-event/again\n", "rearm(cq, cq.arm)", "rearm(cq, UNARMED)", "regress/armed-twice"
    ),
    "never-armed": Defect(
        NOTIFY, "id: cq-event/arm\n", "rearm(cq, FOR_ANY)", "rearm(cq, UNARMED)", "regress/armed-before-anything"
    ),
    "stays-armed": Defect(
        NOTIFY, "raise_event(c: ref cq)", "c.arm = UNARMED\n", "c.arm = c.arm\n", "regress/one-event-a-request"
    ),
    "event-forgotten": Defect(
        NOTIFY, "id: cq-event/told\n", "c.told += 1", "c.told += 0", "regress/event-while-one-waits"
    ),
    "downgrade": Defect(
        NOTIFY, "id: cq-event/no-downgrade\n", "rearm(cq, cq.arm)", "rearm(cq, FOR_SOLICITED)", "regress/downgraded"
    ),
    "no-upgrade": Defect(
        NOTIFY, "id: cq-event/upgrade\n", "rearm(cq, FOR_ANY)", "rearm(cq, cq.arm)", "regress/upgraded"
    ),
    "solicited-for-any": Defect(NOTIFY, "wanted(", "and special", "and true", "regress/solicited-or-not"),
    "flag-is-lost": Defect(PROFILE, "define: carry", "w.solicited", "false", "regress/solicited-or-not"),
    "failures-unsolicited": Defect(
        PROFILE, "define: wake", " or e.status != SUCCESS", "", "regress/failure-is-solicited"
    ),
    "taken-disarms": Defect(
        NOTIFY,
        "id: cq-event/event\n",
        "cq.told -= 1\n",
        "cq.told -= 1\n          cq.arm = UNARMED\n",
        "regress/event-of-polled-entries",
    ),
    "unasked": Defect(
        PROFILE,
        "define: wake",
        "if wanted(c.arm, solicited or e.status != SUCCESS):",
        "if true:",
        "regress/event-nobody-asked-for",
    ),
    "not-waited-for": Defect(
        NOTIFY,
        "id: cq/destroy-unack",
        'cause: "cq.taken > 0"',
        'cause: "false"',
        "regress/acknowledged-on-another-queue",
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_the_program_finds_the_device(name: str) -> None:
    defect = DEFECTS[name]
    assert any(done.verdict == Verdict.FAIL for done in judged(defect.program, FEATURES, defect))


@pytest.mark.parametrize(
    "name",
    sorted({d.program for d in DEFECTS.values()} | {"regress/unread-entries", "regress/event-of-a-destroyed-queue"}),
)
def test_a_good_device_passes(name: str) -> None:
    assert {done.verdict for done in judged(name, FEATURES)} == {Verdict.PASS}
