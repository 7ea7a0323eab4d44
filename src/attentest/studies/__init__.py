"""Studies are TOML recipes: a grid of models, the experiments to run on it, and the claims to judge."""
