"""The room of norms of arrays."""
