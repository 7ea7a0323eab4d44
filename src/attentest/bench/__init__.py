"""The bench plans studies, resolves names into objects (here and only here), and does cells."""
