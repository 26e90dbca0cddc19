"""The specification: YAML files, and what reads them.

`load()` gives the whole specification, `select(spec, api, transport)` what of it holds for one kind of
backend. What the rules mean is the affair of verbs_reference.
"""

from verbs_spec.document import Spec
from verbs_spec.errors import ProfileError, SpecError, Where
from verbs_spec.loader import digest, load, loads
from verbs_spec.profiles import select
from verbs_spec.text import Text

SPEC_VERSION = "0.1.0"

__all__ = [
    "SPEC_VERSION",
    "ProfileError",
    "Spec",
    "SpecError",
    "Text",
    "Where",
    "digest",
    "load",
    "loads",
    "select",
]
