"""What a person sees in a terminal: tables, strips of attention, progress. Never torch."""
