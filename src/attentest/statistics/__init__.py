"""Estimates, intervals, ranks and divergences, and the record of a finding.

Only numpy, scipy and pandas are used here, never torch, and nothing here knows an experiment.
"""
