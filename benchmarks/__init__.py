"""The measured claims; figures are ratios of one run on one machine."""
