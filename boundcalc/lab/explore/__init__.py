"""The interactive page: bounds as curves in a file that opens anywhere."""
