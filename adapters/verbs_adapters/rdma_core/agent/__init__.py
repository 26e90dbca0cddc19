"""The rdma-core agent: verbs calls of the harness, made with the target's own libibverbs.

This one file is all that the target needs, besides python3 (3.8 or newer) and libibverbs with the provider of
its device.  It speaks the protocol of docs/adapter-protocol.md on standard input and output.

Theory of operation
-------------------
*Two processes.*  The supervisor never opens a device.  For each `reset` it forks a worker, which opens the
device, reads requests and writes replies itself (so a call costs no detour), and ends when it meets the next
`reset`, handing back what it has read and not answered.  All objects are the worker's, so its end frees them:
nothing of one program reaches the next one, and nothing is left behind after a kill.  The worker notes in
shared memory which request it is in.  If a call blocks, or the worker dies in it, the supervisor answers that
request with a trouble and lives on.

*C, not pyverbs.*  The calls go to libibverbs through ctypes.  pyverbs differs between releases, turns errnos
into exceptions, closes children before their parent, and keeps a copy of the state; what is judged here is the
device and its driver.  The structures below are those of <infiniband/verbs.h>, whose layout is ABI; a test
compares them with the header.  Posting and polling are pointers in `struct ibv_context`, as for any C program.

*Errnos as they came.*  A verb answers with what the library returned or left in errno.  EINVAL is the agent's own
answer only where no C call can be made: a handle that names nothing, a number too wide for its C type, an
unknown enumerator, more acknowledgements than events; EOPNOTSUPP where libibverbs has no such verb or opcode; and
EDEADLK where the library would wait for ever for this one thread: in destroying what an event is about that was
taken and not acknowledged.

*Beyond C.*  What inline functions of the header do (bind_mw's checks) is done here.  The key of a window of type 2 is
put into its handle when its binding is posted, as ibv_bind_mw does for type 1.

*Time.*  The agent has two queue pairs of its own.  How fast a message between them is acknowledged is measured
once, and `settle` waits ten times as long; then it sends some more messages there, which take their turn behind
what the device has to do, however slow the machine is just then.  Where a send cannot be answered because the
peer is not ready, it waits until the retries must be used up.
"""
