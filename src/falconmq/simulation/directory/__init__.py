"""Enterprises of directory servers in a virtual world: replication under seeded faults."""
