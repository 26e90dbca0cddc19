"""The exact checker that the belief's search is tested against.

It keeps the set of all states that explain what was observed, closed under internal steps: every
enabled step of every family, with every option of every choice.  Nothing is pruned and nothing is left
for later.  States are tuples of numbers of interned rows, one row an object, so that what a state leads
to is computed once and shared by all logs of one program.  It uses the model's compiled guards and
effects and none of the search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from verbs_reference.belief import Action
from verbs_reference.model import CallCase, CallCode, Model
from verbs_reference.store import ALIVE, NeedChoice, Store

State = tuple[int, ...]
Arrow = tuple[int, int]
"""Where a step leads, and the bit of its rule."""
Masks = tuple[int, int]
"""Bits of the rules that fired on every way to a state, and on some way."""


class TooLarge(Exception):
    """The set of states does not fit."""


class Oracle:
    """The graph of states of one model, grown as it is asked for."""

    def __init__(self, model: Model, limit: int = 400_000) -> None:
        self.model = model
        self.limit = limit
        self.store: Store = model.store()
        self.bits: dict[str, int] = {}
        self.numbers: list[int] = []
        self._place: dict[int, int] = {}
        self._rows: list[tuple[Any, ...] | None] = [None]
        self._row_ids: dict[Any, int] = {}
        self._options: list[dict[str, str]] = [{}]
        self._option_ids: dict[Any, int] = {(): 0}
        self._kinds: dict[int, str] = {}
        self._now: State = (0, 1)
        self.states: list[State] = [self._now]
        self.ids: dict[State, int] = {self._now: 0}
        self._next: dict[int, tuple[Arrow, ...]] = {}
        self._quiet: dict[int, bool] = {}
        self._after: dict[tuple[int, Any], tuple[Arrow, ...]] = {}
        self._slots = [
            [(t, model.layout.slot[k][t[1]]) for t in model.layout.triggers if t[0] == k] for k in model.layout.kinds
        ]
        self._triggers = dict(zip(model.layout.kinds, self._slots, strict=True))

    def bit(self, rule: str) -> int:
        """The bit that stands for a rule in masks."""
        return self.bits.setdefault(rule, 1 << len(self.bits))

    def rules(self, mask: int) -> set[str]:
        """The rules whose bits are set."""
        return {r for r, b in self.bits.items() if mask & b}

    # -- states ----------------------------------------------------------------------------------

    def _load(self, state: State) -> None:
        """Make the store hold this state."""
        now = self._now
        if now[0] != state[0]:
            self.store.options.clear()
            self.store.options.update(self._options[state[0]])
        self.store.counter[0] = state[1]
        length = max(len(now), len(state))
        for i in range(2, length):
            old = now[i] if i < len(now) else 0
            new = state[i] if i < len(state) else 0
            if old != new:
                self._put(self.numbers[i - 2], self._rows[old], self._rows[new])
        self._now = state

    def _put(self, number: int, old: tuple[Any, ...] | None, new: tuple[Any, ...] | None) -> None:
        store = self.store
        kind = self._kinds[number]
        if new is None:
            del store.objects[number]
        else:
            store.objects[number] = list(new)
        for trigger, slot in self._triggers[kind]:
            if new is not None and new[ALIVE] and new[slot]:
                store.active[trigger][number] = True
            else:
                store.active[trigger].pop(number, None)
        before, after = bool(old and old[ALIVE]), bool(new and new[ALIVE])
        if before != after:
            self._appear(kind, number, new if after else old, after)

    def _appear(self, kind: str, number: int, row: Any, there: bool) -> None:
        store, layout = self.store, self.model.layout
        containers: list[tuple[dict[Any, Any], Any]] = [(store.live[kind], number)]
        containers += [(store.table[k], row[layout.slot[kind][k[1]]]) for k in layout.looked_up if k[0] == kind]
        for container, key in containers:
            if there:
                container[key] = True if container is store.live[kind] else number
            else:
                container.pop(key, None)
        if kind in layout.memory:
            _, first, length = layout.memory[kind]
            start, size = row[layout.slot[kind][first]], row[layout.slot[kind][length]]
            for page in range(start // 4096, (start + max(size, 1) - 1) // 4096 + 1):
                if there:
                    store.pages[page] = number
                else:
                    store.pages.pop(page, None)

    def _save(self) -> int:
        """The number of the state that the store holds, taking back what led there from the loaded one."""
        store = self.store
        touched: set[int] = set()
        made = list(self._now)
        for container, key, _ in store.journal:
            if type(container) is list:
                if container is store.counter:
                    made[1] = container[0]
                else:
                    touched.add(container[0])
            elif container is store.objects:
                touched.add(key)
            elif container is store.options:
                made[0] = self._option_id()
        for number in touched:
            place = self._known(number)
            made.extend([0] * (place + 1 - len(made)))
            row = tuple(store.objects[number])
            made[place] = self._row_ids.get(row) or self._new_row(row)
        store.undo(0)
        state = tuple(made)
        known = self.ids.get(state)
        if known is None:
            known = len(self.states)
            if known > self.limit:
                raise TooLarge(f"more than {self.limit} states")
            self.ids[state] = known
            self.states.append(state)
        return known

    def _known(self, number: int) -> int:
        if number not in self._place:
            self._place[number] = len(self.numbers) + 2
            self.numbers.append(number)
            self._kinds[number] = next(k for k, live in self.store.live.items() if number in live)
        return self._place[number]

    def _new_row(self, row: tuple[Any, ...]) -> int:
        self._rows.append(row)
        self._row_ids[row] = len(self._rows) - 1
        return len(self._rows) - 1

    def _option_id(self) -> int:
        key = tuple(sorted(self.store.options.items()))
        if key not in self._option_ids:
            self._option_ids[key] = len(self._options)
            self._options.append(dict(key))
        return self._option_ids[key]

    # -- what a state leads to -------------------------------------------------------------------

    def _forks(self, work: Callable[[], int | None]) -> Iterator[int]:
        """Do something with every combination of the options that it asks for; the bits and states it
        leads to."""
        todo: list[dict[str, str]] = [{}]
        store = self.store
        while todo:
            chosen = todo.pop()
            store.once = dict(chosen)
            try:
                for name, option in chosen.items():
                    if self.model.voc.choices[name][1]:
                        store.put(store.options, name, option)
                found = work()
                if found is not None:
                    yield found
            except NeedChoice as e:
                todo.extend({**chosen, e.name: option} for option in self.model.voc.choices[e.name][0])
            finally:
                store.once = {}
                store.undo(0)

    def next(self, state: int) -> tuple[Arrow, ...]:
        """Every internal step from a state."""
        known = self._next.get(state)
        if known is None:
            self._load(self.states[state])
            made: set[Arrow] = set()
            quiet = True
            for family in self.model.families:
                for number in list(self.store.active[family.trigger]):
                    found = self._steps(family, number)
                    made.update(found)
                    quiet = quiet and (family.optional or not found)
            known = tuple(made)
            self._next[state] = known
            self._quiet[state] = quiet
        return known

    def _steps(self, family: Any, number: int) -> set[Arrow]:
        made: set[Arrow] = set()

        def work() -> int | None:
            case: int = family.pick(self.store, number)
            if case < 0:
                return None
            family.cases[case].effect(self.store, number)
            made.add((self._save(), self.bit(family.cases[case].id)))
            return case

        for _ in self._forks(work):
            pass
        return made

    def quiet(self, state: int) -> bool:
        """Whether the device has nothing left that it must do."""
        self.next(state)
        return self._quiet[state]

    def after(self, state: int, action: Action) -> tuple[Arrow, ...]:
        """The states after a call that was observed so, with the rule if one alone decided it."""
        key = (state, action)
        known = self._after.get(key)
        if known is None:
            self._load(self.states[state])
            known = tuple(self._outcomes(self.model.calls[action.call], action))
            self._after[key] = known
        return known

    def _outcomes(self, code: CallCode, action: Action) -> Iterable[Arrow]:
        made: set[Arrow] = set()

        def work() -> int | None:
            ruling = self._ruling(code, action)
            for case in ruling:
                if case.effect is not None:
                    case.effect(self.store, *action.args, *action.outputs)
            if ruling:
                made.add((self._save(), self.bit(ruling[0].id) if len(ruling) == 1 else 0))
            return None

        for _ in self._forks(work):
            pass
        return made

    def _ruling(self, code: CallCode, action: Action) -> list[CallCase]:
        store, args = self.store, action.args
        holding = [c for c in code.causes if c.undefined is None and c.guard and c.guard(store, *args)]
        refusing = [c for c in holding if action.result in c.returns]
        refusing = [c for c in refusing if not c.always] or refusing
        if refusing or any(c.rule.level != "may" for c in holding):
            return refusing
        return [
            c
            for c in code.successes
            if action.result in c.returns
            and (c.guard is None or c.guard(store, *args))
            and (c.outputs is None or c.outputs(store, *args, *action.outputs))
        ]


class Exact:
    """One log's run through the oracle."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.states: dict[int, Masks] = {0: (0, 0)}
        self.largest = 1

    def observe(self, action: Action) -> bool:
        """Whether some state explains the call."""
        return self._keep((s, m, self.oracle.after(s, action)) for s, m in self._closed().items())

    def settle(self) -> bool:
        """Whether some state is one in which the device has nothing left to do."""
        return self._keep((s, m, ((s, 0),)) for s, m in self._closed().items() if self.oracle.quiet(s))

    def certain(self) -> set[str]:
        """The rules that fired in every explanation."""
        mask = -1
        for must, _ in self.states.values():
            mask &= must
        return self.oracle.rules(mask)

    def possible(self) -> set[str]:
        """The rules that fired in some explanation."""
        mask = 0
        for _, may in self.states.values():
            mask |= may
        return self.oracle.rules(mask)

    def _closed(self) -> dict[int, Masks]:
        found = dict(self.states)
        todo = list(found)
        while todo:
            state = todo.pop()
            masks = found[state]
            for other, bit in self.oracle.next(state):
                if _join(found, other, masks, bit):
                    todo.append(other)
        self.largest = max(self.largest, len(found))
        return found

    def _keep(self, rows: Iterable[tuple[int, Masks, Iterable[Arrow]]]) -> bool:
        made: dict[int, Masks] = {}
        for _, masks, arrows in rows:
            for other, bit in arrows:
                _join(made, other, masks, bit)
        self.states = made
        return bool(made)


def _join(found: dict[int, Masks], state: int, masks: Masks, bit: int) -> bool:
    """Add a way to a state; whether that says anything new."""
    must, may = masks[0] | bit, masks[1] | bit
    old = found.get(state)
    if old is not None:
        must, may = must & old[0], may | old[1]
        if (must, may) == old:
            return False
    found[state] = (must, may)
    return True
