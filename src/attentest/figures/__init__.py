"""What a person sees: figures, heat maps, tables, progress. Never torch."""
