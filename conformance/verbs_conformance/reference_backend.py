"""The specification as a backend of the contract: what it allows, drawn by a seed.

It serves to try the suite: whatever schedule and choices it draws, the suite must find it conforming, and a rule has
a witness only if the witness certainly fires it here.  No device is compared with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verbs_adapters.contract import CONTRACT_VERSION, Answer, Hello, Trouble, Value
from verbs_conformance.device import ANY, Device
from verbs_conformance.imagined import Imagination
from verbs_reference.model import CallCode, Model
from verbs_reference.types import Absent, Type


class ReferenceBackend:
    """A model behind the contract; ``busy`` steps are drawn before each call, 0 leaves all work to ``settle``."""

    def __init__(self, model: Model, limits: Mapping[str, Any], busy: int = 3, device: Device = ANY) -> None:
        self.model = model
        self.limits = {**limits, **device.answers}
        self.busy = busy
        self.device = device
        self.world = Imagination(model)
        opening = next(c for c in model.calls.values() if c.opens)
        self._opening = opening.name
        self._device = opening.outputs[opening.creates[0]]

    def hello(self) -> Hello:
        """What the limits describe."""
        api, transport = self.model.spec.selected or ("", "")
        return Hello(
            contract=CONTRACT_VERSION,
            name="reference",
            version=self.model.spec.digest,
            device="model",
            api=(api,),
            transport=(transport,),
            capabilities=tuple(k for k, v in self.limits.items() if v is True),
            limits={k: v for k, v in self.limits.items() if not isinstance(v, bool)},
        )

    def reset(self, seed: int) -> Trouble | None:
        """Start again."""
        self.world = Imagination(self.model, seed, self.limits, self.device)
        code = self.model.calls[self._opening]
        _, outputs, _ = self.world.call(code, ())
        self._opened = outputs[list(code.outputs).index(code.creates[0])]
        return None

    def close(self) -> None:
        """Nothing to give back."""

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        """Perform a verb as the rules say."""
        if verb == "settle":
            self.world.quiesce()
            return Answer("0")
        self.world.wander(self.busy)
        code = self.model.calls[verb]
        values = tuple(self._argument(code, name, args) for name in code.params)
        result, outputs, cases = self.world.call(code, values)
        if cases and cases[0].is_cause:
            return Answer(result)
        named = zip(code.outputs.items(), outputs, strict=True)
        there = {
            name: self._out(kind, value)
            for (name, kind), value in named
            if (value or name not in code.found) and not isinstance(value, Absent)
        }
        return Answer(result, {next(iter(there)): 0} if code.gives_nothing(there) else there)

    def _argument(self, code: CallCode, name: str, args: Mapping[str, Value]) -> Any:
        if code.params[name] == self._device:
            return self._opened
        return self._in(code.params[name], args[name]) if name in args else self.model.left_out(code, name)

    def _in(self, want: Type, value: Any) -> Any:
        match want.tag:
            case "flags":
                return frozenset(value)
            case "bytes":
                return bytes.fromhex(value).decode("latin-1")
            case "queue":
                assert want.elem is not None
                return tuple(self._in(want.elem, v) for v in value)
            case "record":
                fields = self.model.voc.records[want.name]
                return tuple(self._in(t, value[f]) for f, t in fields.items())
            case _:
                return value

    def _out(self, kind: Type, value: Any) -> Any:
        match kind.tag:
            case "flags":
                return sorted(value)
            case "bytes":
                return "".join(c if ord(c) < 256 else "\0" for c in value).encode("latin-1").hex()
            case _:
                return value
