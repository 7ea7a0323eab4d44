"""What the observations say: statistics, their doubts and their verdicts.

Only numpy, scipy and pandas are used here, never torch: the same functions serve the bench, which
has models, and the gallery, which has nothing but stored rows.
"""
