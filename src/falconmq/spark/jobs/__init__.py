"""The jobs of `falconmq pipeline`: each a few functions from tables to tables, and a `run`."""
