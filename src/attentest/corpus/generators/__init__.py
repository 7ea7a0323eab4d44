"""Corpora that we make: simulated bAbI stories, and texts with planted decisive words."""
