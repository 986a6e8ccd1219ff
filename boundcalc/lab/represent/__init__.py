"""R: sparse Boolean functions as explicit, certified Transformer weights, and what learning them needs."""
