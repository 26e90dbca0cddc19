"""Answers of a backend, kept and given again: so a program can be judged by another model without the device."""

from __future__ import annotations

from collections.abc import Mapping

from verbs_adapters.contract import Answer, Backend, Hello, Trouble, Value


class Recorder:
    """A backend that keeps what another one answers."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.answers: list[Answer | Trouble] = []

    def hello(self) -> Hello:
        """As the backend says."""
        return self.backend.hello()

    def reset(self, seed: int) -> Trouble | None:
        """Start a new record."""
        self.answers = []
        return self.backend.reset(seed)

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:
        """Pass on and keep."""
        answer = self.backend.call(verb, args)
        self.answers.append(answer)
        return answer

    def close(self) -> None:
        """Close the backend."""
        self.backend.close()


class Playback:
    """A backend that gives recorded answers, whatever is asked; past the end it crashes."""

    def __init__(self, hello: Hello) -> None:
        self._hello = hello
        self.answers: list[Answer | Trouble] = []
        self._next = 0

    def hello(self) -> Hello:
        """What the recorded backend said."""
        return self._hello

    def reset(self, seed: int) -> Trouble | None:  # noqa: ARG002 - a record has its seed
        """Play from the beginning."""
        self._next = 0
        return None

    def call(self, verb: str, args: Mapping[str, Value]) -> Answer | Trouble:  # noqa: ARG002 - nothing is done
        """The next recorded answer."""
        if self._next >= len(self.answers):
            return Trouble("crash", "glue", "the record ends here")
        self._next += 1
        return self.answers[self._next - 1]

    @property
    def exhausted(self) -> bool:
        """Whether every recorded answer was asked for."""
        return self._next >= len(self.answers)

    def close(self) -> None:
        """Nothing to give back."""
