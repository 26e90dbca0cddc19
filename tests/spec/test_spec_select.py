"""A specification under one API and one transport."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from verbs_spec import ProfileError, SpecError, load, loads, select
from verbs_spec.document import CallRule, Spec
from verbs_spec.profiles import capabilities, features

SAMPLE = Path(__file__).parent / "sample"
DELTAS = "deltas: [{rule: mr/ok, field: %s, value: '%s', sources: [man], says: S.}]"


@pytest.fixture(scope="module")
def sample() -> Spec:
    return load(SAMPLE)


def small(rules: str, user: str = "", ib: str = "") -> Spec:
    return loads(
        {
            "rules/mr.yaml": f"object: mr\nsummary: S.\n{rules}",
            "profiles/user.yaml": f"profile: user\nkind: api\nsummary: S.\n{user}",
            "profiles/ib.yaml": f"profile: ib\nkind: transport\nsummary: S.\n{ib}",
        }
    )


@pytest.mark.parametrize(
    ("api", "transport", "rules"),
    [
        ("linux-user", "ib", ["mr/dereg-bound", "mr/dereg", "reg/done", "reg/refused"]),
        ("linux-kernel", "ib", ["mr/dereg-bound", "mr/dereg", "mr/alloc", "reg/done", "reg/refused"]),
    ],
)
def test_lists_restrict(sample: Spec, api: str, transport: str, rules: list[str]) -> None:
    chosen = select(sample, api, transport)
    assert list(chosen.rules) == rules
    assert chosen.selected == (api, transport)
    assert ("twice" in chosen.calls["dereg_mr"].shapes) == (api == "linux-user")


def test_a_mixed_list_wants_one_of_each() -> None:
    rule = '{id: mr/ok, sources: [man], says: S., returns: ["0"]}'
    cause = "{id: mr/bad, sources: [man], says: S., cause: a, returns: [EIO], profile: [%s]}"
    for profiles, there in [
        ("user", True),
        ("ib", True),
        ("user, ib", True),
        ("other", False),
        ("user, other", False),
    ]:
        rules = f"calls: {{c: {{rules: [{rule}, {cause % profiles}]}}}}"
        spec = loads(
            {
                "rules/mr.yaml": f"object: mr\nsummary: S.\n{rules}",
                "profiles/user.yaml": "profile: user\nkind: api\nsummary: S.",
                "profiles/ib.yaml": "profile: ib\nkind: transport\nsummary: S.",
                "profiles/other.yaml": "profile: other\nkind: transport\nsummary: S.",
            }
        )
        assert ("mr/bad" in select(spec, "user", "ib").rules) == there, profiles


def test_deltas_replace_and_are_kept(sample: Spec) -> None:
    kernel = select(sample, "linux-kernel", "ib").rules["mr/dereg-bound"]
    assert isinstance(kernel, CallRule)
    assert (kernel.returns, kernel.prefer) == (("EINVAL",), ())
    assert [each.field for each in kernel.deltas] == ["returns", "prefer"]
    assert kernel.sources == ("man ibv_dereg_mr(3)", "verbs.c")
    user = select(sample, "linux-user", "ib").rules["mr/dereg-bound"]
    assert isinstance(user, CallRule)
    assert (user.returns, user.undefined) == ((), "{mr}")
    before = sample.rules["mr/dereg-bound"]
    assert isinstance(before, CallRule)
    assert before.returns == ("EBUSY", "EINVAL")


def test_a_level_may_be_replaced() -> None:
    rule = "{id: mr/ok, level: may, sources: [man], says: S., returns: ['0']}"
    spec = small(f"calls: {{c: {{rules: [{rule}]}}}}", user=DELTAS % ("level", "must"))
    level = select(spec, "user", "ib").rules["mr/ok"].level
    assert level == "must"
    assert type(level) is str  # as results files can hold it


def test_two_profiles_that_replace_the_same(sample: Spec) -> None:
    with pytest.raises(SpecError) as caught:
        select(sample, "linux-kernel", "iwarp")
    assert caught.value.message.startswith(
        "profiles linux-kernel and iwarp both replace 'returns' of mr/dereg-bound, the other at "
    )
    assert (caught.value.where.line, caught.value.where.column) == (5, 11)


def test_what_is_left_must_still_fit() -> None:
    rules = (
        "calls: {c: {rules: [{id: mr/ok, sources: [man], says: S., returns: ['0'], profile: [user]}, "
        "{id: mr/bad, sources: [man], says: S., cause: a, returns: [EIO]}, "
        "{id: mr/ok2, sources: [man], says: S., returns: ['0'], profile: [ib]}]}}"
    )
    with pytest.raises(SpecError, match="call c has several rules without 'cause', and mr/ok has no 'when'"):
        select(small(rules), "user", "ib")
    with pytest.raises(SpecError, match="mr/ok has both 'undefined' and 'returns'"):
        select(small(rules, user=DELTAS % ("undefined", "{m}")), "user", "ib")


def test_unknown_profiles(sample: Spec) -> None:
    with pytest.raises(ProfileError, match="'linux' is no api profile; known are linux-kernel, linux-user"):
        select(sample, "linux", "ib")
    with pytest.raises(ProfileError, match="'linux-user' is no transport profile; known are ib, iwarp"):
        select(sample, "linux-user", "linux-user")
    with pytest.raises(ProfileError, match="linux-user and ib are selected already"):
        select(select(sample, "linux-user", "ib"), "linux-user", "ib")


DEFINE = (
    'define: {"f(a: nat)": "a + 1", "g(a: nat)": "f(a)"}\n'
    'calls: {c: {rules: [{id: mr/ok, sources: [man], says: S., returns: ["0"]}]}}'
)
REDEFINE = "defines: [{define: f, value: '%s', sources: [man], says: S.}]"


def test_a_profile_may_redefine() -> None:
    spec = small(DEFINE, user=REDEFINE % "a + 2")
    chosen = select(spec, "user", "ib")
    assert (chosen.defines["f"].body, chosen.defines["g"].body) == ("a + 2", "f(a)")
    assert spec.defines["f"].body == "a + 1"


def test_two_profiles_that_redefine_the_same() -> None:
    with pytest.raises(SpecError, match=r"profiles user and ib both redefine f, the other at .*user.yaml:4:20;"):
        select(small(DEFINE, user=REDEFINE % "a", ib=REDEFINE % "a"), "user", "ib")


def featured(delta: str = "", more: Mapping[str, str] = {}) -> Spec:
    """A call with a cause of two features and one of none, a call and a family of one feature."""
    rule = '{id: %s, sources: [man], says: S., returns: ["0"]}'
    cause = "{id: %s, sources: [man], says: S., cause: a, returns: [EIO], profile: [%s]}"
    step = "{for: m in mr, profile: [windows], rules: [{id: mw/step, sources: [man], says: S., do: a}]}"
    causes = ", ".join([cause % ("mr/bound", "user, windows"), cause % ("mr/both", "windows, shared")])
    return loads(
        {
            "rules/mr.yaml": "object: mr\nsummary: S.\nobjects: {mr: {a: nat}}\n"
            f"calls: {{c: {{rules: [{rule % 'mr/ok'}, {causes}]}}, "
            f"d: {{profile: [windows], rules: [{rule % 'mw/ok'}]}}}}\n"
            f"steps: {{mw/steps: {step}}}",
            "profiles/user.yaml": "profile: user\nkind: api\nsummary: S.",
            "profiles/kernel.yaml": "profile: kernel\nkind: api\nsummary: S.",
            "profiles/ib.yaml": "profile: ib\nkind: transport\nsummary: S.",
            "profiles/windows.yaml": f"profile: windows\nkind: feature\nsummary: S.\n{delta}",
            "profiles/shared.yaml": f"profile: shared\nkind: feature\nsummary: S.\n{delta}",
            **more,
        }
    )


@pytest.mark.parametrize(
    ("api", "has", "there", "lacking"),
    [
        ("user", (), ["mr/ok"], {"mr/bound": ("windows",), "mr/both": ("shared", "windows"), "mw/ok": ("windows",)}),
        ("user", ("windows",), ["mr/ok", "mr/bound", "mw/ok", "mw/step"], {"mr/both": ("shared",)}),
        ("kernel", ("windows",), ["mr/ok", "mw/ok", "mw/step"], {"mr/both": ("shared",)}),
        ("user", ("windows", "shared"), ["mr/ok", "mr/bound", "mr/both", "mw/ok", "mw/step"], {}),
    ],
)
def test_what_names_features_needs_all_of_them(
    api: str, has: tuple[str, ...], there: list[str], lacking: dict[str, tuple[str, ...]]
) -> None:
    chosen = select(featured(), api, "ib", has)

    assert list(chosen.rules) == there
    assert chosen.features == has
    found = {name: each.features for name, each in chosen.lacking.items() if name != "mw/step"}
    assert found == lacking


def test_a_feature_that_no_device_of_a_transport_has() -> None:
    lacks = "profile: tcp\nkind: transport\nsummary: S.\nlacks: [{features: [windows], says: S., sources: [man]}]"
    spec = featured(more={"profiles/tcp.yaml": lacks})
    chosen = select(spec, "user", "tcp", ("windows", "shared"))
    assert (list(chosen.rules), chosen.features) == (["mr/ok"], ("shared",))
    assert {each.features for each in chosen.lacking.values()} == {("windows",)}
    with pytest.raises(SpecError, match=r"'lacks' of tcp names .* 'window', .* did you mean 'windows'"):
        featured(more={"profiles/tcp.yaml": lacks.replace("windows", "window")})
    with pytest.raises(SpecError, match="profile user is of kind api, and only a transport has 'lacks'"):
        featured(more={"profiles/user.yaml": lacks.replace("tcp", "user").replace("transport", "api")})


def test_what_iwarp_lacks() -> None:
    whole = load()
    chosen = select(whole, "linux-user", "iwarp", features(whole))
    lost = {"unreliable-services", "unreliable-connection", "unreliable-datagram", "atomics", "immediate-data", "rnr"}
    assert set(features(whole)) - set(chosen.features) == lost
    assert {"ud/received", "ah/create", "uc/written", "atomic/added", "send/immediate", "rnr/exceeded"} <= set(
        chosen.lacking
    )
    assert not set(chosen.lacking) & set(chosen.rules)


def test_features_of_one_selection_may_not_replace_the_same_field() -> None:
    spec = featured("deltas: [{rule: mr/ok, field: returns, value: [EIO], sources: [man], says: S.}]")

    select(spec, "user", "ib", ("shared",))
    with pytest.raises(SpecError, match="profiles windows and shared both replace 'returns' of mr/ok"):
        select(spec, "user", "ib", ("windows", "shared"))


def test_what_a_device_declares_that_has_a_feature() -> None:
    text = "profile: windows\nkind: feature\nsummary: S.\n"
    told = {"profiles/windows.yaml": f"{text}capability: [TYPE_2A, TYPE_2B]\nstatus: draft"}
    for files, words, draft in [(told, ("TYPE_2A", "TYPE_2B"), True), ({}, ("WINDOWS",), False)]:
        spec = loads({"rules/mr.yaml": "object: mr\nsummary: S.", "profiles/windows.yaml": text} | files)
        assert capabilities(spec, "windows") == words
        assert spec.profiles["windows"].draft is draft


WORDS = """
results:
  ND_DEVICE_BUSY: {for: [EBUSY], says: S., sources: [man]}
  ND_NO_MEMORY: {for: [ENOMEM, EAGAIN], says: S., sources: [man]}
  ND_RESOURCES: {for: [ENOMEM], says: S., sources: [man]}
  ND_PENDING: {says: S., sources: [man]}
"""
CALL = "{id: mr/ok, sources: [man], says: S., returns: ['0']}"


def results(returns: str, words: str = WORDS, field: str = "") -> tuple[tuple[str, ...], tuple[str, ...]]:
    rules = f"calls: {{c: {{rules: [{CALL}, {{id: mr/no, sources: [man], says: S., cause: a, {returns}}}]}}}}"
    rule = select(small(rules, words + field), "user", "ib").rules["mr/no"]
    assert isinstance(rule, CallRule)
    return tuple(map(str, rule.returns)), tuple(map(str, rule.prefer))


def test_an_api_has_its_own_words() -> None:
    busy = "returns: [EBUSY, EINVAL, ENOMEM], prefer: [ENOMEM]"
    assert results(busy) == (
        ("ND_DEVICE_BUSY", "EINVAL", "ND_NO_MEMORY", "ND_RESOURCES"),
        ("ND_NO_MEMORY", "ND_RESOURCES"),
    )
    assert results("returns: [ENOMEM, EAGAIN]") == (("ND_NO_MEMORY", "ND_RESOURCES"), ())
    assert results("returns: [ND_PENDING]") == (("ND_PENDING",), ())
    delta = "deltas: [{rule: mr/no, field: returns, value: [ND_PENDING, EBUSY], sources: [man], says: S.}]"
    assert results(busy.split(", prefer", maxsplit=1)[0], field=delta) == (("ND_PENDING", "ND_DEVICE_BUSY"), ())


def test_a_word_that_no_api_has() -> None:
    with pytest.raises(SpecError, match=r"names 'ND_PENDNG'; a call returns 0, .* did you mean 'ND_PENDING'"):
        results("returns: [ND_PENDNG]")
    with pytest.raises(SpecError, match="the result 'EINVAL' of profile user is no word of an API's own"):
        results("returns: [EIO]", "results: {EINVAL: {says: S., sources: [man]}}")
    other = {"profiles/other.yaml": f"profile: other\nkind: api\nsummary: S.\n{WORDS}"}
    spec = loads(
        {
            "rules/mr.yaml": f"object: mr\nsummary: S.\ncalls: {{c: {{rules: [{CALL.replace('0', 'ND_PENDING')}]}}}}",
            "profiles/user.yaml": "profile: user\nkind: api\nsummary: S.\nresults: {U_X: {says: S., sources: [man]}}",
            "profiles/ib.yaml": "profile: ib\nkind: transport\nsummary: S.",
            **other,
        }
    )
    with pytest.raises(SpecError, match="rule mr/ok returns ND_PENDING, which is no result of user"):
        select(spec, "user", "ib")


def test_an_api_like_another() -> None:
    rules = f"define: {{'f()': '1', 'g()': '1'}}\ncalls: {{c: {{rules: [{CALL}]}}}}"
    row = "{rule: mr/ok, field: %s, value: '%s', sources: [man], says: S.}"
    body = "{define: %s, value: '%s', sources: [man], says: S.}"
    files = {
        "rules/mr.yaml": f"object: mr\nsummary: S.\n{rules}",
        "profiles/user.yaml": "profile: user\nkind: api\nsummary: S.\n"
        f"deltas: [{row % ('do', 'a()')}, {row % ('outputs', 'x')}]\ndefines: [{body % ('f', 2)}, {body % ('g', 2)}]",
        "profiles/win.yaml": "profile: win\nkind: api\nsummary: S.\nlike: user\n"
        f"deltas: [{row % ('do', 'b()')}]\ndefines: [{body % ('g', 3)}]",
        "profiles/ib.yaml": "profile: ib\nkind: transport\nsummary: S.",
    }
    chosen = select(loads(files), "win", "ib")
    rule = chosen.rules["mr/ok"]
    assert isinstance(rule, CallRule)
    assert (rule.do, rule.outputs) == ("b()", "x")
    assert (chosen.defines["f"].body, chosen.defines["g"].body) == ("2", "3")
    far = {**files, "profiles/far.yaml": "profile: far\nkind: api\nsummary: S.\nlike: win"}
    assert select(loads(far), "far", "ib").defines["g"].body == "3"
    with pytest.raises(SpecError, match="profile far is like itself, by way of user"):
        loads({**far, "profiles/user.yaml": "profile: user\nkind: api\nsummary: S.\nlike: far"})
    with pytest.raises(SpecError, match=r"names the API profile 'usr', .* did you mean 'user'"):
        loads({**files, "profiles/far.yaml": "profile: far\nkind: api\nsummary: S.\nlike: usr"})


def test_what_an_api_is_without() -> None:
    other = CALL.replace("mr/ok", "mr/d")
    rules = (
        f"calls: {{c: {{params: {{n: nat}}, shapes: {{s: {{profile: [user], n: ['1']}}}}, rules: [{CALL},\n"
        "  {id: mr/no, sources: [man], says: S., cause: a, returns: [EIO]},\n"
        "  {id: mr/more, sources: [man], says: S., cause: a, returns: [EIO], profile: [more]}]},\n"
        f"  d: {{rules: [{other}]}}}}"
    )
    far = "profile: far\nkind: api\nsummary: S.\nlike: user\nwithout: [d, mr/no]\nfeatures: []"
    files = {
        "rules/mr.yaml": f"object: mr\nsummary: S.\n{rules}",
        "profiles/user.yaml": "profile: user\nkind: api\nsummary: S.",
        "profiles/more.yaml": "profile: more\nkind: feature\nsummary: S.",
        "profiles/ib.yaml": "profile: ib\nkind: transport\nsummary: S.",
        "profiles/far.yaml": far,
    }
    assert set(select(loads(files), "user", "ib", ["more"]).rules) == {"mr/ok", "mr/no", "mr/more", "mr/d"}
    assert set(select(loads(files), "user", "ib").lacking) == {"mr/more"}
    chosen = select(loads(files), "far", "ib", ["more"])
    assert (set(chosen.rules), set(chosen.calls), chosen.features, chosen.lacking) == ({"mr/ok"}, {"c"}, (), {})
    assert set(chosen.calls["c"].shapes) == {"s"}
    with pytest.raises(SpecError, match=r"'without' of far names .* 'mr/know', .* did you mean 'mr/no'"):
        loads({**files, "profiles/far.yaml": far.replace("mr/no", "mr/know")})
