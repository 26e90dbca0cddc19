"""Wire scripts: named misfortunes of packets.

Theory of operation
-------------------
A script names a kind of packet and what happens to each of that kind when it is sent for the first time.  A reliable
connection comes to the same end as on a healthy wire, whatever the script, unless the responder goes to ERR before it
has given again what was lost: then the requester ends in RETRY_EXC_ERR.  So it is with a refusal that is lost, and
with the data of a READ before a request that is refused.  Packets of unreliable queue pairs are lost or come as they
should (:mod:`~verbs_adapters.softhca.weather`).
"""

from __future__ import annotations

from typing import NamedTuple


class Script(NamedTuple):
    """What happens to which packets."""

    kind: str
    fate: str
    says: str


SCRIPTS: dict[str, Script] = {
    "lost-request": Script("request", "lost", "the first try of every packet of a message is lost"),
    "lost-middle": Script("middle", "lost", "packets in the middle of a message are lost"),
    "lost-acknowledgement": Script("ACK", "lost", "acknowledgements are lost"),
    "lost-nak": Script("NAK", "lost", "what says that a packet is missing is lost"),
    "lost-rnr-nak": Script("RNR", "lost", "what says that there is no receive is lost"),
    "lost-refusal": Script("refusal", "lost", "what says that a request failed is lost"),
    "lost-read-response": Script("READ", "lost", "data of READs is lost"),
    "lost-rest-of-read": Script("rest", "lost", "data of READs is lost, but for the first packet"),
    "stale-read-response": Script("READ", "late twice", "data of READs comes at once and again much later"),
    "duplicated-read-response": Script("READ", "twice", "data of READs comes twice"),
    "lost-atomic-response": Script("ATOMIC", "lost", "answers to atomics are lost"),
    "duplicated-atomic": Script("atomic", "twice", "atomics come twice"),
    "duplicated-request": Script("request", "twice", "packets of messages come twice"),
    "duplicated-acknowledgement": Script("ACK", "twice", "acknowledgements come twice"),
    "late-request": Script("request", "late", "packets of messages come after they were sent again"),
    "late-acknowledgement": Script("ACK", "late", "acknowledgements come after the request was sent again"),
}
"""Every script by name."""
