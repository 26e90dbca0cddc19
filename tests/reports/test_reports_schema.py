"""The shipped JSON Schema and the structs describe the same lines."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from reports_samples import FAILED_RUN, RUNS

from verbs_reports.records import KINDS, Adapter, Device, Failure, Record, Trouble, schema
from verbs_reports.verdicts import Verdict

SCHEMA = schema()
VALIDATOR = Draft202012Validator(SCHEMA)
PARTS: dict[str, Any] = {"adapter": Adapter, "device": Device, "failure": Failure, "trouble": Trouble}
STRUCTS: dict[str, Any] = KINDS | PARTS


def accepted(value: Any) -> bool:
    """Say whether the structs take a value."""
    try:
        msgspec.json.decode(json.dumps(value), type=Record)
    except msgspec.ValidationError:
        return False
    return True


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_every_sample_record_validates(run: tuple[Record, ...]) -> None:
    for record in run:
        VALIDATOR.validate(json.loads(msgspec.json.encode(record)))


def test_the_schema_knows_the_records_and_the_verdicts() -> None:
    assert {option["$ref"].removeprefix("#/$defs/") for option in SCHEMA["oneOf"]} == set(KINDS)
    assert SCHEMA["$defs"]["verdict"]["enum"] == [str(verdict) for verdict in Verdict]


@pytest.mark.parametrize("name", STRUCTS)
def test_fields_are_the_same(name: str) -> None:
    described = SCHEMA["$defs"][name]
    fields = msgspec.structs.fields(STRUCTS[name])
    tag = {"record"} if name in KINDS else set()
    assert set(described["properties"]) == {field.name for field in fields} | tag
    assert set(described["required"]) == {field.name for field in fields if field.required} | tag
    assert described["additionalProperties"] is False


def flat(value: Any, definitions: dict[str, Any]) -> Any:
    """Give a schema without references and words, one of the ways to say the same thing everywhere."""
    if isinstance(value, list):
        return [flat(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return name if name in STRUCTS or name.lower() in PARTS else flat(definitions[name], definitions)
    plain = {
        key: flat(item, definitions) for key, item in value.items() if key not in {"description", "title", "default"}
    }
    if "const" in plain:
        plain = {"enum": [plain["const"]]}
    if "enum" in plain:
        plain = {"enum": sorted(plain["enum"])}
    if options := plain.pop("oneOf", None) or plain.pop("anyOf", None):
        plain["oneOf"] = sorted((option.lower() if isinstance(option, str) else option for option in options), key=str)
    return plain


@pytest.mark.parametrize("name", STRUCTS)
def test_types_are_the_same(name: str) -> None:
    (_,), generated = msgspec.json.schema_components([STRUCTS[name]], ref_template="#/$defs/{name}")
    ours = SCHEMA["$defs"][name]["properties"]
    theirs = generated[STRUCTS[name].__name__]["properties"]
    for field in ours:
        expected = flat(theirs[field], generated)
        assert flat(ours[field], SCHEMA["$defs"]) == (expected.lower() if isinstance(expected, str) else expected)


def test_every_field_is_described() -> None:
    for name in STRUCTS:
        for field, described in SCHEMA["$defs"][name]["properties"].items():
            reference = described.get("$ref", "").rpartition("/")[2]
            text = described.get("description") or SCHEMA["$defs"].get(reference, {}).get("description")
            assert field == "record" or text, f"{name}.{field} says nothing"


SAMPLES = [json.loads(msgspec.json.encode(record)) for record in FAILED_RUN]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.just(0.5)
    | st.sampled_from(["", "pass", "must", "directed", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["pass", "x"]), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=300)
@given(st.data())
def test_both_refuse_the_same_lines(data: st.DataObject) -> None:
    """Change one place of a valid record, at any depth: the schema and the structs agree."""
    value = copy.deepcopy(data.draw(st.sampled_from(SAMPLES)))
    place: Any = value
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from([*keys, "unknown"] if isinstance(place, dict) else keys))
        inner = place.get(key) if isinstance(place, dict) else place[key]
        if isinstance(inner, dict | list) and inner and data.draw(st.booleans()):
            place = inner
            continue
        break
    if isinstance(place, dict) and key in place and data.draw(st.booleans()):
        del place[key]
    else:
        place[key] = data.draw(VALUES)
    assert VALIDATOR.is_valid(value) == accepted(value)


@pytest.mark.parametrize("index", range(len(SAMPLES)))
def test_unknown_fields_are_refused(index: int) -> None:
    value = SAMPLES[index] | {"colour": "red"}
    assert not VALIDATOR.is_valid(value)
    assert not accepted(value)
