"""The lab: the kernel's own software RDMA drivers, in a virtual machine made from the distribution's packages.

`kernels` says which guests there are, `image` builds one from packages (`packages`, `tree`, `modules`), `machine`
starts it, `bridge` stands between it and the harness, and `adapter` is the backend that all this makes.
"""
