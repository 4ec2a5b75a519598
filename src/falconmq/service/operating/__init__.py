"""What operators look at and act on: outgoing queues, sessions, dead letters, routes."""
