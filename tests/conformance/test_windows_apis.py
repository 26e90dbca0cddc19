"""The Windows APIs: devices that break one rule of theirs are told apart from the model by the regression programs."""

from __future__ import annotations

from functools import cache

import pytest
from defective import texts

from verbs_conformance import program as programs
from verbs_conformance.build import limits
from verbs_conformance.engine import Engine
from verbs_conformance.judge import Judge
from verbs_conformance.reference_backend import ReferenceBackend
from verbs_reference.model import Model
from verbs_reports.verdicts import Verdict
from verbs_spec.document import CallRule
from verbs_spec.loader import loads
from verbs_spec.nodes import ERRNOS
from verbs_spec.profiles import select

APIS = {"networkdirect": "nd", "winverbs": "wv"}
FEATURES = {"networkdirect": ("memory-windows",), "winverbs": ()}
DEFECTS = {
    "one notification completes": ("n.release = len(n.waiting)", "n.release = 1", "two-notifications"),
    "an event for what was told": (
        'value: "true"\n    says: Completions that came after',
        'value: "false"\n    says: Completions that came after',
        "wake-up-kept",
    ),
    "armed for solicited lowers": (
        "elif type == SOLICITED and n.armed == UNARMED:",
        "elif type == SOLICITED:",
        "no-downgrade",
    ),
    "any does not raise": (
        "if type == ANY:\n      n.armed = FOR_ANY",
        "if type == ANY and n.armed == UNARMED:\n      n.armed = FOR_ANY",
        "upgrade",
    ),
    "a failure is not solicited": ('"h.solicited or h.status != SUCCESS"', '"h.solicited"', "failure-is-solicited"),
    "errors arm": (
        "push(n.errors, request)",
        "arm_notifier(n, ANY)\n            push(n.waiting, request)",
        "errors-arm-nothing",
    ),
    "one is cancelled": ("n.cancelled = len(n.waiting)", "n.cancelled = 1", "cancel-all"),
    "an old key opens": (
        "r.state = READY\n          forget(r.mr)",
        "r.state = READY",
        "key-after-deregistration",
    ),
    "a silent invalidation is left out": (
        "start(q, w)\n            w.mw.bound = false",
        "start(q, w)\n            w.mw.bound = not w.signaled",
        "silent-invalidate",
    ),
    "windows hold no region": ("n.mr == region.request.mr and attached(n)", "false", "busy-region"),
    "a flush forgets receives": (
        'returns: ["0"]\n        do: "qp.state = ERR"\nalso:',
        'returns: ["0"]\n        do: "clear(qp.rq)"\nalso:',
        "flush-unconnected",
    ),
}


@cache
def plain(api: str) -> Engine:
    return Engine(Model(select(loads(texts()), api, "roce", FEATURES[api])))


def judged(api: str, backend: Model, name: str) -> Verdict:
    engine, fixtures = plain(api), programs.fixtures()
    device = ReferenceBackend(backend, limits(engine, fixtures))
    (program,) = (p for p in programs.shipped("programs") if p.name == name)
    return Judge(engine, device, device.hello(), fixtures).run(program, 1).verdict


def of(api: str, defect: str) -> str:
    return f"regress/{APIS[api]}-{DEFECTS[defect][2]}"


SHARED = ("one notification completes", "an old key opens")  # enough to see that the other API has these rules too
CASES = [*(("networkdirect", each) for each in DEFECTS), *(("winverbs", each) for each in SHARED)]


@pytest.mark.parametrize(("api", "defect"), CASES)
def test_a_device_with_a_defect_is_refused(api: str, defect: str) -> None:
    old, new, _ = DEFECTS[defect]
    changed = {file: text.replace(old, new) for file, text in texts().items()}
    assert sum(changed[file] != text for file, text in texts().items()) == 1
    assert judged(api, plain(api).model, of(api, defect)) == Verdict.PASS
    assert judged(api, Model(select(loads(changed), api, "roce", FEATURES[api])), of(api, defect)) == Verdict.FAIL


@pytest.mark.parametrize("api", APIS)
def test_every_result_is_a_word_of_the_api(api: str) -> None:
    spec = plain(api).model.spec
    left = {
        f"{rule.id} returns {each}"
        for rule in spec.rules.values()
        if isinstance(rule, CallRule)
        for each in rule.returns
        if each in ERRNOS
    }
    assert not left, f"give {api} a word for each in its profile's 'results', or leave the rule out of it"
