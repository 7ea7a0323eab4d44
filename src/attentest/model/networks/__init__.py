"""The parts of a network: encoders, attention, projection, decoder."""
