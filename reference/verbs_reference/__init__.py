"""What the specification means: language, model, belief and proofs."""
