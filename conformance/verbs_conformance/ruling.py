"""Verdicts on rules and choices, from what a run has counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from verbs_adapters.contract import Hello
from verbs_conformance.device import Device, kinds, suits, told
from verbs_conformance.engine import Engine
from verbs_conformance.tally import Tally
from verbs_conformance.unwitnessed import Reason, reasons
from verbs_reference.options import asked, barring
from verbs_reports import records as r
from verbs_reports.text import plural
from verbs_reports.verdicts import Verdict
from verbs_spec.document import CallRule, Spec, StepRule
from verbs_spec.profiles import absence, capabilities


def rules(
    engine: Engine, hello: Hello, tally: Tally, wanted: Collection[str], waivers: Sequence[r.Waiver]
) -> list[r.Rule]:
    """The verdict on each rule that is wanted, that a failed program counts against, or that a waiver is for."""
    known = reasons()
    made = []
    waived = {w.rule: w for w in sorted(waivers, key=lambda w: w.verdict.severity)}
    for name in map(str, engine.model.spec.rules):
        if name not in wanted and name not in tally.failures and name not in waived:
            continue
        rule = engine.model.spec.rules[name]
        verdict, reason = _with_waiver(name, tally, waived) or _verdict(engine, hello, tally, name, known)
        made.append(_record(rule, verdict, reason, tally.fired.get(name, 0), tally.programs.get(name, 0)))
    return made


def unsupported(engine: Engine, hello: Hello, wanted: Callable[[str], bool]) -> list[r.Rule]:
    """The wanted rules about features that the transport or the backend lacks, or whose rules are drafts."""
    return [
        _record(
            lacking.rule,
            Verdict.UNSUPPORTED,
            " ".join(_lack(engine.model.spec, feature, hello.capabilities) for feature in lacking.features),
        )
        for name, lacking in engine.model.spec.lacking.items()
        if wanted(name)
    ]


def _lack(spec: Spec, feature: str, declared: Collection[str]) -> str:
    """Why the rules of a feature are not there."""
    for never in (absence(spec.profiles[name], feature) for name in spec.selected or ()):
        if never:
            return f"{' '.join(never.says.split())} ({'; '.join(never.sources)})"
    words = capabilities(spec, feature)
    if not set(words) & set(declared):
        return f"The backend does not declare {' or '.join(words)}."
    return f"The feature {feature} is a draft, and was not asked for with --feature {feature}."


def _record(rule: CallRule | StepRule, verdict: Verdict, reason: str, fired: int = 0, programs: int = 0) -> r.Rule:
    return r.Rule(
        rule=str(rule.id),
        object=rule.id.split("/", maxsplit=1)[0],
        level=rule.level,
        status=rule.status,
        says=" ".join(str(rule.says).split()),
        sources=tuple(str(x) for x in rule.sources),
        verdict=verdict,
        fired=fired,
        programs=programs,
        reason=reason,
    )


def _with_waiver(rule: str, tally: Tally, waived: Mapping[str, r.Waiver]) -> tuple[Verdict, str] | None:
    """What a rule's worst waiver makes of it, None if there is none or a failure stands beside it."""
    if rule in tally.failures or rule not in waived:
        return None
    waiver = waived[rule]
    if waiver.verdict is Verdict.WAIVED:
        shown = plural(len(tally.waived.get(rule, ())), "failing program")
        return Verdict.WAIVED, f"waived by {waiver.waiver}, {shown}: {waiver.reason}"
    if waiver.verdict is Verdict.UNEXPECTED_PASS:
        return Verdict.UNEXPECTED_PASS, f"waiver {waiver.waiver}: {waiver.note}"
    return None


def _verdict(engine: Engine, hello: Hello, tally: Tally, rule: str, known: Mapping[str, Reason]) -> tuple[Verdict, str]:
    failed = tally.failures.get(rule)
    if failed:
        return (
            Verdict.FAIL,
            f"{plural(len(failed), 'failing program')} {'counts' if len(failed) == 1 else 'count'} against it, "
            f"first {failed[0].program.name}",
        )
    if rule in tally.deviations:
        return (
            Verdict.DEVIATION,
            f"{tally.deviations[rule]} times a result that the rule allows and does not prefer",
        )
    if tally.fired.get(rule):
        return Verdict.PASS, ""
    if rule in known:
        return known[rule].verdict, known[rule].text
    choice = barring(engine.model, rule, tally.choices)
    if choice:
        options = " or ".join(sorted(tally.choices[choice]))
        return Verdict.CHOICE, f"The device takes {options} of the choice {choice}, which the rule is not about."
    undecided = (Verdict.NOT_RUN, "no program fired it for certain")
    return _of_others(engine, hello, tally, rule) or _of_an_option(engine, rule) or undecided


def _of_others(engine: Engine, hello: Hello, tally: Tally, rule: str) -> tuple[Verdict, str] | None:
    """What a rule is that its programs fire on certain devices only, unless the backend is known to be one of these."""
    known = kinds(engine, rule)
    able = [each for each in known if suits(engine, each, hello)]
    if not able:
        words = "and the backend is none, by what it declares"
        return (Verdict.UNSUPPORTED, f"Only a device that {told(known[0])} fires it, {words}.") if known else None
    if any(_is_known_to_be(engine, each, tally) for each in able):
        return None
    if able[0].permitted == {rule}:
        return Verdict.CHOICE, "The rule only permits, and this run has not seen the device make use of it."
    return Verdict.CHOICE, f"Only a device that {told(able[0])} fires it, and this run has not seen it do so."


def _of_an_option(engine: Engine, rule: str) -> tuple[Verdict, str] | None:
    """What a rule is that is about an option which a backend may take now and then, or never."""
    for choice, options in asked(engine.model, rule):
        if not engine.model.voc.choices[choice][1]:
            able = f"takes {' or '.join(sorted(options))} of the choice {choice}"
            return Verdict.CHOICE, f"Only a device that {able} fires it, and this run has not seen it do so."
    return None


def _is_known_to_be(engine: Engine, device: Device, tally: Tally) -> bool:
    """Whether the run has shown that the backend is of this kind: its stable choices are, and nothing else is asked."""
    stable = all(engine.model.voc.choices[name][1] for name in device.options)
    stable = stable and not device.permitted and not device.declined
    return stable and all(tally.choices.get(n) == {o} for n, o in device.options.items())


def choices(engine: Engine, tally: Tally) -> list[r.Choice]:
    """What the backend does where the sources leave it open."""
    made = []
    for name, (known, stable) in engine.model.voc.choices.items():
        taken = tuple(o for o in known if o in tally.choices.get(name, set()))
        empty = stable and name in tally.choices and not taken
        made.append(
            r.Choice(
                choice=name,
                options=known,
                taken=taken,
                stable=stable,
                verdict=Verdict.FAIL if empty else Verdict.CHOICE,
            )
        )
    return made
