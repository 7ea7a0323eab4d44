"""Models without training whose truth is known: they follow from a rule, and calibrate every test."""
