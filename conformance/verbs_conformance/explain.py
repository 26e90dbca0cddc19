"""``verbspec explain``: everything that the specification says about a word.

A word may be several things at once, an errno and a rule's result, a verb and a part of a rule; each is told.  Rules
are told whole where there are few of them, else one line each.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable
from functools import cache

import click

from verbs_conformance.listing import traced
from verbs_conformance.program import shipped
from verbs_conformance.questions import FORMULAS, LIKE, Asked, answers, formula_words, mentioning, recognise, through
from verbs_conformance.target import engine, load
from verbs_conformance.transitions import Transition, states, transitions
from verbs_conformance.unwitnessed import reasons
from verbs_reference.model import Model
from verbs_spec import facts
from verbs_spec import sources as documents
from verbs_spec.document import CallRule, Document, Spec, StepRule, Table
from verbs_spec.errors import near
from verbs_spec.facts import MARKS, Facts
from verbs_spec.profiles import features

Rule = CallRule | StepRule
WIDTH = 100
WHOLE = 8
"""So many rules are told whole; of more each is one line."""
_TRANSITION = re.compile(r"(\w+)\s*(?:->|-|\u2192)\s*(\w+)")
TOPICS = (
    "A topic is a rule's id (reg/valid), a family of rules (reg), an object (qp), a verb, an errno, a status, "
    "a state, a transition (RTS->ERR), a choice, a define, a family of steps, an invariant, a profile or a fact: see "
    "'verbspec list rules'"
)
ASKING = "A question is one of 'verbspec list questions', in about these words."
NEAREST = 5
"""So many questions are named where the words are those of none."""


def explain(topic: str) -> int:
    """Print everything that the specification says about a topic; a usage error if that is nothing."""
    spec = load()
    if topic in spec.rules:
        rule_whole(spec, spec.rules[topic])
        return 0
    moved = _TRANSITION.fullmatch(topic.strip())
    if moved and _transition(spec, moved[1], moved[2]):
        return 0
    if len(topic.split()) > 1:
        question(spec, topic)
        return 0
    told = [tell(spec, topic) for tell in _TELLERS]
    if not any(told):
        raise click.UsageError(f"nothing is said about {topic!r}{near(topic, _known(spec)) or '.'} {TOPICS}")
    return 0


def _known(spec: Spec) -> list[str]:
    errnos = {e for r in spec.rules.values() if isinstance(r, CallRule) for e in r.returns}
    words = [v for e in spec.enums.values() for v in e.values]
    named = (spec.rules, spec.families, spec.objects, spec.records, spec.enums, spec.calls)
    more = (spec.choices, spec.defines, spec.tables, spec.profiles, _prefixes(spec), _facts().facts)
    invariants = [*(i.id for i in spec.invariants), *(u.id for u in spec.unspecified)]
    return sorted({str(k) for group in (*named, *more, words, errnos, invariants) for k in group})


def _prefixes(spec: Spec) -> set[str]:
    return {str(r).partition("/")[0] for r in spec.rules}


# -- one kind of topic each: each prints and says whether it had something to say ----------------


def _choice(spec: Spec, topic: str) -> bool:
    if not _choice_alone(spec, topic):
        return False
    _rules(spec, mentioning(spec, *through(spec, topic)))
    return True


def _choice_alone(spec: Spec, topic: str) -> bool:
    choice = spec.choices.get(topic)
    if choice is None:
        return False
    stable = "; the same each time" if choice.stable else ""
    click.echo(f"{topic}: a choice that the sources leave open: {', '.join(choice.options)}{stable}")
    _says(choice.says)
    _sources(spec, choice.sources)
    return True


def _call(spec: Spec, topic: str) -> bool:
    call = spec.calls.get(topic)
    if call is None:
        return False
    click.echo(f"{topic}: a verb{_under(call.profile)}")
    for kind, members in (("takes", call.params), ("gives", call.outputs)):
        for name, type_ in members.items():
            click.echo(f"  {kind:5} {name}: {type_}")
    _rules(spec, call.rules)
    return True


def _enumerator(spec: Spec, topic: str) -> bool:
    found = [e for e in spec.enums.values() if topic in e.values]
    for enum in found:
        click.echo(f"{topic}: one of {enum.name}: {', '.join(enum.values)}")
    if found:
        _rules(spec, mentioning(spec, topic))
    return bool(found)


def _errno(spec: Spec, topic: str) -> bool:
    found = [r for r in spec.rules.values() if isinstance(r, CallRule) and topic in r.returns]
    if found:
        verbs = dict.fromkeys(str(r.call) for r in found)
        click.echo(f"{topic}: a result of {', '.join(verbs)}")
    return _rules(spec, found)


def _define(spec: Spec, topic: str) -> bool:
    define = spec.defines.get(topic)
    if define is None or define.made:
        return False
    click.echo(f"{topic}({', '.join(f'{p.name}: {p.type}' for p in define.params)}): a define")
    click.echo(textwrap.indent(textwrap.dedent(str(define.body)).strip(), "  "))
    others = [str(d.name) for d in spec.defines.values() if topic in formula_words(str(d.body)) and d is not define]
    if others:
        click.echo(f"  used by the defines {', '.join(others)}")
    _rules(spec, mentioning(spec, *through(spec, topic)), whole=0)
    return True


def _table(spec: Spec, topic: str) -> bool:
    table = spec.tables.get(topic) or next((t for t in spec.tables.values() if topic in _columns(t)), None)
    if table is None:
        return False
    click.echo(f"{table.name}({', '.join(table.keys)}): a table; its columns: {', '.join(_columns(table))}")
    _says(table.says)
    for row in table.rows:
        where = "; ".join(f"{key} {', '.join(row.keys.get(key, ('any',)))}" for key in table.keys)
        click.echo(f"  {row.id}: {where}")
        for column, words in row.cells.items():
            click.echo(f"      {column}: {', '.join(words)}")
    return True


def _columns(table: Table) -> list[str]:
    """The defines that look its columns up."""
    return [f"{table.name}_{column}" for column in table.columns]


def _family(spec: Spec, topic: str) -> bool:
    family = spec.families.get(topic)
    if family is None:
        return False
    optional = "; may run, need not" if family.optional else ""
    click.echo(f"{topic}: internal steps of each {family.each.kind}, called {family.each.name}{optional}")
    if family.take is not None:
        click.echo(f"  take:      {family.take.name} = head of {family.take.queue}")
    for name, text in family.let.items():
        click.echo(f"  let:       {name} = {_flat(text)}")
    if family.domain is not None:
        click.echo(f"  domain:    {_flat(family.domain)}")
    _rules(spec, family.rules, whole=0)
    return True


def _object(spec: Spec, topic: str) -> bool:
    said = False
    for kind, group in (("an object", spec.objects), ("a record", spec.records)):
        if topic in group:
            click.echo(f"{topic}: {kind}")
            for field in group[topic].fields.values():
                click.echo(f"  {field.name}: {field.type}" + (f"  ({_flat(field.doc)})" if field.doc else ""))
            said = True
    if topic in spec.enums:
        click.echo(f"{topic}: an enumeration: {', '.join(spec.enums[topic].values)}")
        said = True
    own = [r for name, r in spec.rules.items() if name.partition("/")[0] == topic]
    if own:
        click.echo(f"{topic}: {len(own)} rules")
        if topic in spec.summaries:
            _says(spec.summaries[topic])
    return _rules(spec, own, whole=0) or said


def _statement(spec: Spec, topic: str) -> bool:
    for invariant in spec.invariants:
        if invariant.id == topic:
            each = f"for each {invariant.each.kind} {invariant.each.name}" if invariant.each else "always"
            click.echo(f"{topic}: an invariant, {each}")
            _says(invariant.says)
            click.echo(f"  holds:     {_flat(invariant.holds)}")
            return True
    for open_ in spec.unspecified:
        if open_.id == topic:
            click.echo(f"{topic}: unspecified")
            _says(open_.says)
            click.echo(f"  reason:    {_flat(open_.reason)}")
            _sources(spec, open_.sources)
            return True
    return False


def _profile(spec: Spec, topic: str) -> bool:
    profile = spec.profiles.get(topic)
    if profile is None:
        return False
    click.echo(f"{topic}: an {profile.kind} profile" if profile.kind == "api" else f"{topic}: a {profile.kind} profile")
    _says(profile.summary)
    for delta in profile.deltas:
        click.echo(f"  changes {delta.field} of {delta.rule}: {_flat(delta.says)}")
    return True


_SHORT: tuple[Callable[[Spec, str], bool], ...] = (_choice_alone, _define, _table, _family, _statement)
"""How what a question names is told, where it is no rule."""


def _fact(spec: Spec, topic: str) -> bool:
    if topic not in _facts().facts:
        return False
    trace = next(t for t in traced() if t.fact.id == topic)
    fact = trace.fact
    click.echo(f"{topic}: a fact ({MARKS[fact.mark]}), {trace.state}")
    _says(fact.says)
    for line in trace.lines():
        click.echo(textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False))
    _rules(spec, [spec.rules[each] for each in fact.rules if each in spec.rules], whole=0)
    return True


@cache
def _facts() -> Facts:
    return facts.load()


_TELLERS: tuple[Callable[[Spec, str], bool], ...] = (
    _choice,
    _call,
    _enumerator,
    _errno,
    _define,
    _table,
    _family,
    _object,
    _statement,
    _profile,
    _fact,
)


# -- questions -----------------------------------------------------------------------------------


def question(spec: Spec, asked: str) -> None:
    """Answer a question in words; a usage error with the nearest questions if it is none of them."""
    found = recognise(spec, asked)
    meant = [each for each in found if each.near == found[0].near]
    if not found or found[0].near < LIKE or len(meant) > 1:
        listed = "".join(f"\n  {each.wording}" for each in (meant if len(meant) > 1 else found)[:NEAREST])
        hint = f" The nearest that have an answer:{listed}" if listed else ""
        raise click.UsageError(f"this is no question that the specification answers: {asked!r}.{hint}\n{ASKING}")
    _answer(spec, found[0])


def _answer(spec: Spec, asked: Asked) -> None:
    wording = asked.wording
    for slot, word in asked.slots.items():
        wording = wording.replace("{" + slot + "}", word)
    click.echo(f"{wording}? ({asked.question.id})")
    names = answers(spec, asked)
    for name in names:
        click.echo()
        if name in spec.rules:
            _brief(spec, spec.rules[name])
        else:
            for tell in _SHORT:
                tell(spec, name)
    if not names:
        click.echo("  no rule does")


def _brief(spec: Spec, rule: Rule) -> None:
    """A rule in words, with its formulas and what profiles change of it."""
    under = f", only {' '.join(rule.profile)}" if rule.profile else ""
    click.echo(f"{rule.id}  ({rule.level}{under})")
    _says(rule.says)
    if isinstance(rule, CallRule) and rule.returns:
        click.echo(f"  {rule.call} returns {', '.join(rule.returns)}")
    _formulas(rule)
    for profile in spec.profiles.values():
        for delta in (d for d in profile.deltas if d.rule == rule.id):
            click.echo(f"  under {profile.name}, {delta.field}: {_value(delta.value)}. {_flat(delta.says)}")


def _value(value: object) -> str:
    if value is None:
        return "nothing"
    return ", ".join(value) if isinstance(value, tuple) else _flat(value)


# -- transitions ---------------------------------------------------------------------------------


def _transition(spec: Spec, old: str, new: str) -> bool:
    """Tell how a state becomes another; False if these are no two states of one thing."""
    apis = [str(p.name) for p in spec.profiles.values() if p.kind == "api"]
    transport = next(str(p.name) for p in spec.profiles.values() if p.kind == "transport")
    models: list[Model] = [engine(api, transport, features(spec)).model for api in apis]
    known = {name: values for model in models for name, values in states(model).items()}
    kinds = [name for name, values in known.items() if old in values and new in values]
    if not kinds:
        return False
    found = list(dict.fromkeys(t for model in models for t in transitions(model, old, new)))
    for name in kinds:
        click.echo(f"{old} -> {new}: states of {name} ({', '.join(known[name])})")
    _moved(spec, "a call moves it", [t for t in found if _is_call(spec, t) and not t.refuses])
    _moved(spec, "the device moves it", [t for t in found if not _is_call(spec, t)])
    _moved(spec, "a call that asks for it is refused", [t for t in found if t.refuses])
    if not found:
        click.echo("no rule moves it, and none refuses to")
    return True


def _is_call(spec: Spec, transition: Transition) -> bool:
    return isinstance(spec.rules[transition.rule], CallRule)


def _moved(spec: Spec, what: str, found: list[Transition]) -> None:
    if found:
        click.echo(f"\n{what} ({', '.join(dict.fromkeys(t.field for t in found))}):")
    for rule in dict.fromkeys(t.rule for t in found):
        _line(spec.rules[rule])


# -- rules ---------------------------------------------------------------------------------------


def _rules(spec: Spec, rules: Iterable[Rule], whole: int = WHOLE) -> bool:
    found = list(rules)
    if len(found) <= whole:
        for rule in found:
            click.echo()
            rule_whole(spec, rule)
    else:
        click.echo()
        for rule in found:
            _line(rule)
    return bool(found)


def _line(rule: Rule) -> None:
    text = f"{rule.id} ({rule.level}): {_flat(rule.says)}"
    click.echo(textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False))


def rule_whole(spec: Spec, rule: Rule) -> None:
    """Print a rule with all that it consists of."""
    click.echo(f"{rule.id}  ({rule.level}, {rule.status}{', ' + ' '.join(rule.profile) if rule.profile else ''})")
    _says(rule.says)
    if isinstance(rule, CallRule):
        click.echo(f"  verb:      {rule.call}")
        if rule.returns:
            preferred = f"; preferred: {', '.join(rule.prefer)}" if rule.prefer else ""
            click.echo(f"  returns:   {', '.join(rule.returns)}{preferred}")
            if rule.cause is not None and rule.do is None:
                click.echo("  unchanged: everything")
    else:
        click.echo(f"  family:    {rule.family}")
    _formulas(rule)
    _sources(spec, rule.sources)
    noted = [str(f.id) for f in _facts().of(str(rule.id))]
    if noted:
        click.echo(f"  facts:     {', '.join(noted)}")
    _witnesses(str(rule.id))


def _witnesses(rule: str) -> None:
    """Why no program fires a rule, or on which devices only."""
    devices = dict.fromkeys(p.device for p in shipped("programs") if p.target == rule)
    for said in devices if all(devices) else ():
        click.echo(f"  fired on:  a device with {', '.join(': '.join(pair) for pair in said)}")
    reason = reasons().get(rule)
    if reason is not None:
        click.echo(f"  not fired: {reason.text}")


def _formulas(rule: Rule) -> None:
    for name in FORMULAS:
        text = getattr(rule, name, None)
        if text is not None:
            body = textwrap.dedent(str(text)).strip().replace("\n", "\n             ")
            click.echo(f"  {name + ':':10} {body}")


def _says(text: object) -> None:
    click.echo(textwrap.fill(_flat(text), WIDTH, initial_indent="  ", subsequent_indent="  "))


def _sources(spec: Spec, sources: Iterable[str]) -> None:
    for source in sources:
        document = documents.named(spec, source)
        worth = "" if document is None else f" [{document.quality}{_pin(document)}]"
        click.echo(f"  source:    {_flat(source)}{worth}")


def _pin(document: Document) -> str:
    return f", {document.pinned}" if document.pinned else ""


def _under(profile: Iterable[object]) -> str:
    names = " ".join(map(str, profile))
    return f" under {names}" if names else ""


def _flat(text: object) -> str:
    return " ".join(str(text).split())
