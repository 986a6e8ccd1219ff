"""Independent 50-digit re-implementations of the stated mathematics, used only by tests."""
