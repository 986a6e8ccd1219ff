"""A page to play with: bounds as curves in a file that opens anywhere, or beside the engine on this machine."""
