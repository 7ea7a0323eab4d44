"""Files are questions, classes are published experiments: siblings, observe, conclude."""
