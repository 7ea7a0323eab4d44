"""The papers' faithfulness tests on one trained model: `attentest audit`, and calibration on known truth."""
