"""The directory of the enterprise, in the service: joining it, asking it, serving it."""
