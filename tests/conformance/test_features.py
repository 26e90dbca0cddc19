"""Which features a backend is judged with: what it declares, and of the drafts what is asked for."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from verbs_adapters.softhca import SoftHca
from verbs_conformance import ruling
from verbs_conformance.engine import Engine
from verbs_conformance.target import Target, load, offered
from verbs_reference.model import Model
from verbs_spec import ProfileError
from verbs_spec.document import Spec
from verbs_spec.profiles import select

NAME = "two-devices"


def spec(*, draft: bool) -> Spec:
    made = load()
    return replace(made, profiles={**made.profiles, NAME: replace(made.profiles[NAME], draft=draft)})


@pytest.mark.parametrize(
    ("draft", "declared", "asked", "found"),
    [
        (False, ("TWO_DEVICES",), (), (NAME,)),
        (False, (), (), ()),
        (True, ("TWO_DEVICES",), (), ()),
        (True, ("TWO_DEVICES",), (NAME,), (NAME,)),
    ],
)
def test_a_draft_must_be_asked_for(
    draft: bool, declared: tuple[str, ...], asked: tuple[str, ...], found: tuple[str, ...]
) -> None:
    whole = spec(draft=draft)
    hello = msgspec.structs.replace(SoftHca({}).hello(), capabilities=declared)
    assert offered(whole, hello, asked) == found

    engine = Engine(Model(select(whole, "linux-kernel", "roce", found)))
    reasons = {rule.rule: rule.reason for rule in ruling.unsupported(engine, hello, lambda _: True)}
    why = {(): "does not declare TWO_DEVICES", ("TWO_DEVICES",): "was not asked for with --feature two-devices"}
    assert not found or "qp/create-abroad" not in reasons
    assert found or why[declared] in reasons["qp/create-abroad"]


def test_what_a_transport_lacks_is_unsupported_whatever_is_declared() -> None:
    whole = load()
    hello = msgspec.structs.replace(SoftHca({}).hello(), capabilities=("ATOMIC",))
    engine = Engine(Model(select(whole, "linux-user", "iwarp", ("atomics",))))
    reasons = {rule.rule: rule.reason for rule in ruling.unsupported(engine, hello, lambda _: True)}
    assert reasons["atomic/added"].startswith("iWARP has no message for it.")
    assert "siw_query_device" in reasons["atomic/added"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("two-device", "no feature is called 'two-device'; did you mean 'two-devices'"),
        (NAME, "cannot be judged with the feature two-devices: it does not declare TWO_DEVICES; it declares MEM_MGT_"),
    ],
)
def test_asking_for_what_is_not_there(name: str, message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        offered(load(), SoftHca({}).hello(), (name,))


def test_a_saved_program_brings_its_features_to_its_own_adapter() -> None:
    saved = Target("rdma-core", features=(NAME,))
    assert Target().over(saved).features == (NAME,)
    assert Target("softhca").over(saved).features == ()
    assert Target("softhca").over(Target(features=(NAME,))).features == (NAME,)
