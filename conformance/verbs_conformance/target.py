"""What is judged: an adapter with its options, under which profiles.

The command line says it in words, and so do replay files and results; what stands on the command line is stronger.
Options and profiles of a file are those of its adapter: another adapter on the command line leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

import click

from verbs_adapters import registry
from verbs_adapters.contract import Backend, Hello
from verbs_conformance.engine import Engine
from verbs_reference.model import Model
from verbs_spec.document import Spec
from verbs_spec.errors import ProfileError, near
from verbs_spec.loader import load as load_files
from verbs_spec.profiles import capabilities, features, select

BUILT_IN = "softhca"
"""The adapter when none is named; the profiles are handed on to it as options."""
_PROFILES = ("api", "transport")


@dataclass(frozen=True, slots=True)
class Target:
    """An adapter, its options, and the profiles: empty for what the backend names first; draft features asked for."""

    adapter: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    api: str = ""
    transport: str = ""
    features: tuple[str, ...] = ()

    def over(self, saved: Target) -> Target:
        """This target, with what it leaves open taken from a saved one."""
        adapter = self.adapter or saved.adapter or BUILT_IN
        options = dict(self.options)
        if adapter == (saved.adapter or BUILT_IN):
            options = {**saved.options, **options}
        profiles = {p: getattr(self, p) or getattr(saved, p) for p in _PROFILES}
        if adapter == BUILT_IN:
            for p in _PROFILES:
                if getattr(self, p) and p not in self.options:
                    options[p] = getattr(self, p)
                elif profiles[p]:
                    options.setdefault(p, profiles[p])
        same = saved.adapter in {"", adapter}
        asked = tuple(dict.fromkeys((*(saved.features if same else ()), *self.features)))
        return Target(adapter, options, features=asked, **profiles)


@cache
def load() -> Spec:
    """The specification, read once."""
    return load_files()


def options(pairs: Sequence[str]) -> dict[str, str]:
    """The adapter options of the command line."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise click.UsageError(f"-o {pair}: an adapter option is KEY=VALUE")
        if key in found:
            raise click.UsageError(
                f"-o {key}={found[key]} and -o {pair}: an adapter option is given once; leave one of the two out"
            )
        found[key] = value
    return found


def profiles(names: Sequence[str]) -> tuple[str, str]:
    """The API and the transport among the named profiles."""
    spec = load()
    chosen = {"api": "", "transport": ""}
    for name in names:
        if name not in spec.profiles:
            known = [str(p) for p in spec.profiles]
            raise ProfileError(f"no profile is called {name!r}{near(name, known) or '.'} Known: {', '.join(known)}")
        kind = spec.profiles[name].kind
        if kind == "feature":
            raise click.UsageError(
                f"--profile {name}: this is a feature, and a backend is judged with the features that it declares; "
                "name an API or a transport"
            )
        if chosen[kind] not in {"", name}:
            raise click.UsageError(
                f"--profile {chosen[kind]} and --profile {name} are both {kind} profiles, and a backend is judged "
                "under one of each kind: leave one out, or make two runs"
            )
        chosen[kind] = name
    return chosen["api"], chosen["transport"]


@cache
def engine(api: str, transport: str, features: tuple[str, ...] = ()) -> Engine:
    """The model under two profiles, for a device with these features, made once."""
    return Engine(Model(select(load(), api, transport, features)))


def offered(spec: Spec, hello: Hello, asked: Sequence[str] = ()) -> tuple[str, ...]:
    """The features that a backend is judged with: those that it declares, drafts only where they are asked for.

    Raises ProfileError for what is asked for and is no feature, or not declared.
    """
    known = features(spec)
    for name in asked:
        if name not in known:
            raise ProfileError(f"no feature is called {name!r}{near(name, known) or '.'} Known: {', '.join(known)}")
        if not set(words := capabilities(spec, name)) & set(hello.capabilities):
            raise ProfileError(
                f"the backend {hello.name} cannot be judged with the feature {name}: it does not declare "
                f"{' or '.join(words)}; it declares {', '.join(hello.capabilities) or 'nothing'}"
            )
    return tuple(
        name
        for name in known
        if set(capabilities(spec, name)) & set(hello.capabilities) and (name in asked or not spec.profiles[name].draft)
    )


@contextmanager
def opened(target: Target) -> Iterator[tuple[Backend, Engine]]:
    """The backend with the engine for its profiles; it is closed at the end."""
    backend = registry.create(target.adapter, target.options)
    try:
        hello = backend.hello()
        chosen = []
        for kind, asked, known in (("api", target.api, hello.api), ("transport", target.transport, hello.transport)):
            word = asked or known[0]
            if word not in known:
                raise ProfileError(
                    f"the backend {hello.name} cannot be judged under the {kind} profile {word!r}; "
                    f"it offers {', '.join(known)}"
                )
            chosen.append(word)
        yield backend, engine(chosen[0], chosen[1], offered(load(), hello, target.features))
    finally:
        backend.close()
