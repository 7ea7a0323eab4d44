"""The pages of a store: overview, explorer, studies, comparisons. Never torch."""
