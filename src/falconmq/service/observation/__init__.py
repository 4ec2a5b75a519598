"""What can be seen of a service: events, samples, metrics, spans."""
