"""The specification with one place of its text changed."""

from importlib import resources

from verbs_reference.model import Model
from verbs_spec import loads, select

KERNEL = ("linux-kernel", "ib")
KERNEL_2008 = ("linux-kernel-2008", "ib")


def files() -> dict[str, str]:
    root = resources.files("verbs_spec")
    return {
        f"{part}/{each.name}": each.read_text(encoding="utf-8")
        for part in ("rules", "profiles")
        for each in root.joinpath(part).iterdir()
        if each.name.endswith(".yaml")
    }


def model(profile: tuple[str, str] = KERNEL) -> Model:
    return Model(select(loads(files()), *profile))


def mutant(file: str, old: str, new: str, *, behind: str = "", profile: tuple[str, str] = KERNEL) -> Model:
    """The model with the first ``old`` that stands behind the text ``behind`` replaced by ``new``."""
    texts = files()
    name = f"rules/{file}.yaml"
    start = texts[name].index(behind)
    place = texts[name].index(old, start)
    texts[name] = texts[name][:place] + new + texts[name][place + len(old) :]
    return Model(select(loads(texts), *profile))
