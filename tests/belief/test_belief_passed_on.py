"""Elements that internal steps move from queue to queue are followed, over objects too."""

from __future__ import annotations

import pytest

from verbs_reference.model import Model
from verbs_reference.pending import Analysis
from verbs_spec.errors import SpecError
from verbs_spec.loader import loads
from verbs_spec.profiles import select

RULES = """
object: pool
summary: Tickets of a pool go to a desk when it is asked, and from there to its tray.
objects:
  ticket: {number: nat}
  pool: {tickets: queue ref ticket}
  desk: {pool: ref pool, asked: queue nat, held: queue ref ticket, tray: queue ref ticket, seen: nat}
calls:
  open_pool:
    outputs: {pool: ref pool}
    rules:
      - {id: pool/open, says: "A pool.", sources: [text], returns: ["0"], do: "pool = new(pool)"}
steps:
  pool/ask:
    for: d in desk
    take: a = d.asked
    domain: "nonempty(d.pool.tickets)"
    rules:
      - id: pool/taken
        says: The desk takes a ticket.
        sources: [text]
        when: "true"
        do: |
          pop(d.asked)
          push(d.held, PUSHED)
          pop(d.pool.tickets)
  pool/hand:
    for: d in desk
    take: t = d.held
    rules:
      - id: pool/handed
        says: The ticket goes to the tray.
        sources: [text]
        when: "true"
        do: |
          pop(d.held)
          push(d.tray, t)
  pool/look:
    for: d in desk
    take: t = d.tray
    rules:
      - id: pool/seen
        says: The ticket is looked at.
        sources: [text]
        when: "true"
        do: |
          pop(d.tray)
          d.seen += t.number
"""
PROFILES = {f"profiles/{k}.yaml": f"profile: {k}\nkind: {k}\nsummary: One.\n" for k in ("api", "transport")}


def _model(pushed: str) -> Model:
    files = {"rules/pool.yaml": RULES.replace("PUSHED", pushed), **PROFILES}
    return Model(select(loads(files), "api", "transport"))


def test_a_step_that_pushes_the_head_of_another_objects_queue_leads_to_those_that_take_it() -> None:
    model = _model("head(d.pool.tickets)")
    store = model.store()
    ticket, pool, desk = 1001, 1002, 1003
    store.new("ticket", ticket, {})
    store.new("pool", pool, {"tickets": (ticket,)})
    store.new("desk", desk, {"pool": pool, "asked": (1,)})
    names = [f.name for f in model.families]
    moves = {(names[i], number, element) for (i, number), element in Analysis(model).pending(store).prints}
    assert moves == {("pool/ask", desk, 1), ("pool/hand", desk, ticket), ("pool/look", desk, ticket)}


def test_a_step_that_pushes_something_else_is_an_error_of_the_specification() -> None:
    with pytest.raises(SpecError) as caught:
        Analysis(_model("nth(d.pool.tickets, 1)"))
    assert "push the head of a queue, or what no step changes" in str(caught.value)
