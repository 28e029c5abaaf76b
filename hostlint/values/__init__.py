"""Where values live: the lattice and the evaluator of value graphs."""
