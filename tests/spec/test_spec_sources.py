"""The list of documents, and which of them a citation names."""

from collections.abc import Mapping

import pytest

from verbs_spec import SpecError, load, loads
from verbs_spec.sources import citations, document, quality, weak

LIST = """documents:
  - {document: man, cited: [rdma-core man, man ibv_], title: Manual pages., quality: read}
  - {document: rdma-core, cited: [rdma-core], title: The library., quality: read, pinned: "691953d8"}
  - {document: ibta, cited: [IBTA], title: From memory., quality: recollection}
  - {document: ibta-quoted, cited: [IBTA], saying: [as quoted by], title: Quoted., quality: quoted}
"""


def files(*sources: str, more: str = "", listed: str = LIST) -> Mapping[str, str]:
    cited = ", ".join(f'"{s}"' for s in sources)
    rule = f'{{id: mr/ok, sources: [{cited}], says: It works., returns: ["0"]{more}}}'
    return {
        "rules/mr.yaml": f"object: mr\nsummary: A region.\ncalls:\n  dereg_mr:\n    rules:\n      - {rule}\n",
        "sources.yaml": listed,
    }


def test_the_longest_beginning_counts() -> None:
    known = loads(files("rdma-core man ibv_reg_mr(3)")).documents
    for citation, name in {
        "rdma-core man ibv_reg_mr(3): bounds": "man",
        "RDMA-core  man ibv_reg_mr(3)": "man",
        "rdma-core providers/mlx5/cq.c": "rdma-core",
        "rdma-core managed": "rdma-core",
        "IBTA C10-96": "ibta",
        "IBTA C10-96 as quoted by rdma-core": "ibta-quoted",
    }.items():
        found = document(known, citation)
        assert found is not None, citation
        assert found.name == name, citation
    assert document(known, "IBTAX 1") is None
    assert document(known, "a man ibv_reg_mr(3)") is None


def test_an_unknown_document_is_an_error() -> None:
    with pytest.raises(SpecError) as caught:
        loads(files("rdma-core man ibv_reg_mr(3)", "rdmacore man ibv_reg_mr(3)"))
    assert str(caught.value) == (
        "rules/mr.yaml:6:62: rule mr/ok cites 'rdmacore man ibv_reg_mr(3)', which begins like no document of "
        "sources.yaml; did you mean 'rdma-core man' or 'rdma-core'? If it is another document, add it to sources.yaml: "
        "document, cited (how such citations begin), title, quality, pinned (the version read)"
    )


def test_the_list_is_checked_itself() -> None:
    more = "  - {document: other, cited: [Ibta], title: T., quality: read}\n"
    with pytest.raises(SpecError, match="documents ibta and other are both cited as 'Ibta'; one of them must be cited"):
        loads(files("IBTA 1", listed=LIST + more))
    with pytest.raises(SpecError, match="'quality' of a document is 'seen'; it may be read, quoted, own,"):
        loads(files("IBTA 1", listed=LIST.replace("quality: quoted", "quality: seen")))


def test_a_must_needs_a_text() -> None:
    assert weak(loads(files("IBTA C10-96"))) == [
        "rules/mr.yaml:6:14: rule mr/ok is a must and rests on recollection alone; cite a text that was read or "
        "quoted, or make it a should, a choice or unspecified"
    ]
    assert not weak(loads(files("IBTA C10-96", "man ibv_reg_mr(3)")))
    assert not weak(loads(files("IBTA C10-96 as quoted by rxe.c")))
    assert not weak(loads(files("IBTA C10-96", more=", level: should")))


def test_of_the_specification() -> None:
    spec = load()
    used = {document(spec.documents, c.text) for c in citations(spec)}
    assert len(used) > 15
    assert all(quality(spec, c.text) for c in citations(spec))
    unpinned = [d.name for d in used if d and d.quality == "read" and not d.pinned]
    assert unpinned == []


def test_what_documents_are_worth_makes_no_other_specification() -> None:
    one, two = files("IBTA 1"), files("IBTA 1", listed=LIST.replace("recollection", "read"))
    assert loads(one).digest == loads(two).digest
