"""Where each flip is tried: under the first profiles where the flipped rule stands with that text.

A rule stands under many profiles, and mostly with one text.  So the profiles are gone through in one order: first the
APIs without features, then those with the features that rules need; last what only another transport has.  A rule
that needs features is flipped with those of the program that was made for it, or if it has none, with as few others
as the fixtures allow.  A rule is flipped where it first has its text, and the text of what it calls; each flip is
tried once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from verbs_conformance import program as programs
from verbs_conformance.build import needed, staged
from verbs_conformance.flips import Flip, flips
from verbs_conformance.target import load
from verbs_spec.document import CallRule, Rule, Spec
from verbs_spec.profiles import features, select

APIS = ("linux-kernel", "linux-kernel-2008", "linux-user", "networkdirect", "winverbs")
FEATURED = ("linux-user", "linux-kernel", "linux-kernel-2008", "networkdirect", "winverbs")
"""The order of the APIs with features: the one with most of them first."""
TRANSPORTS = ("roce", "iwarp", "ib")
WORD = re.compile(r"[A-Za-z_]\w*")
CHOICE = re.compile(r"choice\((\w+)\)")
FIELDS = ("cause", "when", "outputs", "undefined", "do")


@dataclass(frozen=True, slots=True)
class Home:
    """Profiles under which flips are tried."""

    api: str
    features: tuple[str, ...] = ()
    transport: str = TRANSPORTS[0]

    def __str__(self) -> str:
        return " ".join((self.api, self.transport, *self.features))

    @property
    def spec(self) -> Spec:
        """The specification under them."""
        return _selected(self)


@cache
def _selected(home: Home) -> Spec:
    return select(load(), home.api, home.transport, home.features)


@cache
def homes() -> tuple[Home, ...]:
    """All of them, in the order in which rules are looked for; each has a rule that those before it lack."""
    there: set[str] = set()
    found = []
    for home in _candidates():
        rules = {str(r) for r in home.spec.rules if _belongs(str(r), home)} - there
        if rules:
            found.append(home)
            there |= rules
    return tuple(found)


def _candidates() -> Iterator[Home]:
    yield from (Home(api) for api in APIS)
    for api in FEATURED:
        groups = set(_groups(api).values())
        yield from (Home(api, group) for group in sorted(groups, key=lambda g: (len(g), g)))
    yield from (Home(api, (), transport) for transport in TRANSPORTS[1:] for api in APIS)


@cache
def _groups(api: str) -> dict[str, tuple[str, ...]]:
    """The features under which the rules that need some are tried."""
    whole = select(load(), api, TRANSPORTS[0], features(load()))
    witnesses = {p.target: p.feature for p in reversed(programs.shipped("programs")) if p.target and p.under(whole)}
    found = {}
    for rule in map(str, whole.rules):
        group = needed(whole, rule)
        if group:
            wanted = witnesses.get(rule, ())
            found[rule] = tuple(f for f in whole.features if f in wanted) if wanted else staged(group, whole)
    return found


def _belongs(rule: str, home: Home) -> bool:
    """Whether a rule is tried with the features of a home, if it needs any."""
    return not home.features or _groups(home.api).get(rule, home.features) == home.features


@cache
def tried() -> dict[Home, list[Flip]]:
    """The flips of each home, in order."""
    texts: set[tuple[str, ...]] = set()
    names: set[str] = set()
    found: dict[Home, list[Flip]] = {}
    for home in homes():
        text = _Texts(home.spec)
        new = {str(r.id): text.of(r) for r in home.spec.rules.values() if _belongs(str(r.id), home)}
        fresh = flips(home.spec, {rule for rule, key in new.items() if key not in texts})
        found[home] = [flip for flip in fresh if flip.name not in names]
        texts |= set(new.values())
        names |= {flip.name for flip in found[home]}
    return found


def asked(spec: Spec) -> list[str]:
    """The choices of a specification that some rule of it asks."""
    text = _Texts(spec)
    said = " ".join(part for rule in spec.rules.values() for part in text.of(rule))
    used = set(CHOICE.findall(said))
    return [str(name) for name in spec.choices if name in used]


class _Texts:
    """What a rule says, with what stands behind the words that it uses."""

    def __init__(self, spec: Spec) -> None:
        self.bodies = {str(name): str(define.body) for name, define in spec.defines.items()}
        self._behind: dict[str, frozenset[str]] = {}

    def of(self, rule: Rule) -> tuple[str, ...]:
        """The rule's id and its texts."""
        own = [str(getattr(rule, field, None)) for field in FIELDS]
        results = (*rule.returns, "/", *rule.prefer) if isinstance(rule, CallRule) else ()
        used = sorted(frozenset[str]().union(*(self.behind(word) for text in own for word in WORD.findall(text))))
        return (str(rule.id), *own, *map(str, results), *(self.bodies[name] for name in used))

    def behind(self, word: str) -> frozenset[str]:
        """The definition that a word names and those that it uses."""
        if word not in self.bodies:
            return frozenset()
        if word not in self._behind:
            self._behind[word] = frozenset({word})
            inner = (self.behind(each) for each in WORD.findall(self.bodies[word]))
            self._behind[word] = self._behind[word].union(*inner)
        return self._behind[word]
