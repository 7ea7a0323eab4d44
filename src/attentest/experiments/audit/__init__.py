"""One model put before every question: `attentest audit` runs it, and calibration on known truth."""
