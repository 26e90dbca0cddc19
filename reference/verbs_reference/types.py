"""The types of the rule language.

A type is a small value; two types are the same if they compare equal.  ``null`` is the type of the
literal that every reference accepts.  ``NONE`` types what is only executed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Type:
    """One type: ``tag`` says which, ``name`` the enum, record or object, ``elem`` a queue's element."""

    tag: str
    name: str = ""
    elem: Type | None = None

    def __str__(self) -> str:
        if self.tag == "queue":
            return f"queue {self.elem}"
        if self.tag in {"ref", "flags"}:
            return f"{self.tag} {self.name}"
        return self.name or self.tag

    @property
    def is_opaque(self) -> bool:
        """Whether the solver knows nothing of such values (contents and places of memory)."""
        return self.tag in {"bytes", "spans", "memory"}


NAT = Type("nat")
BOOL = Type("bool")
NULL = Type("null")
BYTES = Type("bytes")
SPANS = Type("spans")
NONE = Type("none")


class Absent:
    """What a parameter or output that may be absent has for a value where it is: its type's default."""


class _Number(Absent, int):
    pass


class _Word(Absent, str):
    __slots__ = ()


class _Words(Absent, frozenset[str]):
    pass


class _List(Absent, tuple[object, ...]):
    __slots__ = ()


def absent(value: object) -> object:
    """The value as that of something absent: equal to it, and told apart by ``given`` alone."""
    match value:
        case int():
            return _Number(value)
        case str():
            return _Word(value)
        case frozenset():
            return _Words(value)
        case tuple():
            return _List(value)
        case _:
            raise TypeError(f"nothing absent has the value {value!r}")


def accepts(want: Type, have: Type) -> bool:
    """Whether a value of type ``have`` may stand where ``want`` is expected."""
    return want == have or (want.tag == "ref" and have == NULL) or (want.tag == "memory" and have == BYTES)


def default(kind: Type, enums: dict[str, tuple[str, ...]], records: dict[str, dict[str, Type]]) -> object:
    """The default value of a type: 0, false, the first enumerator, empty, null."""
    match kind.tag:
        case "nat" | "ref" | "null":
            return 0
        case "bool":
            return False
        case "enum":
            return enums[kind.name][0]
        case "flags":
            return frozenset()
        case "queue" | "spans":
            return ()
        case "record":
            return tuple(default(t, enums, records) for t in records[kind.name].values())
        case _:
            return ""
