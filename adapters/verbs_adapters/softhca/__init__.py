"""softhca: a software HCA that executes verbs on real bytes.

Theory of operation
-------------------
A verb call is checked (:mod:`~verbs_adapters.softhca.arguments`) and dispatched
(:mod:`~verbs_adapters.softhca.device`) to its owner: the verbs on memory (:mod:`~verbs_adapters.softhca.objects`),
of regions (``regions``) and memory windows (``windows``), of completion queues and their channels (``cq``,
``channel``), of queue pairs (``pairs``, with ``transitions`` and ``attributes``), shared receive queues (``srq``),
events (``event``) or posting
(:mod:`~verbs_adapters.softhca.posting`).  Posting only queues.  An engine
(:mod:`~verbs_adapters.softhca.engine`) does the rest in micro-steps chosen by seeded chance: the requester
fetches work requests and sends requests over the wire, the responder executes them, the completer writes
completion queue entries and flushes; with ``threads`` it does so beside the calls; an iWARP ``stream`` ends for both
sides.  Keys, regions, windows and access checks live in ``keys``, ``region``, ``registrar``, ``mw`` and ``access``;
bytes in ``memory``.  What optional features bring is in ``capabilities``.  The APIs of Windows
have verbs of their own (``overlapped``, ``networkdirect``, ``winverbs``) and ``words``.

Where the sources leave a device free, an option chooses (``options``); what a broken device would do is a
named fault in the same one code path (``faults``).  Decisions and their sources: ``README.md`` beside this.
"""

from verbs_adapters.softhca.device import SoftHca

__all__ = ["SoftHca"]
