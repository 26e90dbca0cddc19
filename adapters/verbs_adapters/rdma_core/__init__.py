"""The adapter for RDMA devices under rdma-core: one agent file, and how it is brought to its machine."""
