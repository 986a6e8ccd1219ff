"""The one place that certifies norms of arrays."""
