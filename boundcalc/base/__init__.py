"""What knows no Transformer: numbers, intervals, errors, sources, statements."""
