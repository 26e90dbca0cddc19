"""The verbs of WinVerbs that other APIs do not have: memory registered in a protection domain.

Theory of operation
-------------------
``RegisterMemory`` makes no object: the keys are its result, and there when it is done; the local key is what
``DeregisterMemory`` takes, and names nothing for a second one while the first is outstanding (``wv_pd.c``).  Regions
go with their protection domain.
"""

from __future__ import annotations

from typing import Any

from verbs_adapters.softhca.arguments import Refused
from verbs_adapters.softhca.objects import Objects, find
from verbs_adapters.softhca.overlapped import Later, answered
from verbs_adapters.softhca.regions import Regions

Args = dict[str, Any]


class MemoryKeys:
    """Registering and deregistering by keys."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._regions = Regions(objects)
        self._later = Later(objects)

    def register_memory(self, args: Args) -> Args:
        request, _ = self._regions.register_later(find(self._objects.pds, args["pd"]), args, self._later)
        return answered(request)

    def deregister_memory(self, args: Args) -> Args:
        region = self._objects.regions.pop(args["mr"], None)
        if region is None or not region.alive:
            raise Refused("ENOENT")
        return answered(self._regions.deregister_later(region, self._later))
