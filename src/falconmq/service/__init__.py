"""The daemon: configuration, life cycle, and the doors into a running queue manager."""
