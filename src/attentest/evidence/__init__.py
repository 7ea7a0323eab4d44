"""What is done to a model's attention or input, and what came of it."""
