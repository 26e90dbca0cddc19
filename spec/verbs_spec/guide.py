"""How to read the tables, for their first page."""

GUIDE = """\
These tables are the rules of the specification, one page an object, one row a rule. They are made from
the YAML files and say the same. Names of states, statuses and errnos are those of the verbs, without
`IBV_`; five abstract statuses stand for several of the verbs', see `cq/poll-error`. An API goes with
any transport.

## A call

`returns` is what the call may return: `0`, or the errno's name (whether a backend gives it as the return
value or in `errno` is its binding's affair). A rule with a **cause** is a way to fail. Causes may
overlap: the call may return what any of the causes that hold allows, and succeeds exactly when none
holds. Rules without a cause are the ways to succeed; where there are several, exactly one *when* holds.

A call that fails changes nothing, unless the row has an effect. **Undefined** in place of `returns`
means that the consumer broke its duty: nothing that depends on the objects named there is judged from
then on. It wins over every other cause. What refers to such an object, or is referred to by it, depends
on it, and so on from there, except through objects that refer to nothing (the device, buffers).

*Tested as* is how the suite makes the call: for each parameter the values that it chooses from, `each mr`
being any region there is. A name that begins with `_` is not passed; others refer to it.

*Prefers* is what the call should return among what it may. *Outputs* says which values the backend may
give.

## A step

A step is what the backend does by itself: it may run at any moment at which its row's condition holds. A
family of steps runs *for each* object of a kind; if it *takes* from a queue it looks at the queue's
head, and does nothing while the queue is empty. Within the family's domain exactly one row's *when*
holds. How soon a step runs is open, but unless its family *need not* run, it runs in the end: when the
suite has settled, nothing is left to do.

## The other words

| word | meaning |
|---|---|
| must, should, may | breaking a *must* is a failure, breaking a *should* a deviation; \
a *may* is allowed: the call may also succeed |
| draft, reviewed, disputed | how far people agree on the row; a row without a word is a draft |
| choice | what the sources leave open; a *stable* one is a constant of the backend |
| unspecified | what no source decides: never judged |
| quality of a source | *(quoted)*: closed, as open code quotes it; *(own)*: our contract; no word: the text was read |
| *(recollection)*, *(absence)* | from memory; looked for and not found: neither is enough for a must |
| invariant | what holds in every reachable state |
| ghost | statements for proofs only, never part of a verdict |
| profile | a kind of API or of transport, or a feature that a device may have; a row marked *only* holds under the \
profiles it names |

## Expressions and effects

| expression | meaning |
|---|---|
| `x.f` | a field; of `null` it is the type's default: 0, false, the first enumerator, empty, `null`; \
what is written to it is lost |
| `a - b` | 0 where `b > a`: numbers are naturals |
| `{A, B}`, `e in flags` | a set of enumerators, and whether one is in it |
| `any/all/count(e for x in D if c)` | over a queue, a set or an object's name; `sum` over a queue |
| `len empty nonempty head last nth` | of a queue; `head` is its oldest element |
| `nth(q, i)`, `upto(n)` | the element with i before it (the default behind the end); the queue of 0, 1, ... n - 1 |
| `lookup(object.field, v)` | the live object with this value, or `null` |
| `alive(x)` | whether the object exists |
| `choice(NAME) == option` | whether the backend has chosen so |
| `implies(a, b)`, `pow2(n)`, `shl(n)` | `b` or not `a`; whether `n` is a power of two; 2 to the `n` |
| `span(addr, length)` | places: `length` bytes from `addr` on |
| `walk(pages, size, first, start, length)` | places: lay the pages one behind the other, drop the `first` bytes; \
the `length` bytes from the `start`-th on |
| `slice(places, start, length)`, `flat(places for ...)` | a part of places; several joined in order |
| `load(spans)`, `store(spans, bytes)`, `havoc(spans)` | the bytes there; write them; they may be anything |
| `x.f = e`, `+=`, `-=` | assign, on the state that the statement before left |
| `push pop clear` | at a queue's end, from its head, all of it |
| `new(object, f=e, ...)`, `delete(x)` | begin and end an object's life |

Types: `nat`, `bool`, an enum, `flags ENUM` (a set of its enumerators), `ref OBJECT` (or `null`),
`queue T`, a record, `bytes` and `spans` (contents and places of memory), `memory(ADDR, LENGTH)` (the
object is the stretch of memory whose first address and length stand in these two fields).
"""
