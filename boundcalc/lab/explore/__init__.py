"""The interactive page: bounds as curves in a file that opens anywhere, or next to the engine on this machine."""
