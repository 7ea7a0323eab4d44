"""One text as a model reads it: attention, importances, adversary and flip, each beside a null."""
