"""The specification with one place of its text changed."""

from collections.abc import Sequence
from importlib import resources

from verbs_reference.model import Model
from verbs_spec import loads, select

KERNEL = ("linux-kernel", "ib")
KERNEL_2008 = ("linux-kernel-2008", "ib")
USER = ("linux-user", "roce")


def files() -> dict[str, str]:
    root = resources.files("verbs_spec")
    return {
        f"{part}/{each.name}": each.read_text(encoding="utf-8")
        for part in ("rules", "profiles")
        for each in root.joinpath(part).iterdir()
        if each.name.endswith(".yaml")
    }


def model(profile: tuple[str, str] = KERNEL, features: Sequence[str] = ()) -> Model:
    return Model(select(loads(files()), *profile, features))


def mutant(
    old: str, new: str, *, behind: str = "", profile: tuple[str, str] = KERNEL, features: Sequence[str] = ()
) -> Model:
    """The model with the first ``old`` behind the text ``behind`` replaced, in the one file that has both."""
    texts = files()
    (name,) = (name for name, text in texts.items() if behind in text and old in text[text.index(behind) :])
    place = texts[name].index(old, texts[name].index(behind))
    texts[name] = texts[name][:place] + new + texts[name][place + len(old) :]
    return Model(select(loads(texts), *profile, features))
